"""Cells that agree with the sizes of the parties' clusters, where these are known better.

A table of two parties has noise in each cell, and cutting it off takes users from clusters that are
spread over many cells. A party that releases detail tells the sizes of its clusters with less
noise: in its points. Cells are scaled to sizes between both, one party after the other
(proportional fitting). Made from released values only.
"""

from collections.abc import Sequence

import numpy as np

from splitmeans._types import FloatArray, IntArray
from splitmeans.kernels.assign import nearest

# How far points are believed, cells for the rest: by measurement (docs/synthetic.md).
_BELIEVED = 0.7
_ROUNDS = 20


def shares_of_clusters(points: IntArray, centres: IntArray) -> FloatArray:
    """Return the share of points, shape (p, d), that are nearest to each centre, shape (k',)."""
    return np.bincount(nearest(points, centres), minlength=len(centres)) / len(points)


def with_cluster_sizes(
    labels: IntArray, weights: FloatArray, shares: Sequence[FloatArray]
) -> FloatArray:
    """Return weights of cells, shape (cells,), of the same sum, that agree with the sizes.

    Args:
        labels: The local cluster of each cell at each party, shape (cells, S).
        weights: Users of each cell, zero or more.
        shares: For each party the share of its users in each of its clusters.
    """
    total = float(weights.sum())
    if total <= 0:
        return weights
    wanted = [
        _BELIEVED * total * share
        + (1 - _BELIEVED) * np.bincount(own, weights=weights, minlength=len(share))
        for own, share in zip(labels.T, shares, strict=True)
    ]
    for _ in range(_ROUNDS):
        for own, sizes in zip(labels.T, wanted, strict=True):
            found = np.bincount(own, weights=weights, minlength=len(sizes))
            # Where the cells have nobody there is nothing to scale.
            ratios = np.divide(sizes, found, out=np.ones_like(sizes), where=found > 1e-9 * total)
            weights = weights * ratios[own]
    return np.asarray(weights * (total / float(weights.sum())))
