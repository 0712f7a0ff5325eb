"""Nearest centre of every row, in exact integer arithmetic (rule R7).

A user's label must depend on that user's row and the released centres alone. Floating-point
distances break this: blocked matrix products round differently when other rows come and go. Here
every distance is an exact 64-bit integer and ties go to the lowest index.

Exactness needs d * (2 * bound)^2 < 2^63, with bound the largest coordinate of rows and centres;
with 2^20 grid units that allows a million columns of weight 1. `nearest` checks it.
"""

import numba
import numpy as np

from splitmeans._types import FloatArray, IntArray, LabelArray
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


# Whole numbers below 2^53 are exact in double precision, and so are their sums in any order.
_EXACT_FLOAT = 2**53

# Rows are walked in blocks whose distances stay in the processor's nearest cache.
_BLOCK = 512

# Shrinks a clipped row a little more than its length asks for, so that rounding cannot leave it
# longer than the radius; 2^-40 is far above the rounding of doubles and far below any noise.
_SHRINK = 1.0 - 2.0**-40


@numba.njit(cache=True, error_model="numpy")
def _clipped_sums(columns, centres, radii, sums, counts, squares):  # type: ignore[no-untyped-def]
    """Fill `sums` (k, d), `counts` (k,), `squares` (k,) (OUT, int64); see `clipped_sums`.

    `columns` (d, n) and `centres` (k, d) hold whole numbers as float64, small enough that every
    squared distance is below 2^53; `radii` (k,) is int64.
    """
    d, n = columns.shape
    k = centres.shape[0]
    distances = np.empty(_BLOCK)
    best = np.empty(_BLOCK)
    labels = np.empty(_BLOCK, dtype=np.int64)
    for start in range(0, n, _BLOCK):
        size = min(_BLOCK, n - start)
        for c in range(k):
            distances[:size] = 0.0
            for j in range(d):
                column = columns[j, start : start + size]
                centre = centres[c, j]
                for i in range(size):
                    gap = column[i] - centre
                    distances[i] += gap * gap
            if c == 0:
                for i in range(size):
                    best[i] = distances[i]
                    labels[i] = 0
            else:
                for i in range(size):
                    closer = distances[i] < best[i]
                    best[i] = distances[i] if closer else best[i]
                    labels[i] = c if closer else labels[i]
        for i in range(size):
            c = labels[i]
            radius = radii[c]
            counts[c] += 1
            if best[i] <= float(radius) * float(radius):
                squares[c] += np.int64(best[i]) // (4 * radius)
                for j in range(d):
                    sums[c, j] += np.int64(columns[j, start + i] - centres[c, j])
            else:
                squares[c] += radius // 4
                factor = radius / np.sqrt(best[i]) * _SHRINK
                for j in range(d):
                    # Conversion to an integer cuts towards zero: the clipped row gets no longer.
                    sums[c, j] += np.int64((columns[j, start + i] - centres[c, j]) * factor)


def as_columns(raw_rows: IntArray) -> FloatArray:
    """Return rows, shape (n, d), as float64 columns, shape (d, n), for `clipped_sums`."""
    _check_exact(raw_rows)
    return np.ascontiguousarray(raw_rows.T, dtype=np.float64)


def _check_exact(points: IntArray) -> None:
    """Check that points among each other have squared distances that a double holds exactly."""
    if points.shape[1] * (2 * _largest(points)) ** 2 >= _EXACT_FLOAT:
        raise ParameterError("coordinates are too large for exact distances in double precision")


def clipped_sums(
    raw_columns: FloatArray, centres: IntArray, *, radii: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    """Return, for each centre, what the rows nearest to it add up to relative to it.

    A row x at its nearest centre c (lowest index on ties) with offset v = x - c, clipped to length
    r, the centre's radius, adds v to the sums, 1 to the counts, and |v|^2 / (4 r), rounded down,
    to the squares. All three are exact integers, so they do not depend on the order of rows.

    Guarantee: a row's share of the sums has Euclidean length at most r, its share of the squares
    is at most r / 4, and it adds to one centre only.

    Args:
        raw_columns: Rows as columns, shape (d, n), from `as_columns`.
        centres: Shape (k, d), k >= 1, int64 on the same grid.
        radii: Shape (k,), whole numbers >= 1.

    Returns:
        Sums (k, d), counts (k,), squares (k,).
    """
    k, d = centres.shape
    if raw_columns.shape[0] != d or radii.shape != (k,) or k == 0 or radii.min() < 1:
        raise ParameterError(
            f"columns, centres and radii do not fit, got {raw_columns.shape}, {centres.shape} and "
            f"{radii.shape}"
        )
    _check_exact(centres)
    sums = np.zeros((k, d), dtype=np.int64)
    counts, squares = np.zeros(k, dtype=np.int64), np.zeros(k, dtype=np.int64)
    _clipped_sums(
        raw_columns, centres.astype(np.float64), radii.astype(np.int64), sums, counts, squares
    )
    return sums, counts, squares
