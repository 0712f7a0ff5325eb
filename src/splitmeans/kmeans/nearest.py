"""The nearest centre of points."""

import numpy as np

from splitmeans._types import FloatArray, LabelArray
from splitmeans.kernels.assign import find_nearest

# Points whose distances stay in the processor's cache.
_POINTS_AT_ONCE = 512


def nearest_centres(points: FloatArray, centres: FloatArray) -> LabelArray:
    """Return the nearest centre of each point, shape (n,); the lowest index on ties.

    Points have the shape (n, d), centres (k, d) with k >= 1.
    """
    labels = np.empty(len(points), dtype=np.int32)
    own = np.array(centres, dtype=np.float64, order="C")
    for start in range(0, len(points), _POINTS_AT_ONCE):
        part = slice(start, start + _POINTS_AT_ONCE)
        columns = np.array(points[part].T, dtype=np.float64, order="C")
        find_nearest(columns, own, labels[part])
    return labels
