"""What the release of detail shows of a user: whole columns, columns in a cluster, and pairs.

The observer knows all other rows, bins, centres and pairs, which were released or are public, and
sees every noisy count before points are made of them. The score is the log likelihood ratio, up to
what no score needs.
"""

import numpy as np

from audits.case import Scores, scores_of_calls
from audits.noise_twins import Silence
from splitmeans._types import FloatArray, IntArray
from splitmeans.local.detail import Detail
from splitmeans.privacy.noise import NoiseSource
from splitmeans.study.coding import Coding
from splitmeans.table.walk.memory import as_rows

_BOUND = 2**16
# Two columns of numbers, cut in the middle, and one of two levels; two clusters, three pairs.
_CODING = Coding(bounds=(_BOUND,) * 4, levels=(0, 0, 2))
_EDGES = [np.array([0]), np.array([0]), np.zeros(0, dtype=np.int64)]
_CENTRES = np.array([[-_BOUND, -_BOUND, 0, 0], [_BOUND, _BOUND, 0, 0]])
_PAIRS = np.array([[0, 1], [0, 2], [1, 2]])
_USER = np.array([[_BOUND, _BOUND, 1]])
_OTHERS = np.array([[-_BOUND, -_BOUND, 0]] * 4)

N_COLUMNS, N_PAIRS = len(_CODING.levels), len(_PAIRS)


def all_counts(mechanism: Detail, trials: int, noise: NoiseSource) -> Scores:
    """All three releases of one party, for a user alone in a cluster."""
    scales = (mechanism.whole_scale, mechanism.cluster_scale, mechanism.pair_scale)

    def ask(rows: IntArray, source: NoiseSource) -> tuple[FloatArray, ...]:
        walked = as_rows(rows)
        columns = mechanism.noisy_columns(walked, coding=_CODING, edges=_EDGES, noise=source)
        clusters, pairs = mechanism.noisy_clusters(
            walked, centres=_CENTRES, coding=_CODING, edges=_EDGES, pairs=_PAIRS, noise=source
        )
        return np.concatenate(columns), clusters.ravel(), pairs

    there = np.vstack([_OTHERS, _USER])
    raw = ask(_OTHERS, Silence())
    changes = [after - before for after, before in zip(ask(there, Silence()), raw, strict=True)]

    def one_call(present: bool) -> FloatArray:
        noisy = ask(there if present else _OTHERS, noise)
        gains = (
            float((found - known) @ change) / scale**2 * scales[0] ** 2
            for found, known, change, scale in zip(noisy, raw, changes, scales, strict=True)
        )
        return np.array([sum(gains)])

    return scores_of_calls(one_call, trials=trials)
