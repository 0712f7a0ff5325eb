"""Which share of a cell's users is in which segment, as the pseudo-users of the cell tell.

A segment is what is nearest to its centre, and a border between two segments may cross a cell of
the grid. The cell's pseudo-users are where the parties' released points say that users are, so the
sizes of segments are sums over cells of the cells' users times these shares.
"""

from dataclasses import dataclass

import numpy as np

from splitmeans._types import FloatArray, IntArray
from splitmeans.kmeans.distances import squared_distances
from splitmeans.synopsis.segments import assign_nodes
from splitmeans.synopsis.synopsis import Synopsis


@dataclass(frozen=True, kw_only=True, eq=False)
class CellShares:
    """Shares of the cells of a grid by segment; those of each cell add up to one.

    Attributes:
        n_segments: How many segments.
        n_cells: How many cells.
        cells: A cell, in the order of the grid, shape (entries,).
        segments: A segment that has some of its users.
        shares: Which share of its users, above zero.
    """

    n_segments: int
    n_cells: int
    cells: IntArray
    segments: IntArray
    shares: FloatArray

    def sizes(self, users: FloatArray) -> FloatArray:
        """Return the users of each segment for a table of users of all cells."""
        weights = users.ravel()[self.cells] * self.shares
        found = np.bincount(self.segments, weights=weights, minlength=self.n_segments)
        return np.asarray(found, dtype=np.float64)

    def squares(self) -> FloatArray:
        """Return for each segment the sum of squared shares: what noise of 1 on cells becomes."""
        found = np.bincount(
            self.segments, weights=np.square(self.shares), minlength=self.n_segments
        )
        return np.asarray(found, dtype=np.float64)

    def exchanged(self, users: FloatArray) -> FloatArray:
        """Return the users of each segment in cells of others, and of others in its cells.

        A cell is that of the segment with most of its users.
        """
        largest = np.zeros(self.n_cells)
        np.maximum.at(largest, self.cells, self.shares)
        most = self.shares == largest[self.cells]
        main = np.zeros(self.n_cells, dtype=np.int64)
        main[self.cells[most]] = self.segments[most]
        elsewhere = main[self.cells] != self.segments
        cells, segments = self.cells[elsewhere], self.segments[elsewhere]
        weights = users.ravel()[cells] * self.shares[elsewhere]
        found = np.zeros(self.n_segments)
        for side in (segments, main[cells]):
            found += np.bincount(side, weights=weights, minlength=self.n_segments)
        return found


def one_segment(n_cells: int) -> CellShares:
    """Return the shares where all cells are in one segment."""
    return CellShares(
        n_segments=1,
        n_cells=n_cells,
        cells=np.arange(n_cells),
        segments=np.zeros(n_cells, dtype=np.int64),
        shares=np.ones(n_cells),
    )


def cell_shares(synopsis: Synopsis, segments: FloatArray, shape: tuple[int, ...]) -> CellShares:
    """Return the shares of all cells of a grid.

    A cell published without users is in one segment, that of its local centres.

    Segments are centres in distance units, shape (k, D).
    """
    assert synopsis.labels is not None
    k = len(segments)
    used = synopsis.weights > 0
    of_node = assign_nodes(synopsis, segments)[0][used]
    cell_of_node = np.ravel_multi_index(tuple(synopsis.labels[used].T), shape)
    keys, which = np.unique(cell_of_node * k + of_node, return_inverse=True)
    weights = np.bincount(which, weights=synopsis.weights[used], minlength=len(keys))
    cells, segments_in = np.divmod(keys, k)
    n_cells = int(np.prod(shape))
    totals = np.bincount(cells, weights=weights, minlength=n_cells)
    empty = np.flatnonzero(totals == 0)
    return CellShares(
        n_segments=k,
        n_cells=n_cells,
        cells=np.concatenate([cells, empty]),
        segments=np.concatenate(
            [segments_in, _segments_of_cells(synopsis, segments, shape)[empty]]
        ),
        shares=np.concatenate([weights / totals[cells], np.ones(len(empty))]),
    )


def _segments_of_cells(
    synopsis: Synopsis, segments: FloatArray, shape: tuple[int, ...]
) -> IntArray:
    """Return the segment of the combined local centres of every cell."""
    centres = synopsis.seen(segments)
    distances = np.zeros((*shape, len(centres)))
    for axis, party in enumerate(synopsis.party_names):
        columns = synopsis.columns_of(party)
        # Centres beyond the labels are not in use.
        local = synopsis.seen(synopsis.local_centres(party)[: shape[axis]], columns)
        place = [1] * len(shape)
        place[axis] = shape[axis]
        own = squared_distances(local, centres[:, columns])
        distances += own.reshape(*place, len(centres))
    return np.asarray(distances.reshape(-1, len(centres)).argmin(axis=1), dtype=np.int64)
