"""Weighted k-means on a few public points, for any number of them (the paper, phase 4).

The points are released values (noisy leaf means at a party, grid nodes at the server), so this is
post-processing. Noise can leave fewer useful points than clusters; the number of centres is agreed
beforehand all the same, so the result always has exactly that many.
"""

import functools
import warnings
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from splitmeans import _validate
from splitmeans._types import FloatArray
from splitmeans.errors import ParameterError

# Restarts of k-means++: the points are few, so restarts cost little and bad local optima cost much.
RESTARTS = 10


def weighted_kmeans(
    points: FloatArray, weights: FloatArray, *, n_clusters: int, rng: np.random.Generator
) -> FloatArray:
    """Return `n_clusters` centres, shape (n_clusters, d), of weighted points.

    Points with weight zero or below do not count; if no weight is positive, all points count
    equally. With no more different points than clusters every point is a centre, heaviest first,
    and the list is repeated until it is long enough.

    Args:
        points: Shape (n, d), n >= 1.
        weights: Shape (n,).
        n_clusters: Number of centres to return.
        rng: Seeds the restarts.
    """
    _validate.at_least(1, n_clusters=n_clusters)
    if points.ndim != 2 or len(points) == 0:
        raise ParameterError(f"points must have shape (n, d) with n >= 1, got {points.shape}")
    if weights.shape != (len(points),):
        raise ParameterError(f"weights must have shape ({len(points)},), got {weights.shape}")
    positive = weights > 0
    if positive.any():
        points, weights = points[positive], weights[positive]
    else:
        weights = np.ones(len(points))
    if not _more_different_than(n_clusters, points):
        return _repeat_points(points, weights, n_clusters=n_clusters)
    return _kmeans(points, weights, n_clusters=n_clusters, rng=rng)


def _more_different_than(count: int, points: FloatArray) -> bool:
    # The first few rows nearly always settle it; sorting all rows of a large table would be slow.
    first = points[: 4 * (count + 1)]
    return len(np.unique(first, axis=0)) > count or len(np.unique(points, axis=0)) > count


def _repeat_points(points: FloatArray, weights: FloatArray, *, n_clusters: int) -> FloatArray:
    different, which = np.unique(points, axis=0, return_inverse=True)
    totals = np.bincount(which.ravel(), weights=weights)
    heaviest_first = different[np.argsort(-totals, kind="stable")]
    return np.asarray(np.resize(heaviest_first, (n_clusters, points.shape[1])))


def _kmeans(
    points: FloatArray, weights: FloatArray, *, n_clusters: int, rng: np.random.Generator
) -> FloatArray:
    # Imported on first use: it takes a second to load, and most commands never cluster.
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    seed = int(rng.integers(2**31))
    model = KMeans(n_clusters=n_clusters, n_init=RESTARTS, random_state=seed)
    with _one_thread(), warnings.catch_warnings():
        # Points that differ only in their last digits can end up as equal centres; that is fine.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(points, sample_weight=weights)
    return np.asarray(model.cluster_centers_, dtype=np.float64)


def _one_thread() -> AbstractContextManager[Any]:
    """Keep scikit-learn to one thread.

    Threads add up partial sums in any order, so the last digits would differ from run to run; and
    for the few points here they cost more than they gain, above all on a busy machine.
    """
    return _controller().limit(limits=1)  # type: ignore[no-any-return]


@functools.cache
def _controller() -> Any:
    # Made once, after scikit-learn is loaded: it looks through all loaded libraries.
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
