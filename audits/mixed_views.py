"""What guided-lloyd releases of columns of levels and of rows with gaps, with and without a user.

As `guided_views`, for coded rows: a column of levels is one column, whatever its number of levels.
"""

import numpy as np

from audits.case import Scores, scores_of_calls
from audits.noise_twins import Silence
from splitmeans._types import NO_VALUE, FloatArray, IntArray
from splitmeans.local.guided_lloyd import GuidedLloyd
from splitmeans.local.survey import ColumnSurvey
from splitmeans.privacy.noise import NoiseSource
from splitmeans.table.walk.memory import as_rows

# Other rows at each level.
_PER_LEVEL = 4
# The user's distance from its centre in the first column, in radii.
_FAR = 3


def level_histogram(mechanism: ColumnSurvey, trials: int, noise: NoiseSource) -> Scores:
    """The histogram of a single column of levels; every level of a call is a trial."""
    (n_levels,) = mechanism.levels
    codes = np.arange(n_levels)[:, np.newaxis]

    def one_call(present: bool) -> FloatArray:
        rows = np.tile(codes, (_PER_LEVEL + present, 1))
        return mechanism.noisy_histograms(as_rows(rows), mechanism.bins(16), noise=noise)

    return scores_of_calls(one_call, trials=trials)


def mixed_round(mechanism: GuidedLloyd, trials: int, noise: NoiseSource) -> Scores:
    """One round on columns of numbers, numbers and levels; every centre of a call is a trial.

    Centres are on a line in the first column. A centre's user is far from it there, has no value
    in the second, and has the first level of the third, of which all centres have even shares.
    """
    n_levels = mechanism.levels[-1]
    radius = mechanism.smallest_radius
    spacing = (2 * _FAR + 2) * radius
    line = np.arange(-mechanism.bounds[0] + spacing // 2, mechanism.bounds[0], spacing)
    centres = np.zeros((len(line), len(mechanism.bounds)), dtype=np.int64)
    centres[:, 0] = line
    radii = np.full(len(line), radius)
    # The code behind the last level is even shares of all: such a row lies on its centre.
    others = np.stack([line, np.zeros_like(line), np.full_like(line, n_levels)], axis=1)
    users = np.stack(
        [line + _FAR * radius, np.full_like(line, NO_VALUE), np.zeros_like(line)], axis=1
    )

    def ask(rows: IntArray, source: NoiseSource) -> IntArray:
        return mechanism.noisy_sums(as_rows(rows), centres, radii, mu=mechanism.mu, noise=source)

    there, away = np.vstack([others, users]), others
    raw = ask(away, Silence())
    direction = (ask(there, Silence()) - raw) / radius

    def one_call(present: bool) -> FloatArray:
        noisy = ask(there if present else away, noise)
        return np.asarray(((noisy - raw) * direction).sum(axis=1))

    return scores_of_calls(one_call, trials=trials)
