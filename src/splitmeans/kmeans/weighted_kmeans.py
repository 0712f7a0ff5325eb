"""Weighted k-means on a few public points, for any number of them (the paper, phase 4).

The points are released values (noisy leaf means at a party, grid nodes at the server), so this is
post-processing. Noise can leave fewer useful points than clusters; the number of centres is agreed
beforehand all the same, so the result always has exactly that many.
"""

from collections.abc import Sequence

import numpy as np

from splitmeans import _validate
from splitmeans._types import FloatArray
from splitmeans.errors import ParameterError
from splitmeans.kmeans.levels import coded
from splitmeans.kmeans.lloyd import best_of_starts, tolerance_of
from splitmeans.kmeans.relocation import relocated
from splitmeans.kmeans.steps import steps_to_rest

# Restarts of k-means++: the points are few, so restarts cost little and bad local optima cost much.
RESTARTS = 10

_LARGEST = 1e12


def weighted_kmeans(
    points: FloatArray,
    weights: FloatArray,
    *,
    n_clusters: int,
    rng: np.random.Generator,
    starts: int = RESTARTS,
    levels: Sequence[slice] = (),
    begin: FloatArray | None = None,
    move_stuck: bool = True,
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
        starts: How many there are; the best is taken.
        levels: The features of each column of levels, if some are. Where every point has one level
            of a column it costs one look-up, however many levels there are.
        begin: Centres that are good already, shape (n_clusters, d): the steps go on from there, and
            no start is drawn.
        move_stuck: Whether centres of drawn starts are moved where they are needed more
            (`relocation.py`).
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
    # Squares of larger numbers would not fit into single precision.
    scale = max(1.0, float(np.abs(points).max()) / _LARGEST)
    given = coded(points / scale if scale > 1 else points, weights, levels=levels)
    if begin is not None:
        own = given.from_features(begin / scale)
        found, _, _ = steps_to_rest(given.points, start=own, tolerance=tolerance_of(given.points))
        return given.features(found) * scale
    found = best_of_starts(given.points, n_clusters=n_clusters, n_starts=starts, rng=rng)
    return given.features(relocated(given.points, found) if move_stuck else found) * scale


def n_different(points: FloatArray) -> int:
    """Return how many different places points are at, shape (n, d)."""
    if points.size == 0:
        return min(len(points), 1)
    # As strings of bytes, which sort much faster than rows do; adding 0 makes -0 one of them.
    rows = np.ascontiguousarray(points + 0.0)
    return len(np.unique(rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1])))))


def _more_different_than(count: int, points: FloatArray) -> bool:
    # The first few rows nearly always settle it; sorting all rows of a large table would be slow.
    first = points[: 4 * (count + 1)]
    return n_different(first) > count or n_different(points) > count


def _repeat_points(points: FloatArray, weights: FloatArray, *, n_clusters: int) -> FloatArray:
    different, which = np.unique(points, axis=0, return_inverse=True)
    totals = np.bincount(which.ravel(), weights=weights)
    heaviest_first = different[np.argsort(-totals, kind="stable")]
    return np.asarray(np.resize(heaviest_first, (n_clusters, points.shape[1])))
