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

# Scores are whole numbers of this part of a standard deviation.
SCORE_UNITS = 2**8
# The squared length of a row's scores is clipped to this many times what it is on average.
LONGEST_SCORES = 1.5


@dataclass(frozen=True, kw_only=True)
class SurveyLaw:
    """The number of rows, the histogram of each column, and how columns go together.

    Guarantee: for adding or removing one row, mu-Gaussian privacy. A row moves the number of rows
    by 1, one bin of each of d columns by 1 (L2 sensitivity sqrt(d)), the products of its scores, a
    vector of length at most l, by at most l^2 sqrt((d - 1) / (2 d)), and one cell by 1. Bins,
    scores and cells are chosen from values released before.

    Attributes:
        bounds: Largest grid integer of each column.
        mu: Cost of one release.
    """

    bounds: tuple[int, ...]
    mu: float

    def __post_init__(self) -> None:
        check_public(n_clusters=1, bounds=self.bounds)
        _validate.positive(mu=self.mu)

    @property
    def size_scale(self) -> int:
        """Scale of the noise on the number of rows, in 1/COUNT_UNITS of a row."""
        return mu_scale(COUNT_UNITS, mu=self.mu * math.sqrt(SIZE_SHARE))

    @property
    def column_scale(self) -> int:
        """Scale of the noise on every bin of every column, in the same unit."""
        share = 1.0 if len(self.bounds) == 1 else COLUMN_SHARE
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
        return whole_root(len(self.bounds) * COUNT_UNITS**2)

    @property
    def longest_scores(self) -> int:
        """Length of the longest vector of scores, in score units."""
        return math.isqrt(int(LONGEST_SCORES * len(self.bounds) * SCORE_UNITS**2))

    @property
    def product_sensitivity(self) -> int:
        """L2 norm by which a row moves the sums of products of two columns, rounded up.

        Its square is (|z|^4 - sum z_i^4) / 2, and the sum is at least |z|^4 / d.
        """
        d = len(self.bounds)
        return whole_root(self.longest_scores**4 * (d - 1) // (2 * d) + 1)

    @property
    def event(self) -> ComposedEvent:
        """The number of rows, all columns as one vector, the products, the cells."""
        d = len(self.bounds)
        parts = [
            gaussian_event(self.size_scale, sensitivity=COUNT_UNITS, coordinates=1),
            gaussian_event(self.column_scale, sensitivity=self.column_sensitivity, coordinates=d),
        ]
        if d > 1:
            products = gaussian_event(
                self.product_scale,
                sensitivity=self.product_sensitivity,
                coordinates=d * (d - 1) // 2,
            )
            cells = gaussian_event(self.cell_scale, sensitivity=COUNT_UNITS, coordinates=1)
            parts += [products, cells]
        return ComposedEvent(parts=tuple(parts))

    def _part(self, share: float) -> float:
        return self.mu * math.sqrt((1 - SIZE_SHARE) * share)
