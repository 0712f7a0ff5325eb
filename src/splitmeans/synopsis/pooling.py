"""Tables of bundles in the place of tables of local clusters.

A matrix over all local clusters of all parties, shape (N, N) with N = S k', has a cell for every
two clusters. A pair table counts some of these cells together (`membership/bundles.py`). What fits
a model to cells takes the sum over the cells that were counted together wherever it would look at
one of them: `Pooling.pooled` puts that sum into each. Post-processing of released tables.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from splitmeans._types import FloatArray
from splitmeans.errors import ParameterError
from splitmeans.membership.bundles import Bundles


@dataclass(frozen=True, kw_only=True)
class Pooling:
    """Sums over the cells that tables of bundles count together.

    All parties have the same number of clusters, and of labels.
    """

    bundles: Bundles

    def __post_init__(self) -> None:
        if len(set(self.bundles.n_local_clusters)) != 1 or len(set(self.bundles.n_labels)) != 1:
            raise ParameterError("all parties must have as many clusters, and as many labels")

    @property
    def n_parties(self) -> int:
        """Parties, S."""
        return len(self.bundles.n_labels)

    @property
    def n_clusters(self) -> int:
        """Local clusters of each party, k'."""
        return self.bundles.n_local_clusters[0]

    @functools.cached_property
    def _members(self) -> FloatArray:
        """1 where a cluster has a label, by party and other party: shape (S, S, labels, k')."""
        n, clusters = self.n_parties, self.n_clusters
        members = np.zeros((n, n, self.bundles.n_labels[0], clusters))
        for party in range(n):
            for other in range(n):
                if party != other:
                    labels = self.bundles.labels_of(party, other)
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
        first, second = self._sides
        return self._joined(first @ self._blocks(matrix) @ second)

    def table(self, matrix: FloatArray, pair: tuple[int, int]) -> FloatArray:
        """Return the table of two parties that a matrix of cells adds up to."""
        first, second = pair
        width = self.n_clusters
        block = matrix[first * width : (first + 1) * width, second * width : (second + 1) * width]
        return np.asarray(self._members[first, second] @ block @ self._members[second, first].T)

    def stacked(self, tables: Mapping[tuple[int, int], FloatArray]) -> FloatArray:
        """Return in each cell the count of the bundles that it is in, shape (N, N), symmetric."""
        n, width = self.n_parties, self.n_clusters
        stacked = np.zeros((n, width, n, width))
        for (first, second), table in tables.items():
            rows = self.bundles.labels_of(first, second)
            columns = self.bundles.labels_of(second, first)
            spread = table[np.ix_(rows, columns)]
            stacked[first, :, second] = spread
            stacked[second, :, first] = spread.T
        return stacked.reshape(n * width, n * width)

    def _blocks(self, matrix: FloatArray) -> FloatArray:
        n, width = self.n_parties, self.n_clusters
        return np.ascontiguousarray(matrix.reshape(n, width, n, width).transpose(0, 2, 1, 3))

    def _joined(self, blocks: FloatArray) -> FloatArray:
        size = self.n_parties * self.n_clusters
        return np.ascontiguousarray(blocks.transpose(0, 2, 1, 3)).reshape(size, size)
