"""A noisy histogram over cells that fit the data: where local clustering starts.

Three releases: the number of rows, the histogram of each column, and the histogram over the cells
that `column_splits` makes of those. The cells' places are known, so counts alone tell where the
rows are, and a count costs less than a sum. With one column the second release is the result.
"""

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from splitmeans._types import FloatArray, IntArray
from splitmeans.kernels.histograms import cell_histogram, column_histograms
from splitmeans.kmeans.simplex import project_to_simplex
from splitmeans.local.column_splits import Intervals, split_columns
from splitmeans.local.law import COUNT_UNITS, gaussian_counts
from splitmeans.local.laws.cells import CellHistogramLaw
from splitmeans.privacy.noise import NoiseSource
from splitmeans.table.walk.interface import RawRows
from splitmeans.table.walk.memory import as_rows

# A column has as many bins (a power of two) as leave this many deviations of noise to a bin, were
# the rows spread evenly; the cells are as many as leave them two.
BIN_DEVIATIONS = 9.0
CELL_DEVIATIONS = 2.0
MIN_BINS, MAX_BINS = 16, 256

# Counts below this many deviations of their noise are taken for noise: the first of these that
# leaves this share of all rows.
THRESHOLDS = (2.0, 1.5, 1.0)
KEPT_SHARE = 0.9
MAX_CELLS = 4096


@dataclass(frozen=True, kw_only=True, eq=False)
class Cells:
    """What is known of the rows: weighted points.

    Attributes:
        points: Middle of each cell, shape (cells, d), in grid units.
        weights: Rows in each cell: noisy, made non-negative.
        noisy_counts: Rows in each cell as released.
        spreads: Mean squared distance of a cell's rows from its point, as far as columns tell.
    """

    points: FloatArray
    weights: FloatArray
    noisy_counts: FloatArray
    spreads: FloatArray


class CellHistogram(CellHistogramLaw):
    """Counts of rows in cells fitted to the columns; for what they cost see the law."""

    def release(self, raw_rows: IntArray | RawRows, *, noise: NoiseSource) -> Cells:
        """Return the cells. `raw_rows` has shape (n, d), int64 on the grid."""
        rows = as_rows(raw_rows)
        limits = np.array(self.bounds, dtype=np.int64)
        raw_size = np.array([len(rows)])
        noisy_size = gaussian_counts(raw_size, scale=self.size_scale, noise=noise)[0]
        size = max(float(noisy_size), 1.0)
        column_deviation = self.column_scale / COUNT_UNITS
        n_bins = bins_for(size, noise_deviation=column_deviation)
        raw_counts = rows.total(partial(column_histograms, limits=limits, n_bins=n_bins))
        noisy_counts = gaussian_counts(raw_counts, scale=self.column_scale, noise=noise)
        weights = [
            without_noise(column, deviation=column_deviation, total=size) for column in noisy_counts
        ]
        middles = (np.arange(n_bins) + 0.5) / n_bins * 2 - 1
        positions = [middles * bound for bound in self.bounds]
        if len(self.bounds) == 1:
            within = (2 * self.bounds[0] / n_bins) ** 2 / 12
            return Cells(
                points=positions[0][:, np.newaxis],
                weights=weights[0],
                noisy_counts=noisy_counts[0],
                spreads=np.full(n_bins, within),
            )

        cell_deviation = self.cell_scale / COUNT_UNITS
        affordable = size / (CELL_DEVIATIONS * cell_deviation)
        most = min(max(affordable, self.min_cells), MAX_CELLS)
        columns = split_columns(weights, positions, max_cells=most)
        raw_cells = rows.total(
            partial(
                cell_histogram,
                limits=limits,
                places=_places(columns),
                n_cells=math.prod(len(column.points) for column in columns),
            )
        )
        noisy_cells = gaussian_counts(raw_cells, scale=self.cell_scale, noise=noise)
        return Cells(
            points=_product([column.points for column in columns]),
            weights=without_noise(noisy_cells, deviation=cell_deviation, total=size),
            noisy_counts=noisy_cells,
            spreads=_product([column.spreads for column in columns]).sum(axis=1),
        )


def without_noise(noisy_counts: FloatArray, *, deviation: float, total: float) -> FloatArray:
    """Return counts without what is probably noise: none negative, the sum at most about `total`.

    Small counts become zero, because noise in empty far-off cells would draw centres there. The
    threshold is the highest that leaves most of the rows; if none does, a common number is
    subtracted from all counts instead, as it is if too much remains.
    """
    for threshold in THRESHOLDS:
        kept = np.where(noisy_counts > threshold * deviation, noisy_counts, 0.0)
        if kept.sum() >= KEPT_SHARE * total:
            return kept if kept.sum() <= total else project_to_simplex(kept, total=total)
    return project_to_simplex(noisy_counts, total=total)


def bins_for(size: float, *, noise_deviation: float) -> int:
    """Return the number of bins of a column, a power of two, for about `size` rows."""
    wanted = size / (BIN_DEVIATIONS * noise_deviation)
    nearest_power = int(2 ** round(math.log2(max(wanted, 1.0))))
    return min(max(nearest_power, MIN_BINS), MAX_BINS)


def _places(columns: list[Intervals]) -> IntArray:
    """Return what each bin adds to the number of a row's cell, last column fastest."""
    places = []
    stride = 1
    for column in reversed(columns):
        places.append(column.interval_of_bin * stride)
        stride *= len(column.points)
    return np.array(places[::-1], dtype=np.int64)


def _product(values: list[FloatArray]) -> FloatArray:
    """Return all combinations of one value a column, as `_places` orders them; (cells, d)."""
    shape = [len(column) for column in values]
    cells = np.arange(math.prod(shape))
    columns = []
    for column, size in zip(reversed(values), reversed(shape), strict=True):
        columns.append(column[cells % size])
        cells = cells // size
    return np.column_stack(columns[::-1])
