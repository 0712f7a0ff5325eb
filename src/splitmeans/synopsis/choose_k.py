"""How many clusters: loss and simplified silhouette of a weighted grid for a range of k.

Every clustering here is of released values, so trying any number of k costs no privacy: that is
post-processing. With plain data each further k-means run would have to be paid for.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from splitmeans import _validate
from splitmeans._types import FloatArray
from splitmeans.errors import ParameterError
from splitmeans.kmeans.distances import distance_chunks
from splitmeans.kmeans.weighted_kmeans import weighted_kmeans

# Silhouettes this close to the best are taken as equal to it: noise in weights and centres moves
# them by about as much, and of equally good answers the one with fewer clusters is preferred.
TIE = 0.01

# Users spread evenly over a cluster as wide as the gap to its neighbour lie at a mean squared
# distance of gap^2 / 12 from its middle.
_EVEN = 1 / 12

_BAR = 24


@dataclass(frozen=True, kw_only=True)
class ChooseK:
    """What each number of clusters would give.

    The suggested k is the smallest whose silhouette is within 0.01 of the highest one.

    Attributes:
        ks: The numbers of clusters that were tried, ascending.
        losses: Mean squared distance of a node to its nearest centre for each; falls as k grows,
            and its bend (the elbow) is a second opinion.
        silhouettes: Simplified silhouette for each: the mean of (b - a) / max(a, b) with a and b
            the distances to the nearest and second nearest centre. Between 0 (clusters blend)
            and 1 (clusters are far apart).
    """

    ks: tuple[int, ...]
    losses: tuple[float, ...]
    silhouettes: tuple[float, ...]

    def __post_init__(self) -> None:
        if not len(self.ks) == len(self.losses) == len(self.silhouettes) or not self.ks:
            raise ParameterError("ks, losses and silhouettes must be of equal length, at least one")

    @property
    def suggested(self) -> int:
        """The smallest k whose silhouette is within 0.01 of the highest one."""
        enough = max(self.silhouettes) - TIE
        return next(
            k for k, value in zip(self.ks, self.silhouettes, strict=True) if value >= enough
        )

    def __repr__(self) -> str:
        lines = ["   k       loss  silhouette"]
        for k, loss, value in zip(self.ks, self.losses, self.silhouettes, strict=True):
            bar = "#" * round(_BAR * min(max(value, 0.0), 1.0))
            mark = "  <- suggested" if k == self.suggested else ""
            lines.append(f"{k:4d} {loss:10.4g}  {value:10.3f}  {bar}{mark}")
        return "\n".join(lines)


def choose_k(
    scaled_nodes: FloatArray,
    weights: FloatArray,
    *,
    ks: Iterable[int],
    rng: np.random.Generator,
    node_spread: FloatArray | None = None,
) -> ChooseK:
    """Cluster weighted nodes for each k and measure the results.

    Args:
        scaled_nodes: Pseudo-points, shape (nodes, D).
        weights: Users at each, zero or more, shape (nodes,); at least one above zero.
        ks: Numbers of clusters to try, each at least 2, in any order.
        rng: Seeds the starting centres.
        node_spread: For nodes that stand for whole cells about how far users are from them, as
            mean squared distances, shape (nodes,). Without it more clusters look ever better once k
            comes near the number of nodes with users: a node that is a centre is at distance zero.
    """
    tried = sorted(set(ks))
    if not tried:
        raise ParameterError("ks must have at least one number of clusters, got none")
    for k in tried:
        _validate.at_least(2, k=k)
    used = weights > 0
    if not used.any():
        raise ParameterError("weights must count at least one user to choose k")
    points, counts = scaled_nodes[used], weights[used]
    spread = None if node_spread is None else node_spread[used]
    measured = []
    for k in tried:
        centres = weighted_kmeans(points, counts, n_clusters=k, rng=rng)
        measured.append(measure_fit(points, counts, centres, node_spread=spread))
    losses, silhouettes = zip(*measured, strict=True)
    return ChooseK(ks=tuple(int(k) for k in tried), losses=losses, silhouettes=silhouettes)


def even_spread(local_centres: FloatArray) -> FloatArray:
    """Guess the mean squared distance of users to their local centre from the gaps between centres.

    Good enough to choose k where it is not known how users lie: on mixed Gaussian data with
    3 to 10 clusters the suggestion is as often right as with the true spread.

    Args:
        local_centres: A party's centres, shape (k', d); rows that are not a number do not count.

    Returns:
        Shape (k',); zero where there is no other centre.
    """
    gaps = np.square(local_centres[:, np.newaxis] - local_centres).sum(axis=2)
    gaps[np.isnan(gaps) | (gaps == 0)] = np.inf
    nearest = gaps.min(axis=1)
    return np.asarray(_EVEN * np.where(np.isinf(nearest), 0.0, nearest))


def measure_fit(
    scaled_nodes: FloatArray,
    weights: FloatArray,
    centres: FloatArray,
    *,
    node_spread: FloatArray | None = None,
) -> tuple[float, float]:
    """Return the loss and the simplified silhouette of centres, shape (k, D); see `choose_k`."""
    spread = np.zeros(len(weights)) if node_spread is None else node_spread
    # Repeated centres (fewer different nodes than k) would make the second nearest the same place.
    centres = np.unique(centres, axis=0)
    cost = gain = 0.0
    for rows, distances in distance_chunks(scaled_nodes, centres):
        cost += float(weights[rows] @ distances.min(axis=1))
        if len(centres) > 1:
            two = np.partition(distances, 1, axis=1)[:, :2] + spread[rows, np.newaxis]
            nearest, second = np.sqrt(two).T
            ratio = np.divide(second - nearest, second, out=np.zeros_like(second), where=second > 0)
            gain += float(weights[rows] @ ratio)
    total = float(weights.sum())
    return cost / total, gain / total
