"""Bundles: neighbouring local clusters that a pair table counts together, others in each table.

Noise on a cell does not depend on how many cells there are, so a table with fewer labels is surer;
but with fewer local clusters than segments, segments that share a cluster cannot be told apart. So
a party may have more clusters than a table has labels. Its released centres are in an order in
which neighbours lie close together, as on a ring, and a label stands for one or two neighbours. In
the table with the next party the ring is cut at the first cluster, with the one after that a
cluster later, and so on: two clusters that one table counts together are apart in others, and what
explains all tables at once (`synopsis/decode/classes.py`) tells them apart.

Which clusters make which label follows from public numbers alone. A user still has one label in
each table, a function of the user's row and the released centres, so nothing else costs more.

A party whose points show no groups (`local/groups.py`) gains nothing from more clusters: it makes
one for each label, the same in all tables. Its other centres repeat the last of these, so that no
row is nearest to them (the first of equals counts), and everybody sees that they are not in use.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from splitmeans import _validate
from splitmeans._types import IntArray
from splitmeans.errors import ParameterError


@dataclass(frozen=True, kw_only=True)
class Bundles:
    """How the local clusters of each party become labels in tables of two parties.

    Attributes:
        n_local_clusters: k' of each party.
        n_labels: How many labels each party has in a table, no more than it has clusters.
    """

    n_local_clusters: tuple[int, ...]
    n_labels: tuple[int, ...]

    def __post_init__(self) -> None:
        for labels in self.n_labels:
            _validate.at_least(1, n_labels=labels)
        pairs = zip(self.n_labels, self.n_local_clusters, strict=True)
        if any(labels > clusters for labels, clusters in pairs):
            raise ParameterError(
                f"n_labels must be at most the local clusters {self.n_local_clusters}, got "
                f"{self.n_labels}"
            )

    @property
    def is_trivial(self) -> bool:
        """Whether every cluster is a label of its own, in all tables."""
        return self.n_labels == self.n_local_clusters

    def labels_of(self, party: int, other: int) -> IntArray:
        """Return the label of each of a party's clusters in its table with another, shape (k',)."""
        clusters, labels = self.n_local_clusters[party], self.n_labels[party]
        turn = (other - party) % len(self.n_labels) - 1
        if labels == clusters:
            return np.arange(clusters)
        return (np.arange(clusters) + turn) % clusters * labels // clusters

    def in_use(self, centres: Sequence[IntArray]) -> "Bundles":
        """Return the bundles of the clusters that are in use, by all parties' released centres."""
        used = tuple(map(_n_in_use, centres, self.n_labels))
        return replace(self, n_local_clusters=used)

    def of_party(self, party: int, centres: IntArray) -> "Bundles":
        """Return the bundles of what one party has in use, by its released centres."""
        widths = list(self.n_local_clusters)
        widths[party] = _n_in_use(centres, self.n_labels[party])
        return replace(self, n_local_clusters=tuple(widths))


def _n_in_use(centres: IntArray, n_labels: int) -> int:
    """Return how many centres are in use: of those that repeat the last label's, none is."""
    repeated = bool(np.all(centres[n_labels:] == centres[n_labels - 1]))
    return n_labels if repeated else len(centres)


def ring_order(centres: IntArray) -> IntArray:
    """Return the positions of centres, shape (k, d), in an order in which neighbours are close.

    From the first centre always to the nearest that is left, then parts of the way are turned round
    as long as that makes it shorter; the last one is a neighbour of the first. Released centres are
    all that it looks at.
    """
    places = centres.astype(np.float64)
    squares = np.square(places[:, np.newaxis] - places).sum(axis=2)
    distances = np.sqrt(squares)
    order = [0]
    left = np.ones(len(centres), dtype=bool)
    left[0] = False
    while left.any():
        following = int(np.argmin(np.where(left, distances[order[-1]], np.inf)))
        order.append(following)
        left[following] = False
    return _untangled(np.array(order), distances)


def _untangled(order: IntArray, distances: np.typing.NDArray[np.float64]) -> IntArray:
    """Turn parts of a closed way round until none makes it shorter by more than a rounding."""
    n = len(order)
    slack = 1e-9 * float(distances.max(initial=0.0))
    shorter = n > 3
    while shorter:
        shorter = False
        for first in range(n - 2):
            here, following = order[first], order[first + 1]
            ends = np.arange(first + 2, n - (first == 0))
            others, after = order[ends], order[(ends + 1) % n]
            gains = (
                distances[here, following]
                + distances[others, after]
                - distances[here, others]
                - distances[following, after]
            )
            best = int(np.argmax(gains)) if len(gains) else 0
            if len(gains) and gains[best] > slack:
                end = int(ends[best])
                order[first + 1 : end + 1] = order[first + 1 : end + 1][::-1]
                shorter = True
    return order
