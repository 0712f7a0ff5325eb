"""Moving synthetic points from one level to another, so that their shares agree with an answer.

A point has one level of a column of levels, and keeps having one: numbers are shifted, levels are
exchanged. As few points as possible change. Post-processing.
"""

import numpy as np

from splitmeans._types import FloatArray, IntArray
from splitmeans.kmeans.simplex import project_rows


def moved_levels(
    points: FloatArray,
    weights: FloatArray,
    clusters: IntArray,
    shift: FloatArray,
    *,
    bound: float,
    rng: np.random.Generator,
) -> FloatArray:
    """Return the features of one column of levels after a shift of their means.

    Args:
        points: Its features, shape (n, levels), each row `bound` at one level, -bound at others.
        weights: Shape (n,).
        clusters: Cluster of each point, shape (n,).
        shift: How far the means of each cluster are to move, shape (k, levels).
        bound: Grid integer of a level that a point has.
        rng: Draws the points that change, and where they go.
    """
    n_clusters, n_levels = shift.shape
    level = points.argmax(axis=1)
    cells = np.bincount(
        clusters * n_levels + level, weights=weights, minlength=n_clusters * n_levels
    ).reshape(n_clusters, n_levels)
    totals = cells.sum(axis=1, keepdims=True)
    shares = np.divide(cells, totals, out=np.full_like(cells, 1 / n_levels), where=totals > 0)
    wanted = project_rows(shares + shift / (2 * bound), total=1.0)
    staying = np.divide(wanted, shares, out=np.ones_like(shares), where=shares > 0)
    leaving = np.flatnonzero(rng.random(len(points)) >= staying[clusters, level])
    # Those that leave go where points are missing, in proportion to how many are.
    edges = np.cumsum(np.maximum(wanted - shares, 0.0), axis=1)
    marks = rng.random(len(leaving)) * edges[clusters[leaving], -1]
    level[leaving] = (edges[clusters[leaving]] <= marks[:, np.newaxis]).sum(axis=1)
    level = np.minimum(level, n_levels - 1)
    return np.where(level[:, np.newaxis] == np.arange(n_levels), bound, -bound)
