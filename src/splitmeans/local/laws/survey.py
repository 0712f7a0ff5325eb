"""Public law of the first look at a party's rows; see `local.survey`."""

import math
from dataclasses import dataclass

from splitmeans import _validate
from splitmeans.local.law import COUNT_UNITS, check_public, gaussian_event, mu_scale, whole_root
from splitmeans.privacy.events import ComposedEvent

# Shares of mu^2, by measurement: the number of rows, and of the rest the histograms of columns and
# the histogram over cells of all of them, which alone shows clusters apart from each other. What
# then remains is for the products of scores.
SIZE_SHARE = 0.02
COLUMN_SHARE = 0.3
CELL_SHARE = 0.5

# A column has as many bins (a power of two) as leave this many deviations of noise to a bin, were
# the rows spread evenly.
BIN_DEVIATIONS = 9.0
MIN_BINS, MAX_BINS = 16, 256

# Scores are whole numbers of this part of a standard deviation.
SCORE_UNITS = 2**8
# The squared length of a row's scores is clipped to this many times what it is on average.
LONGEST_SCORES = 1.5


@dataclass(frozen=True, kw_only=True)
class SurveyLaw:
    """The number of rows, the histogram of each column, and how columns go together.

    Guarantee: for adding or removing one row, mu-Gaussian privacy. A row moves the number of rows
    by 1, one bin of each of c columns by 1 (L2 sensitivity sqrt(c)), the products of its scores, a
    vector of length at most l, by at most l^2 sqrt((c - 1) / (2 c)), and one cell by 1. A column of
    levels is one column, however many levels it has: a row is in one of its bins. A row without a
    value in a column moves less. Bins, scores and cells are chosen from values released before.

    Attributes:
        bounds: Largest grid integer of each feature.
        mu: Cost of one release.
        levels: Number of levels of each column, 0 for numbers; empty if every feature is a column
            of numbers.
    """

    bounds: tuple[int, ...]
    mu: float
    levels: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        check_public(n_clusters=1, bounds=self.bounds, levels=self.levels)
        _validate.positive(mu=self.mu)

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return len(self.levels) or len(self.bounds)

    @property
    def size_scale(self) -> int:
        """Scale of the noise on the number of rows, in 1/COUNT_UNITS of a row."""
        return mu_scale(COUNT_UNITS, mu=self.mu * math.sqrt(SIZE_SHARE))

    @property
    def column_scale(self) -> int:
        """Scale of the noise on every bin of every column, in the same unit."""
        share = 1.0 if self.n_columns == 1 else COLUMN_SHARE
        return mu_scale(self.column_sensitivity, mu=self._part(share))

    @property
    def product_scale(self) -> int:
        """Scale of the noise on every sum of products, in squared score units."""
        share = 1 - COLUMN_SHARE - CELL_SHARE
        return mu_scale(self.product_sensitivity, mu=self._part(share))

    @property
    def cell_scale(self) -> int:
        """Scale of the noise on every cell, in 1/COUNT_UNITS of a row."""
        return mu_scale(COUNT_UNITS, mu=self._part(CELL_SHARE))

    @property
    def column_sensitivity(self) -> int:
        """L2 norm by which a row moves the histograms of all columns, in 1/COUNT_UNITS."""
        return whole_root(self.n_columns * COUNT_UNITS**2)

    @property
    def longest_scores(self) -> int:
        """Length of the longest vector of scores, in score units."""
        return math.isqrt(int(LONGEST_SCORES * self.n_columns * SCORE_UNITS**2))

    @property
    def product_sensitivity(self) -> int:
        """L2 norm by which a row moves the sums of products of two columns, rounded up.

        Its square is (|z|^4 - sum z_i^4) / 2, and the sum is at least |z|^4 / c.
        """
        c = self.n_columns
        return whole_root(self.longest_scores**4 * (c - 1) // (2 * c) + 1)

    @property
    def event(self) -> ComposedEvent:
        """The number of rows, all columns as one vector, the products, the cells."""
        c = self.n_columns
        parts = [
            gaussian_event(self.size_scale, sensitivity=COUNT_UNITS, coordinates=1),
            gaussian_event(self.column_scale, sensitivity=self.column_sensitivity, coordinates=c),
        ]
        if c > 1:
            products = gaussian_event(
                self.product_scale,
                sensitivity=self.product_sensitivity,
                coordinates=c * (c - 1) // 2,
            )
            cells = gaussian_event(self.cell_scale, sensitivity=COUNT_UNITS, coordinates=1)
            parts += [products, cells]
        return ComposedEvent(parts=tuple(parts))

    def _part(self, share: float) -> float:
        return self.mu * math.sqrt((1 - SIZE_SHARE) * share)


def bins_for(size: float, *, noise_deviation: float) -> int:
    """Return the number of bins of a column, a power of two, for about `size` rows."""
    wanted = size / (BIN_DEVIATIONS * noise_deviation)
    nearest_power = int(2 ** round(math.log2(max(wanted, 1.0))))
    return min(max(nearest_power, MIN_BINS), MAX_BINS)
