"""Nearest centre of every row, in exact integer arithmetic (PRIVACY.md, R7).

A user's label must depend on that user's row and the released centres alone. Floating-point
distances break this: blocked matrix products round differently when other rows come and go. Here
every distance is an exact 64-bit integer and ties go to the lowest index.

Exactness needs d * (2 * bound)^2 < 2^63, with bound the largest coordinate of rows and centres;
with 2^20 grid units that allows a million columns of weight 1. `nearest` checks it.
"""

import numba
import numpy as np

from splitmeans._types import IntArray, LabelArray
from splitmeans.errors import ParameterError


@numba.njit(cache=True)
def nearest_centre(rows, centres, labels):  # type: ignore[no-untyped-def]
    """Fill `labels` (n,) (OUT) from `rows` (n, d) and `centres` (k, d), both int64."""
    for i in range(rows.shape[0]):
        best = np.int64(0)
        best_distance = np.int64(-1)
        for c in range(centres.shape[0]):
            distance = np.int64(0)
            for j in range(rows.shape[1]):
                gap = rows[i, j] - centres[c, j]
                distance += gap * gap
            if best_distance < 0 or distance < best_distance:
                best, best_distance = np.int64(c), distance
        labels[i] = best


def nearest(raw_rows: IntArray, centres: IntArray) -> LabelArray:
    """Return the index of each row's nearest centre, shape (n,); ties go to the lowest index.

    Guarantee: a row's label is a pure function of that row and `centres`.

    Args:
        raw_rows: Shape (n, d), int64 on the grid.
        centres: Shape (k, d), k >= 1, int64 on the same grid.
    """
    if raw_rows.ndim != 2 or centres.ndim != 2 or raw_rows.shape[1] != centres.shape[1]:
        raise ParameterError(
            f"rows and centres must have equal columns, got {raw_rows.shape} and {centres.shape}"
        )
    if raw_rows.dtype != np.int64 or centres.dtype != np.int64:
        raise ParameterError(
            f"rows and centres must be int64, got {raw_rows.dtype} and {centres.dtype}"
        )
    if len(centres) == 0:
        raise ParameterError("centres must have at least one row, got 0")
    largest_gap = _largest(raw_rows) + _largest(centres)
    if raw_rows.shape[1] * largest_gap**2 >= 2**63:
        raise ParameterError("coordinates are too large for exact 64-bit distances")
    labels = np.empty(len(raw_rows), dtype=np.int32)
    nearest_centre(np.ascontiguousarray(raw_rows), np.ascontiguousarray(centres), labels)
    return labels


def _largest(points: IntArray) -> int:
    """Return the largest absolute coordinate as a Python integer, which cannot overflow."""
    if points.size == 0:
        return 0
    return max(int(points.max()), -int(points.min()))
