"""The nearest centre of points, most of them found in single precision (`kernels.screen`)."""

import numpy as np

from splitmeans._types import FloatArray, LabelArray
from splitmeans.kernels.screen import in_single, screen, to_screen
from splitmeans.kmeans.distances import squared_distances


def nearest_centres(points: FloatArray, centres: FloatArray) -> LabelArray:
    """Return the nearest centre of each point, shape (n,); the lowest index on ties.

    The same as the smallest of `squared_distances`, which decides where it is a close thing.

    Args:
        points: Shape (n, d).
        centres: Shape (k, d), k >= 1.
    """
    labels = np.empty(len(points), dtype=np.int32)
    certain = np.empty(len(points), dtype=np.bool_)
    screen(in_single(points.T), to_screen(centres), labels=labels, certain=certain)
    close = np.flatnonzero(~certain)
    if len(close):
        labels[close] = squared_distances(points[close], centres).argmin(axis=1)
    return labels
