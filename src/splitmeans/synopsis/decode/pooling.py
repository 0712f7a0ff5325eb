"""Tables of bundles in the place of tables of local clusters.

A matrix over all local clusters of all parties, shape (N, N), has a cell for every two of them. A
pair table may count some of these cells together (`membership/bundles.py`). What fits a model to
cells takes the sum over the cells that were counted together wherever it would look at one of them:
`Pooling.pooled` puts that sum into each.
Post-processing of released tables.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from splitmeans._types import FloatArray, IntArray
from splitmeans.errors import ParameterError
from splitmeans.membership.bundles import Bundles


@dataclass(frozen=True, kw_only=True)
class Pooling:
    """Sums over the cells that tables count together.

    With bundles all parties have as many labels, but may have different numbers of clusters: sums
    are worked out in blocks of the largest number, in which the others have empty places.
    """

    bundles: Bundles

    def __post_init__(self) -> None:
        if not self.bundles.is_trivial and len(set(self.bundles.n_labels)) != 1:
            raise ParameterError(f"all parties must have as many labels, got {self.bundles}")

    @property
    def shape(self) -> tuple[int, ...]:
        """Local clusters of each party."""
        return self.bundles.n_local_clusters

    def labels_of(self, party: int, other: int) -> IntArray:
        """Return the label of each of a party's clusters in its table with another."""
        return self.bundles.labels_of(party, other)

    @functools.cached_property
    def starts(self) -> IntArray:
        """Where each party's clusters begin, and their number N; shape (S + 1,)."""
        return np.cumsum([0, *self.shape])

    @functools.cached_property
    def party_of(self) -> IntArray:
        """The party of each cluster, shape (N,)."""
        return np.repeat(np.arange(len(self.shape)), self.shape)

    @functools.cached_property
    def between(self) -> FloatArray:
        """1 for clusters of two parties and 0 for two of one, shape (N, N)."""
        return np.asarray(self.party_of[:, np.newaxis] != self.party_of, dtype=np.float64)

    @functools.cached_property
    def _places(self) -> tuple[IntArray, ...]:
        """Where each cluster is in blocks of the largest number."""
        widest = max(self.shape)
        at = np.concatenate([party * widest + np.arange(k) for party, k in enumerate(self.shape)])
        return np.ix_(at, at)

    @functools.cached_property
    def _members(self) -> FloatArray:
        """1 where a cluster has a label, by party and other party: shape (S, S, labels, k')."""
        n = len(self.shape)
        members = np.zeros((n, n, self.bundles.n_labels[0], max(self.shape)))
        for party, clusters in enumerate(self.shape):
            for other in range(n):
                if party != other:
                    labels = self.labels_of(party, other)
                    members[party, other, labels, np.arange(clusters)] = 1.0
        return members

    @functools.cached_property
    def _sides(self) -> tuple[FloatArray, FloatArray]:
        """Which clusters of the first, and of the second party of a block share a label."""
        turned = np.ascontiguousarray(self._members.transpose(0, 1, 3, 2))
        first = np.ascontiguousarray(turned @ self._members)
        return first, np.ascontiguousarray(first.transpose(1, 0, 2, 3))

    def pooled(self, matrix: FloatArray) -> FloatArray:
        """Return in each cell the sum over all that are counted with it, shape (N, N).

        Blocks of a party with itself, which no table counts, become zero.
        """
        if self.bundles.is_trivial:
            return np.asarray(matrix * self.between)
        n, widest = len(self.shape), max(self.shape)
        whole = np.zeros((n * widest, n * widest))
        whole[self._places] = matrix
        blocks = np.ascontiguousarray(whole.reshape(n, widest, n, widest).transpose(0, 2, 1, 3))
        first, second = self._sides
        sums = (first @ blocks @ second).transpose(0, 2, 1, 3).reshape(whole.shape)
        return np.asarray(sums[self._places])

    def table(self, matrix: FloatArray, pair: tuple[int, int]) -> FloatArray:
        """Return the table of two parties that a matrix of cells adds up to."""
        first, second = (slice(self.starts[party], self.starts[party + 1]) for party in pair)
        rows, columns = (
            np.eye(self.bundles.n_labels[party])[self.labels_of(party, other)]
            for party, other in (pair, pair[::-1])
        )
        return np.asarray(rows.T @ matrix[first, second] @ columns)

    def stacked(self, tables: Mapping[tuple[int, int], FloatArray]) -> FloatArray:
        """Return in each cell the count of the labels that it is of, shape (N, N), symmetric."""
        stacked = np.zeros((self.starts[-1], self.starts[-1]))
        for pair, table in tables.items():
            rows, columns = (self.labels_of(*own) for own in (pair, pair[::-1]))
            first, second = (slice(self.starts[party], self.starts[party + 1]) for party in pair)
            spread = table[np.ix_(rows, columns)]
            stacked[first, second] = spread
            stacked[second, first] = spread.T
        return stacked
