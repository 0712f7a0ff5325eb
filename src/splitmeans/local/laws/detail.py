"""Public law of the shapes within clusters that a study may ask for; see `local.detail`."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from splitmeans import _validate
from splitmeans._types import NoiseLine
from splitmeans.errors import ParameterError
from splitmeans.local.law import COUNT_UNITS, gaussian_event, mu_scale, whole_root
from splitmeans.privacy.events import ComposedEvent

# Most bins of a whole column of numbers.
WHOLE_BINS = 96

# Shares of mu^2, by measurement (docs/synthetic.md): the histograms of whole columns, and of the
# rest the tables of pairs, where there are any. What remains is for the columns in each cluster.
WHOLE_SHARE = 0.3
PAIRS_SHARE = 0.4

# Tables of pairs are asked for where a cell of the largest would have so many deviations of noise
# in users, were they spread evenly; below, what columns have in common is told better by clusters.
PAIR_DEVIATIONS = 8.0
_CELLS_OF_PAIR = 256


@dataclass(frozen=True, kw_only=True)
class DetailLaw:
    """Histograms of a party's columns, whole and in each of its clusters, and tables of pairs.

    Guarantee: for adding or removing one row, mu-Gaussian privacy. A row moves one bin of each of
    c whole columns by 1 (L2 sensitivity sqrt(c)); it is in one cluster, where it moves one bin of
    each column by 1 (sqrt(c) again); and it moves one cell of each of p pairs by 1 (sqrt(p)). A row
    without a value in a column moves less. Clusters are those of the released centres; bins and
    pairs are chosen from values released before, and how many pairs there are from public
    quantities.

    Attributes:
        n_columns: Number of columns, c.
        n_pairs: Number of pairs of columns, p; 0 for none.
        mu: Cost of one release.
    """

    TAG: ClassVar[str] = "Detail"

    n_columns: int
    n_pairs: int
    mu: float

    def __post_init__(self) -> None:
        _validate.at_least(1, n_columns=self.n_columns)
        _validate.at_least(0, n_pairs=self.n_pairs)
        _validate.positive(mu=self.mu)
        if self.n_pairs > math.comb(self.n_columns, 2):
            raise ParameterError(f"{self.n_columns} columns have no {self.n_pairs} pairs")

    @property
    def column_sensitivity(self) -> int:
        """L2 norm by which a row moves the histograms of all columns, in 1/COUNT_UNITS."""
        return whole_root(self.n_columns * COUNT_UNITS**2)

    @property
    def pair_sensitivity(self) -> int:
        """L2 norm by which a row moves the tables of all pairs, in 1/COUNT_UNITS."""
        return whole_root(self.n_pairs * COUNT_UNITS**2)

    @property
    def whole_scale(self) -> int:
        """Scale of the noise on every bin of a whole column, in 1/COUNT_UNITS of a row."""
        return mu_scale(self.column_sensitivity, mu=self.mu * math.sqrt(WHOLE_SHARE))

    @property
    def cluster_scale(self) -> int:
        """Scale of the noise on every bin of a column in a cluster, in the same unit."""
        share = (1 - WHOLE_SHARE) * (1 - PAIRS_SHARE if self.n_pairs else 1.0)
        return mu_scale(self.column_sensitivity, mu=self.mu * math.sqrt(share))

    @property
    def pair_scale(self) -> int:
        """Scale of the noise on every cell of a pair, in the same unit."""
        share = (1 - WHOLE_SHARE) * PAIRS_SHARE
        return mu_scale(self.pair_sensitivity, mu=self.mu * math.sqrt(share))

    def label_deviation(self, n_levels: int, *, labels: int) -> float:
        """Deviation of the noise in users of a level, or of one of so many labels of a number."""
        narrow = 1.0 if n_levels else WHOLE_BINS / labels
        return self.whole_scale / COUNT_UNITS * math.sqrt(narrow)

    @property
    def event(self) -> ComposedEvent:
        """The whole columns as one vector, those in clusters as another, all pairs as a third."""
        c = self.n_columns
        parts = [
            gaussian_event(scale, sensitivity=self.column_sensitivity, coordinates=c)
            for scale in (self.whole_scale, self.cluster_scale)
        ]
        if self.n_pairs:
            pairs = gaussian_event(
                self.pair_scale, sensitivity=self.pair_sensitivity, coordinates=self.n_pairs
            )
            parts.append(pairs)
        return ComposedEvent(parts=tuple(parts))

    def noise_lines(self) -> Iterator[NoiseLine]:
        """Yield the noise of a release."""
        yield "each bin of a whole column", self.whole_scale / COUNT_UNITS, "users"
        yield "each bin of a column in a cluster", self.cluster_scale / COUNT_UNITS, "users"
        if self.n_pairs:
            yield "each cell of a pair of columns", self.pair_scale / COUNT_UNITS, "users"


def pairs_for(n_columns: int, *, mu: float, users: int) -> int:
    """Return how many pairs of columns are released; a function of public quantities alone.

    As many as a tree over the columns has, or none.
    """
    wanted = n_columns - 1
    if not wanted:
        return 0
    share = (1 - WHOLE_SHARE) * PAIRS_SHARE
    deviation = math.sqrt(wanted) / (mu * math.sqrt(share))
    return wanted if users / _CELLS_OF_PAIR >= PAIR_DEVIATIONS * deviation else 0
