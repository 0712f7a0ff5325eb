"""A first look at a party's rows: their number, each column's histogram, how columns go together.

How columns go together is told by their scores: a bin's score is where a standard normal variable
with the column's share below the middle of the bin would be, so that sums of products of scores say
how columns rise and fall together, whatever their shapes. Cells of all columns (`column_splits`)
show clusters apart from each other, which scores cannot. Everything that `synthetic.py` makes of
this is post-processing.

A column of levels has a bin for each. Its levels have no order of their own, so they are put in
that of their released counts, the largest first; from there on it is a column like the others.
"""

import math
import statistics
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from splitmeans._types import FloatArray, IntArray
from splitmeans.kernels.histograms import cell_histogram, column_histograms, score_products
from splitmeans.kmeans.simplex import project_to_simplex
from splitmeans.local.column_splits import Intervals, as_listed, split_columns
from splitmeans.local.law import COUNT_UNITS, gaussian_counts
from splitmeans.local.laws.survey import SCORE_UNITS, SurveyLaw, bins_for
from splitmeans.privacy.noise import NoiseSource
from splitmeans.table.walk.interface import RawRows
from splitmeans.table.walk.memory import as_rows

# The cells are as many as leave them so many deviations of noise, were the rows spread evenly.
CELL_DEVIATIONS = 2.0
MIN_CELLS, MAX_CELLS = 16, 4096

# Counts below this many deviations of their noise are taken for noise: the first of these that
# leaves this share of all rows.
THRESHOLDS = (2.0, 1.5, 1.0)
KEPT_SHARE = 0.9

# A column that more rows lack is not cut into cells; none is taken to have fewer values than this
# share of the rows; and rows are lacking if they are this many deviations of noise.
LEAST_PRESENT = 0.9
SMALLEST_PRESENT = 0.05
_STANDING_OUT = 3.0

# Shares closer than this to 0 or 1 have the score of this.
_OUTERMOST = 1e-4


@dataclass(frozen=True, kw_only=True, eq=False)
class CellCounts:
    """Rows in cells of all columns.

    Attributes:
        columns: How each column is cut; of levels, in their order.
        noisy_counts: Rows in each cell, in the order of `cells_of`.
        deviation: Standard deviation of the noise on each.
    """

    columns: list[Intervals]
    noisy_counts: FloatArray
    deviation: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Survey:
    """What was released of the rows, without what is probably noise.

    Attributes:
        size: Number of rows, 1 or more.
        shares: For each column the share of its rows in each bin, levels in their order.
        orders: For each column of levels their order, the most frequent first; None for numbers.
        present: Share of the rows that have a value, shape (c,).
        correlation: Of the columns' scores, shape (c, c), noisy; ones on the diagonal.
        correlation_deviation: Standard deviation of the noise on its entries.
        cells: The rows in cells; None for one column.
    """

    size: float
    shares: list[FloatArray]
    orders: list[IntArray | None]
    present: FloatArray
    correlation: FloatArray
    correlation_deviation: FloatArray
    cells: CellCounts | None


class ColumnSurvey(SurveyLaw):
    """Makes the survey; for what it costs see the law."""

    def release(self, raw_rows: IntArray | RawRows, *, noise: NoiseSource) -> Survey:
        """Return what is known of the rows. `raw_rows` has shape (n, d), int64 on the grid."""
        rows = as_rows(raw_rows)
        raw_size = np.array([len(rows)])
        size = max(float(gaussian_counts(raw_size, scale=self.size_scale, noise=noise)[0]), 1.0)
        deviation = self.column_scale / COUNT_UNITS
        bins = self.bins(bins_for(size, noise_deviation=deviation))
        noisy_counts = np.split(
            self.noisy_histograms(rows, bins, noise=noise), np.cumsum(bins)[:-1]
        )
        present = np.ones(self.n_columns)
        if self.levels:
            present = np.array(
                [present_share(own, deviation=deviation, size=size) for own in noisy_counts]
            )
        counts = [
            coarse_to_fine(own, total=size * share)
            if limit
            else without_noise(own, deviation=deviation, total=size * share)
            for own, share, limit in zip(noisy_counts, present, self.limits, strict=True)
        ]
        orders = [
            np.argsort(-own, kind="stable") if limit == 0 else None
            for own, limit in zip(counts, self.limits, strict=True)
        ]
        counts = [_ordered(own, order) for own, order in zip(counts, orders, strict=True)]
        shares = [own / max(float(own.sum()), 1e-9) for own in counts]
        correlation, uncertain = self._correlation(
            rows, shares, orders, pairs=size * np.outer(present, present), noise=noise
        )
        cells = None
        if self.n_columns > 1:
            # A row that lacks a value of a column that is cut is in no cell.
            usable = [
                own * (share > LEAST_PRESENT) for own, share in zip(counts, present, strict=True)
            ]
            cells = self._cells(rows, usable, orders, size=size, noise=noise)
        return Survey(
            size=size,
            shares=shares,
            orders=orders,
            present=present,
            correlation=correlation,
            correlation_deviation=uncertain,
            cells=cells,
        )

    @property
    def limits(self) -> IntArray:
        """Largest grid integer of each column, 0 for levels; see `kernels.histograms`."""
        if not self.levels:
            return np.array(self.bounds, dtype=np.int64)
        firsts = np.cumsum([0, *(max(1, n) for n in self.levels[:-1])])
        return np.where(np.array(self.levels) > 0, 0, np.array(self.bounds)[firsts])

    def bins(self, n_bins: int) -> IntArray:
        """Return the bins of each column, where one of numbers has so many."""
        return np.array([n or n_bins for n in self.levels or (0,) * len(self.bounds)])

    def noisy_histograms(self, rows: RawRows, bins: IntArray, *, noise: NoiseSource) -> FloatArray:
        """Return the noisy count of each bin of all columns, one column after the other."""
        raw_counts = rows.total(partial(column_histograms, limits=self.limits, bins=bins))
        return gaussian_counts(raw_counts, scale=self.column_scale, noise=noise)

    def noisy_products(
        self, rows: RawRows, scores: list[IntArray], *, noise: NoiseSource
    ) -> IntArray:
        """Return the noisy sums of products of scores, for the pairs i < j of columns in order.

        `scores` are for each column those of its bins, or of its levels as they are listed.
        """
        part = partial(
            score_products,
            limits=self.limits,
            bins=np.array([len(own) for own in scores]),
            scores=np.concatenate(scores),
            longest=self.longest_scores,
        )
        raw = rows.total(part)[np.triu_indices(self.n_columns, 1)]
        return np.asarray(raw + noise.gaussian(self.product_scale, len(raw)))

    def noisy_cells(
        self, rows: RawRows, columns: list[Intervals], *, noise: NoiseSource
    ) -> FloatArray:
        """Return the noisy count of each cell of columns that are cut so, last column fastest."""
        places = _places([column.interval_of_code for column in columns], columns)
        part = partial(
            cell_histogram,
            limits=self.limits,
            bins=np.array([len(own) for own in places]),
            places=np.concatenate(places),
            n_cells=math.prod(len(column.points) for column in columns),
        )
        return gaussian_counts(rows.total(part), scale=self.cell_scale, noise=noise)

    def _correlation(
        self,
        rows: RawRows,
        shares: list[FloatArray],
        orders: list[IntArray | None],
        *,
        pairs: FloatArray,
        noise: NoiseSource,
    ) -> tuple[FloatArray, FloatArray]:
        """Return correlations and their noise; `pairs` are the rows with values in both columns."""
        c = self.n_columns
        correlation, deviation = np.eye(c), np.zeros((c, c))
        if c == 1:
            return correlation, deviation
        scores = [normal_scores(np.cumsum(own) - own / 2) for own in shares]
        whole = [
            as_listed(np.rint(own * SCORE_UNITS).astype(np.int64), order)
            for own, order in zip(scores, orders, strict=True)
        ]
        noisy = self.noisy_products(rows, whole, noise=noise)
        # A column with all rows in a few bins has scores of less than the normal variance.
        squares = [float((own * z**2).sum()) for own, z in zip(shares, scores, strict=True)]
        spread = np.sqrt(np.maximum(squares, 1e-2))
        units = SCORE_UNITS**2 * pairs * np.outer(spread, spread)
        upper = np.triu_indices(c, 1)
        correlation[upper] = noisy / units[upper]
        deviation[upper] = self.product_scale / units[upper]
        return np.triu(correlation) + np.triu(correlation, 1).T, deviation + deviation.T

    def _cells(
        self,
        rows: RawRows,
        counts: list[FloatArray],
        orders: list[IntArray | None],
        *,
        size: float,
        noise: NoiseSource,
    ) -> CellCounts:
        deviation = self.cell_scale / COUNT_UNITS
        most = min(max(size / (CELL_DEVIATIONS * deviation), MIN_CELLS), MAX_CELLS)
        cut = split_columns(counts, self._positions(counts), max_cells=most)
        columns = [replace(own, order=order) for own, order in zip(cut, orders, strict=True)]
        noisy_cells = self.noisy_cells(rows, columns, noise=noise)
        return CellCounts(columns=columns, noisy_counts=noisy_cells, deviation=deviation)

    def _positions(self, counts: list[FloatArray]) -> list[FloatArray | float]:
        """Return where the bins of a column of numbers are, or how far levels are apart."""
        found: list[FloatArray | float] = []
        first = 0
        for own, limit in zip(counts, self.limits, strict=True):
            n_bins = len(own)
            middles = (np.arange(n_bins) + 0.5) / n_bins * 2 - 1
            found.append(middles * limit if limit else 2.0 * self.bounds[first])
            first += 1 if limit else n_bins
        return found


def _ordered(values: FloatArray, order: IntArray | None) -> FloatArray:
    return values if order is None else values[order]


def present_share(noisy_counts: FloatArray, *, deviation: float, size: float) -> float:
    """Return the share of rows that have a value in a column: all, unless more than noise lack."""
    total = float(noisy_counts.sum())
    if total > size - _STANDING_OUT * deviation * math.sqrt(len(noisy_counts)):
        return 1.0
    return max(total / size, SMALLEST_PRESENT)


def without_noise(noisy_counts: FloatArray, *, deviation: float, total: float) -> FloatArray:
    """Return counts without what is probably noise: none negative, the sum at most about `total`.

    Small counts become zero, because noise in empty far-off bins would draw centres there. The
    threshold is the highest that leaves most of the rows; if none does, a common number is
    subtracted from all counts instead, as it is if too much remains.
    """
    for threshold in THRESHOLDS:
        kept = np.where(noisy_counts > threshold * deviation, noisy_counts, 0.0)
        if kept.sum() >= KEPT_SHARE * total:
            return kept if kept.sum() <= total else project_to_simplex(kept, total=total)
    return project_to_simplex(noisy_counts, total=total)


def coarse_to_fine(noisy_counts: FloatArray, *, total: float) -> FloatArray:
    """Return counts of bins side by side, a power of two, none negative, the sum `total`.

    From coarse to fine: each half of a range has half of what the range has, and half of what it
    was counted to have more than the other. So bins that together have more rows than noise keep
    them, also where none of them alone does, as in a thin tail; and far from everybody noise finds
    next to nothing to divide.
    """
    counts = np.array([total])
    while len(counts) < len(noisy_counts):
        halves = noisy_counts.reshape(2 * len(counts), -1).sum(axis=1)
        first = np.clip((counts + halves[::2] - halves[1::2]) / 2, 0.0, counts)
        counts = np.column_stack([first, counts - first]).ravel()
    return counts


def normal_scores(shares: FloatArray) -> FloatArray:
    """Return where a standard normal variable has these shares below it; same shape."""
    inside = np.clip(shares, _OUTERMOST, 1 - _OUTERMOST)
    # A few thousand values at most, and empty bins leave many of them the same: the standard
    # library will do.
    different, which = np.unique(inside, return_inverse=True)
    quantile = statistics.NormalDist().inv_cdf
    return np.array([quantile(share) for share in different])[which].reshape(shares.shape)


def cells_of(bins: IntArray, columns: list[Intervals]) -> IntArray:
    """Return the cell of points in these bins, shape (n, c); the last column's change fastest."""
    places = _places([column.interval_of_bin for column in columns], columns)
    return np.asarray(sum(own[bins[:, j]] for j, own in enumerate(places)), dtype=np.int64)


def _places(intervals: list[IntArray], columns: list[Intervals]) -> list[IntArray]:
    """Return what each bin adds to the number of a row's cell, last column fastest."""
    places = []
    stride = 1
    for own, column in zip(reversed(intervals), reversed(columns), strict=True):
        places.append(own.astype(np.int64) * stride)
        stride *= len(column.points)
    return places[::-1]
