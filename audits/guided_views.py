"""What guided-lloyd and its parts release, with and without a user far outside every radius.

The functions look at a part's own interface, at the noisy numbers before points or centres are made
of them: an observer of the centres alone sees less, and needs many times the trials. The observer
knows all other rows, so it knows what they add up to. Scores are log likelihood ratios, or rise
with them.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import numpy as np

from audits.case import Scores, scores_of_calls
from audits.noise_twins import Silence
from splitmeans._types import FloatArray, IntArray
from splitmeans.local import guided_lloyd as algorithm
from splitmeans.local.column_splits import Intervals
from splitmeans.local.guided_lloyd import GuidedLloyd
from splitmeans.local.law import COUNT_UNITS, mu_scale
from splitmeans.local.laws.guided_lloyd import sensitivity
from splitmeans.local.survey import ColumnSurvey
from splitmeans.privacy.noise import NoiseSource
from splitmeans.table.walk.interface import RawRows
from splitmeans.table.walk.memory import as_rows

# Centres, hence trials, of one call; the user's distance from its centre, in radii.
_CENTRES = 1024
_FAR = 3
# Bins of a column, and intervals of a column that is cut into cells; the bins and cells of one call
# are its trials.
_BINS = 256
_INTERVALS = 16
# Other rows, in each bin or cell and where one trial is one call.
_PER_BIN = 4
_OTHERS = 200
# Synthetic points cost no privacy; with few of them a trial of all rounds is much shorter.
_FEW_POINTS = 256
# A score that is far beyond what a row's scores are clipped to.
_LARGE_SCORE = 900


def one_round(mechanism: GuidedLloyd, trials: int, noise: NoiseSource) -> Scores:
    """One round; every centre of a call is a trial and has a user of its own, or none has."""
    centres, radius = _lattice(mechanism)
    radii = np.full(_CENTRES, radius)
    users = centres.copy()
    users[:, 0] += _FAR * radius

    def ask(rows: IntArray, source: NoiseSource) -> IntArray:
        return mechanism.noisy_sums(as_rows(rows), centres, radii, mu=mechanism.mu, noise=source)

    there, away = np.vstack([centres, users]), centres
    raw = ask(away, Silence())
    change = ask(there, Silence()) - raw
    # Divided by their common size, which no score needs, squares stay far from overflowing.
    direction = change / radius

    def one_call(present: bool) -> FloatArray:
        noisy = ask(there if present else away, noise)
        return np.asarray(((noisy - raw) * direction).sum(axis=1))

    return scores_of_calls(one_call, trials=trials)


def one_column(mechanism: ColumnSurvey, trials: int, noise: NoiseSource) -> Scores:
    """The histogram of a single column; every bin of a call is a trial, as the centres above."""
    bins = _middles(_BINS, bound=mechanism.bounds[0])[:, np.newaxis]

    def one_call(present: bool) -> FloatArray:
        rows = np.tile(bins, (_PER_BIN + present, 1))
        return mechanism.noisy_histograms(as_rows(rows), mechanism.bins(_BINS), noise=noise)

    return scores_of_calls(one_call, trials=trials)


def products(mechanism: ColumnSurvey, trials: int, noise: NoiseSource) -> Scores:
    """Sums of products, for a user with a large score in every column; other rows have none."""
    user = np.array(mechanism.bounds, dtype=np.int64)
    rows = as_rows(np.vstack([-user, user]))
    others = as_rows(-user[np.newaxis])
    scores = [np.append(np.zeros(_BINS - 1, dtype=np.int64), _LARGE_SCORE) for _ in user]

    def one_call(present: bool) -> FloatArray:
        # All products move by the same, so their sum is as good as the likelihood ratio.
        noisy = mechanism.noisy_products(rows if present else others, scores, noise=noise)
        return np.array([float(noisy.sum())])

    return scores_of_calls(one_call, trials=trials)


def cells(mechanism: ColumnSurvey, trials: int, noise: NoiseSource) -> Scores:
    """The cells of two columns; every cell of a call is a trial."""
    edges = np.arange(_INTERVALS + 1) * (_BINS // _INTERVALS)
    cut = Intervals(edges=edges, points=np.zeros(_INTERVALS), spreads=np.zeros(_INTERVALS))
    axes = [_middles(_INTERVALS, bound=bound) for bound in mechanism.bounds]
    middles = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))

    def one_call(present: bool) -> FloatArray:
        rows = np.tile(middles, (_PER_BIN + present, 1))
        return mechanism.noisy_cells(as_rows(rows), [cut] * len(axes), noise=noise)

    return scores_of_calls(one_call, trials=trials)


def guided_lloyd(
    mechanism: GuidedLloyd, trials: int, noise: NoiseSource, *, start: IntArray | None = None
) -> Scores:
    """All that guided-lloyd with one centre computes from rows, but for the number of rows.

    `start` are published points that it begins from, as in a later run of a series.
    """
    user = np.array(mechanism.bounds, dtype=np.int64)
    rows = np.vstack([np.tile(-user, (_OTHERS, 1)), user])
    rng = np.random.default_rng(0)

    def one_call(present: bool) -> FloatArray:
        observer = _Observer(others=as_rows(rows[:-1]), all_rows=as_rows(rows))
        watched = _WatchedLloyd(
            n_clusters=1, bounds=mechanism.bounds, mu=mechanism.mu, observer=observer
        )
        with patch.object(algorithm, "N_POINTS", _FEW_POINTS):
            watched.release(rows[: _OTHERS + present], noise=noise, rng=rng, start=start)
        return np.array([sum(observer.gains)])

    return scores_of_calls(one_call, trials=trials)


def _lattice(mechanism: GuidedLloyd) -> tuple[IntArray, int]:
    """Return centres so far apart that each one's user is nearest to it, and the radius of all."""
    radius = mechanism.smallest_radius
    spacing = (2 * _FAR + 2) * radius
    axes = [np.arange(-bound + spacing // 2, bound, spacing) for bound in mechanism.bounds]
    places = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
    if len(places) < _CENTRES:
        raise ArithmeticError("too few centres fit into the box")
    return places[:_CENTRES].astype(np.int64), radius


def _middles(n_bins: int, *, bound: int) -> IntArray:
    """Return the middle of each bin of a column, on the grid."""
    return np.rint(((np.arange(n_bins) + 0.5) / n_bins * 2 - 1) * bound).astype(np.int64)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Observer:
    """Reads one release after the other; knows all rows but whether the last of them is there.

    Attributes:
        others: The rows that are there for certain.
        all_rows: Those and the user.
        gains: Log likelihood ratio of each release, up to a constant.
    """

    others: RawRows
    all_rows: RawRows
    gains: list[float] = field(default_factory=list)

    def read(self, noisy: Any, without_noise: Callable[[RawRows], Any], *, scale: float) -> None:
        """Add what a release says; `without_noise` computes the same of known rows."""
        away = without_noise(self.others)
        change = (without_noise(self.all_rows) - away) / scale
        self.gains.append(float(((noisy - away) / scale * change).sum()))


@dataclass(frozen=True, kw_only=True)
class _WatchedSurvey(ColumnSurvey):
    """The survey itself, with an observer of its releases."""

    observer: _Observer

    def noisy_histograms(self, rows: RawRows, bins: IntArray, *, noise: NoiseSource) -> FloatArray:
        ask = super().noisy_histograms
        noisy = ask(rows, bins, noise=noise)
        self.observer.read(
            noisy,
            lambda known: ask(known, bins, noise=Silence()),
            scale=self.column_scale / COUNT_UNITS,
        )
        return noisy

    def noisy_products(
        self, rows: RawRows, scores: list[IntArray], *, noise: NoiseSource
    ) -> IntArray:
        ask = super().noisy_products
        noisy = ask(rows, scores, noise=noise)
        self.observer.read(
            noisy, lambda known: ask(known, scores, noise=Silence()), scale=self.product_scale
        )
        return noisy

    def noisy_cells(
        self, rows: RawRows, columns: list[Intervals], *, noise: NoiseSource
    ) -> FloatArray:
        ask = super().noisy_cells
        noisy = ask(rows, columns, noise=noise)
        self.observer.read(
            noisy,
            lambda known: ask(known, columns, noise=Silence()),
            scale=self.cell_scale / COUNT_UNITS,
        )
        return noisy


@dataclass(frozen=True, kw_only=True)
class _WatchedLloyd(GuidedLloyd):
    """Guided-lloyd itself, with an observer of all its releases."""

    observer: _Observer

    @property
    def survey(self) -> ColumnSurvey:
        own = super().survey
        return _WatchedSurvey(bounds=own.bounds, mu=own.mu, observer=self.observer)

    def noisy_sums(
        self, rows: RawRows, centres: IntArray, radii: IntArray, *, mu: float, noise: NoiseSource
    ) -> IntArray:
        ask = super().noisy_sums
        noisy = ask(rows, centres, radii, mu=mu, noise=noise)
        self.observer.read(
            noisy,
            lambda known: ask(known, centres, radii, mu=mu, noise=Silence()),
            scale=mu_scale(sensitivity(int(radii[0])), mu=mu),
        )
        return noisy


def local_centre(
    mechanism: GuidedLloyd, trials: int, noise: NoiseSource, *, user: IntArray, others: IntArray
) -> Scores:
    """The centre that a local clustering with one cluster releases, projected on the user's row.

    The other rows should be enough that the noisy mean is hardly ever clipped. All that is computed
    on the way is hidden, so this needs many trials.
    """
    rows = np.vstack([others, user])

    def released(n: int, rng: np.random.Generator) -> FloatArray:
        sources = (noise.spawn(f"{n} rows, trial {trial}") for trial in range(trials))
        centres = [mechanism.release(rows[:n], noise=source, rng=rng).centres for source in sources]
        return np.array([float(centre[0] @ user) for centre in centres])

    first, second = np.random.default_rng(0).spawn(2)
    return Scores(with_user=released(len(others) + 1, first), without=released(len(others), second))
