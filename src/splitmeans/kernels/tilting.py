"""Points weighted by exponential tilting: what they add up to, group by group, under new weights.

A point has some features in one group of each of several lists of groups (the clusters of a round).
Its logarithmic weight is moved by the products of its features with the slopes of its groups.
"""

import math

import numpy as np

from splitmeans._types import FloatArray, IntArray
from splitmeans.kernels.compiled import kernel


def tilted_sums(
    features: FloatArray, groups: IntArray, slopes: FloatArray, logs: FloatArray
) -> tuple[float, FloatArray, FloatArray]:
    """Return the logarithm of all weights' sum, the new shares, (n,), and mean features, (k, m).

    Point i is weighted by exp(logs[i] + sum over t of features[i, t] . slopes[groups[i, t]]); the
    shares add up to 1. A mean is over all points, whatever their groups.

    Args:
        features: Shape (n, t, m).
        groups: In which of k groups each of a point's t lists of features is, shape (n, t).
        slopes: Shape (k, m).
        logs: Logarithms of the weights before, finite, shape (n,).
    """
    shares = logs.copy()
    sums = np.zeros(slopes.shape)
    largest = _tilt(features, groups, slopes, shares, sums)
    total = float(shares.sum())
    return largest + math.log(total), shares / total, sums / total


@kernel
def _tilt(features, groups, slopes, shares, sums):  # type: ignore[no-untyped-def]
    """INOUT `shares`, logarithms at first, and `sums`: both over the largest weight.

    Return its logarithm.
    """
    n, n_lists, width = features.shape
    largest = -np.inf
    for i in range(n):
        moved = shares[i]
        for t in range(n_lists):
            own, slope = features[i, t], slopes[groups[i, t]]
            for c in range(width):
                moved += own[c] * slope[c]
        shares[i] = moved
        largest = max(largest, moved)
    for i in range(n):
        weight = np.exp(shares[i] - largest)
        shares[i] = weight
        for t in range(n_lists):
            own, total = features[i, t], sums[groups[i, t]]
            for c in range(width):
                total[c] += weight * own[c]
    return largest
