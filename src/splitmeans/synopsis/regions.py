"""Regions: neighbouring local clusters together, to see where a table has nobody.

A cell within the noise is cut, but of several hundred empty cells some stand out by chance. Each is
small; together, far from everybody, they can draw a centre there (taxi data, two parties, epsilon
0.25: one run of ten had 720 users, of 99,000, where there are none, and a loss of 1.18 times that
of central k-means). Their sum over a whole region of clusters at both parties does not stand out,
because most cells there have noise below zero. So a cell stays only if the sum of its region does,
or if the cells of the region that stand out are together more than noise would leave there: a few
users of a rare combination are lost in the sum of thirty cells, but not among those.
Made from released values only.
"""

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from splitmeans._types import FloatArray, IntArray
from splitmeans.kmeans.nearest import nearest_centres
from splitmeans.kmeans.weighted_kmeans import weighted_kmeans

# For each party the region of each of its clusters, shape (k',).
Regions: TypeAlias = Sequence[IntArray]

# So many clusters to a region on average: a region of two parties has some thirty cells.
_CLUSTERS_IN_A_REGION = 5.5
# Sums of regions below so many deviations of their noise are taken for noise.
_STANDING_OUT = 2.0
# Cells above so many deviations stand out. Of a standard normal variable that is above it, the
# mean and the mean square over all draws; and by how many deviations a region must have more.
_CELL = 2.5
_MEAN_ABOVE = math.exp(-(_CELL**2) / 2) / math.sqrt(2 * math.pi)
_SQUARE_ABOVE = _CELL * _MEAN_ABOVE + math.erfc(_CELL / math.sqrt(2)) / 2
_MORE_THAN_CHANCE = 3.0


def regions_of(centres: Sequence[IntArray]) -> Regions:
    """Return the regions of the parties' local centres, each of shape (k', d): k-means on them."""
    found = []
    for own in centres:
        n_regions = max(1, round(len(own) / _CLUSTERS_IN_A_REGION))
        places = own.astype(np.float64)
        # Nothing is hidden by the starts, and the same centres have the same regions.
        rng = np.random.default_rng(0)
        middles = weighted_kmeans(places, np.ones(len(own)), n_clusters=n_regions, rng=rng)
        found.append(nearest_centres(places, middles).astype(np.int64))
    return found


def where_users_are(
    table: FloatArray, rows: IntArray, columns: IntArray, *, deviation: float
) -> npt.NDArray[np.bool_]:
    """Mark the cells of a noisy table whose regions together stand out from the noise.

    Args:
        table: Unbiased counts, shape (k'_i, k'_j).
        rows: Region of each row.
        columns: Region of each column.
        deviation: Standard deviation of the noise of a cell.
    """
    first, second = (np.eye(int(own.max()) + 1)[own] for own in (rows, columns))
    sums = first.T @ table @ second
    cells = np.outer(first.sum(axis=0), second.sum(axis=0))
    standing_out = sums >= _STANDING_OUT * deviation * np.sqrt(cells)
    of_cells = first.T @ np.where(table >= _CELL * deviation, table, 0.0) @ second
    chance = _MEAN_ABOVE * cells + _MORE_THAN_CHANCE * np.sqrt(_SQUARE_ABOVE * cells)
    standing_out |= of_cells > deviation * chance
    return np.asarray(standing_out[np.ix_(rows, columns)])
