"""What did the partners add? From published values alone, at no cost to privacy.

Differences between users are squared distances on the grid. Segments explain the part of them that
lies between the segments' centres. Each column's part of that adds up to what a party carries; and
k-means on one party's columns of the grid shows what that party would have found alone.
"""

from dataclasses import dataclass

import numpy as np

from splitmeans._types import FloatArray, IntArray
from splitmeans.kmeans.distances import distance_chunks
from splitmeans.kmeans.draws import draw_evenly
from splitmeans.kmeans.weighted_kmeans import weighted_kmeans
from splitmeans.result.result import Segmentation
from splitmeans.synopsis.column_places import column_places
from splitmeans.synopsis.synopsis import Synopsis

# So many pseudo-users stand for all: figures to one per cent need no more.
_NODES = 4000


@dataclass(frozen=True, kw_only=True)
class ColumnPart:
    """One column's part.

    Attributes:
        party: Who holds it.
        column: Its name.
        distance: Its share of all differences between users, as k-means sees them.
        separation: Its share of the differences between segments.
    """

    party: str
    column: str
    distance: float
    separation: float


@dataclass(frozen=True, kw_only=True)
class PartnerPart:
    """What one party contributes.

    Attributes:
        party: Its name.
        separation: How much of the segments' separation its columns carry.
        alone: How much of all differences between users its own segments would explain: as many,
            found from its columns alone.
        same: Share of users whom those would put into the right common segment, each of them
            standing for the common one that it shares most users with.
    """

    party: str
    separation: float
    alone: float
    same: float


@dataclass(frozen=True, kw_only=True, repr=False)
class Partners:
    """What the parties contribute to segments.

    Attributes:
        explained: How much of all differences between users the common segments explain.
        parties: What each party contributes.
        columns: The same by column.
    """

    explained: float
    parties: tuple[PartnerPart, ...]
    columns: tuple[ColumnPart, ...]

    def __repr__(self) -> str:
        lines = [f"together: the segments explain {self.explained:.0%} of all differences"]
        lines += [
            f"{one.party}: carries {one.separation:.0%} of the separation; alone it would explain "
            f"{one.alone:.0%} and put {one.same:.0%} of users into the right segment"
            for one in self.parties
        ]
        return "\n".join(lines)


def partners(synopsis: Synopsis, item: Segmentation) -> Partners:
    """Return what the parties contribute to segments of a synopsis that counts some users."""
    # The seed only makes two reports of one result alike.
    rng = np.random.default_rng(0)
    nodes, weights, of_node = _some(synopsis, item.of_node, rng=rng)
    total = _spread(nodes, weights)
    within = _within(nodes, weights, of_node)
    between = np.maximum(total - within, 0.0)
    separation = _shares(between)
    distance = _shares(total)
    columns = tuple(
        ColumnPart(
            party=synopsis.party_names[place.party],
            column=place.column,
            distance=float(distance[place.features].sum()),
            separation=float(separation[place.features].sum()),
        )
        for place in column_places(synopsis)
    )
    everything = max(float(total.sum()), 1e-12)
    parts = []
    for party in synopsis.party_names:
        own = synopsis.columns_of(party)
        alone = _alone(nodes[:, own], weights, item.k, rng=rng)
        parts.append(
            PartnerPart(
                party=party,
                separation=float(separation[own].sum()),
                alone=1 - float(_within(nodes, weights, alone).sum()) / everything,
                same=_same(alone, of_node, weights, item.k),
            )
        )
    return Partners(
        explained=float(between.sum()) / everything, parties=tuple(parts), columns=columns
    )


def _some(
    synopsis: Synopsis, of_node: IntArray, *, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Return some nodes that stand for all users, as k-means sees them, and their segments."""
    nodes, weights = synopsis.seen(synopsis.scaled_nodes), synopsis.weights
    if len(weights) <= _NODES:
        used = weights > 0
        return nodes[used], weights[used], of_node[used]
    drawn = draw_evenly(weights, _NODES, rng=rng)
    return nodes[drawn], np.ones(_NODES), of_node[drawn]


def _spread(nodes: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the variance of every feature, shape (D,)."""
    shares = weights / weights.sum()
    return np.asarray(shares @ np.square(nodes - shares @ nodes))


def _within(nodes: FloatArray, weights: FloatArray, of_node: IntArray) -> FloatArray:
    """Return the variance of every feature that is left within segments, shape (D,)."""
    left = np.zeros(nodes.shape[1])
    for segment in np.unique(of_node):
        own = of_node == segment
        left += _spread(nodes[own], weights[own]) * weights[own].sum()
    return np.asarray(left / weights.sum())


def _shares(parts: FloatArray) -> FloatArray:
    total = parts.sum()
    even = np.full(len(parts), 1 / len(parts))
    return np.asarray(parts / total, dtype=np.float64) if total > 0 else even


def _alone(nodes: FloatArray, weights: FloatArray, k: int, *, rng: np.random.Generator) -> IntArray:
    """Return segments of nodes that were found in these features only."""
    centres = weighted_kmeans(nodes, weights, n_clusters=k, rng=rng)
    parts = [part.argmin(axis=1) for _, part in distance_chunks(nodes, centres)]
    return np.concatenate(parts).astype(np.int64)


def _same(alone: IntArray, common: IntArray, weights: FloatArray, k: int) -> float:
    """Return the share of users whom segments of one party tell the common segment of."""
    shared = np.zeros((k, max(k, int(common.max()) + 1)))
    np.add.at(shared, (alone, common), weights)
    return float(shared.max(axis=1).sum() / weights.sum())
