"""What Lloyd's steps and their histogram release, with and without a user far outside every radius.

The functions look at a part's own interface, at the noisy sums before a centre is made of them: an
observer of the centres alone sees less, and needs many times the trials. All other rows are at one
point, so the observer knows what they add up to. Scores are log likelihood ratios.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from splitmeans._types import FloatArray, IntArray
from splitmeans.audit.case import Scores
from splitmeans.audit.noise_twins import Silence
from splitmeans.local.cells import CellHistogram, Cells
from splitmeans.local.dplloyd import DpLloyd
from splitmeans.local.histogram_lloyd import HistogramLloyd
from splitmeans.local.law import COUNT_UNITS
from splitmeans.local.laws.radius_lloyd import FINE_UNITS
from splitmeans.local.radius_lloyd import RadiusLloyd
from splitmeans.privacy.noise import NoiseSource
from splitmeans.table.walk.interface import RawRows
from splitmeans.table.walk.memory import as_rows

# Centres, hence trials, of one call; the user's distance from its centre, in radii.
_CENTRES = 1024
_FAR = 3
# Rows at one point, where one trial is one call.
_OTHERS = 200
# For DPLloyd few: then it makes two iterations, and a bound on epsilon is within reach of trials.
_FEW = 5
# Rows in each bin, where every bin is a trial; enough that the number of bins is the largest.
_PER_BIN = 40


def lloyd_step(mechanism: RadiusLloyd, trials: int, noise: NoiseSource) -> Scores:
    """One step; every centre of a call is a trial and has a user of its own, or none has."""
    centres, radius = _lattice(mechanism)
    radii = np.full(_CENTRES, radius)
    users = centres.copy()
    users[:, 0] += _FAR * radius

    def step(rows: IntArray, source: NoiseSource) -> IntArray:
        return mechanism.noisy_sums(as_rows(rows), centres, radii, noise=source)

    there, away = np.vstack([centres, users]), centres
    raw = step(away, Silence())
    change = (step(there, Silence()) - raw).astype(np.float64)

    def one_call(present: bool) -> FloatArray:
        noisy = step(there if present else away, noise)
        return np.asarray(((noisy - raw) * change).sum(axis=1) / mechanism.scale(radius) ** 2)

    return _in_calls(one_call, trials, _CENTRES)


def one_column(mechanism: CellHistogram, trials: int, noise: NoiseSource) -> Scores:
    """The histogram of a single column; every bin of a call is a trial, as the centres above."""
    bound = mechanism.bounds[0]
    n_bins = len(mechanism.release(np.zeros((2**20, 1), dtype=np.int64), noise=Silence()).points)
    middles = ((np.arange(n_bins) + 0.5) / n_bins * 2 - 1) * bound
    bins = np.rint(middles).astype(np.int64)[:, np.newaxis]

    def one_call(present: bool) -> FloatArray:
        rows = np.tile(bins, (_PER_BIN + present, 1))
        found = mechanism.release(rows, noise=noise).noisy_counts
        if len(found) != n_bins:
            raise ArithmeticError("the number of bins must not depend on the noise here")
        return found

    return _in_calls(one_call, trials, n_bins)


def cells(mechanism: CellHistogram, trials: int, noise: NoiseSource) -> Scores:
    """The count of the user's cell, among cells that follow from columns released before."""
    user = np.array(mechanism.bounds, dtype=np.int64)
    rows = np.vstack([np.tile(-user, (_OTHERS, 1)), user])

    def one_call(present: bool) -> FloatArray:
        released = mechanism.release(rows[: _OTHERS + present], noise=noise)
        return np.array([_beyond_others(released)])

    return _in_calls(one_call, trials, 1)


def histogram_lloyd(mechanism: HistogramLloyd, trials: int, noise: NoiseSource) -> Scores:
    """All that histogram-lloyd with one centre computes from rows, but for the number of rows."""
    user = np.array(mechanism.bounds, dtype=np.int64)
    others = np.tile(-user, (_OTHERS, 1))
    rng = np.random.default_rng(0)
    cell_scale = mechanism.start.column_scale if len(user) == 1 else mechanism.start.cell_scale
    # A count of one row is this many deviations.
    per_row = COUNT_UNITS / cell_scale

    def one_call(present: bool) -> FloatArray:
        watched = _WatchedTree(
            n_clusters=1,
            bounds=mechanism.bounds,
            mu=mechanism.mu,
            steps=mechanism.steps,
            start_share=mechanism.start_share,
        )
        rows = np.vstack([others, user]) if present else others
        watched.release(rows, noise=noise, rng=rng)
        score = _beyond_others(watched.cells[0]) * per_row**2
        for step in watched.steps_seen:
            centre, radius = step.centres[0], int(step.radii[0])
            known = _OTHERS * _row_share(-user, centre, radius)
            change = _row_share(user, centre, radius)
            scale = mechanism.lloyd.scale(radius)
            score += float((step.noisy[0] - known) @ change) / scale**2
        return np.array([score])

    return _in_calls(one_call, trials, 1)


def dplloyd_step(mechanism: DpLloyd, trials: int, noise: NoiseSource, *, iterations: int) -> Scores:
    """One of so many iterations of DPLloyd, at one centre."""
    rows = _user_among_zeros(mechanism.bounds)
    centres = np.zeros((1, len(mechanism.bounds)), dtype=np.int64)

    def one_call(present: bool) -> FloatArray:
        seen = mechanism.noisy_sums(
            as_rows(rows[: _FEW + present]), centres, iterations=iterations, noise=noise
        )
        return np.array([_laplace_gain(mechanism, seen, iterations=iterations)])

    return _in_calls(one_call, trials, 1)


def dplloyd(mechanism: DpLloyd, trials: int, noise: NoiseSource) -> Scores:
    """Everything that a whole run of DPLloyd computes from rows, but for the number of rows."""
    rows = _user_among_zeros(mechanism.bounds)
    rng = np.random.default_rng(0)

    def one_call(present: bool) -> FloatArray:
        watched = _WatchedDpLloyd(n_clusters=1, bounds=mechanism.bounds, epsilon=mechanism.epsilon)
        watched.release(rows[: _FEW + present], noise=noise, rng=rng)
        gains = [
            _laplace_gain(mechanism, noisy, iterations=iterations)
            for noisy, iterations in watched.seen
        ]
        return np.array([sum(gains)])

    return _in_calls(one_call, trials, 1)


def _in_calls(one_call: Callable[[bool], FloatArray], trials: int, per_call: int) -> Scores:
    calls = -(-trials // per_call)
    with_user, without = (
        np.concatenate([one_call(present) for _ in range(calls)])[:trials]
        for present in (True, False)
    )
    return Scores(with_user=with_user, without=without)


def _lattice(mechanism: RadiusLloyd) -> tuple[IntArray, int]:
    """Return centres so far apart that each one's user is nearest to it, and the radius of all."""
    radius = mechanism.smallest_radius
    spacing = (2 * _FAR + 2) * radius
    axes = [np.arange(-bound + spacing // 2, bound, spacing) for bound in mechanism.bounds]
    places = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(axes))
    if len(places) < _CENTRES:
        raise ArithmeticError("too few centres fit into the box")
    return places[:_CENTRES].astype(np.int64), radius


def _row_share(row: IntArray, centre: IntArray, radius: int) -> FloatArray:
    """Return what a row adds to a step's sums at the only centre there is, as the proof has it."""
    offset = (row - centre).astype(np.float64)
    length = float(np.linalg.norm(offset))
    clipped = min(length, radius)
    share = [*(offset * (clipped / max(length, 1.0))), 3 * radius // 8, clipped**2 / (4 * radius)]
    return np.array(share) * FINE_UNITS


def _beyond_others(cells: Cells) -> float:
    """Return the noisy count of the user's cell, less the others who are in it.

    The user is at the upper end of every column, so in the last cell; the others in the first.
    """
    return float(cells.noisy_counts[-1]) - (_OTHERS if len(cells.noisy_counts) == 1 else 0)


def _user_among_zeros(bounds: tuple[int, ...]) -> IntArray:
    """Return rows at zero and, last, the user at the bounds: sums are not relative to a centre."""
    return np.vstack([np.zeros((_FEW, len(bounds)), dtype=np.int64), np.array(bounds)])


def _laplace_gain(mechanism: DpLloyd, noisy: IntArray, *, iterations: int) -> float:
    """Return the log likelihood ratio of one centre's sums and count."""
    count_scale, sum_scales = mechanism.iteration_scales(iterations)
    scales = np.array([*sum_scales, count_scale])
    change = np.array([*mechanism.bounds, 1])
    beyond = noisy[0] - np.array([0] * len(mechanism.bounds) + [_FEW])
    return float(((np.abs(beyond) - np.abs(beyond - change)) / scales).sum())


@dataclass(frozen=True, kw_only=True)
class _StepSeen:
    centres: IntArray
    radii: IntArray
    noisy: IntArray


@dataclass(frozen=True, kw_only=True)
class _WatchedLloyd(RadiusLloyd):
    seen: list[_StepSeen]

    def noisy_sums(
        self, raw_rows: RawRows, centres: IntArray, radii: IntArray, *, noise: NoiseSource
    ) -> IntArray:
        noisy = super().noisy_sums(raw_rows, centres, radii, noise=noise)
        self.seen.append(_StepSeen(centres=centres, radii=radii, noisy=noisy))
        return noisy


@dataclass(frozen=True, kw_only=True)
class _WatchedCells(CellHistogram):
    seen: list[Cells]

    def release(self, raw_rows: IntArray | RawRows, *, noise: NoiseSource) -> Cells:
        released = super().release(raw_rows, noise=noise)
        self.seen.append(released)
        return released


@dataclass(frozen=True, kw_only=True)
class _WatchedTree(HistogramLloyd):
    """Tree-lloyd itself, with both parts' releases kept."""

    cells: list[Cells] = field(default_factory=list)
    steps_seen: list[_StepSeen] = field(default_factory=list)

    @property
    def start(self) -> CellHistogram:
        own = super().start
        return _WatchedCells(bounds=own.bounds, mu=own.mu, min_cells=own.min_cells, seen=self.cells)

    @property
    def lloyd(self) -> RadiusLloyd:
        own = super().lloyd
        return _WatchedLloyd(bounds=own.bounds, mu=own.mu, steps=own.steps, seen=self.steps_seen)


@dataclass(frozen=True, kw_only=True)
class _WatchedDpLloyd(DpLloyd):
    seen: list[tuple[IntArray, int]] = field(default_factory=list)

    def noisy_sums(
        self, raw_rows: RawRows, centres: IntArray, *, iterations: int, noise: NoiseSource
    ) -> IntArray:
        noisy = super().noisy_sums(raw_rows, centres, iterations=iterations, noise=noise)
        self.seen.append((noisy, iterations))
        return noisy
