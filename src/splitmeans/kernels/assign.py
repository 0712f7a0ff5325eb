"""Nearest centre of every row, in exact integer arithmetic (rule R7).

A user's label must depend on that user's row and the released centres alone. Floating-point
distances break this: blocked matrix products round differently when other rows come and go. Here
every distance is an exact 64-bit integer and ties go to the lowest index.

Exactness needs d * (2 * bound)^2 < 2^63, with bound the largest coordinate of rows and centres;
with 2^20 grid units that allows a million columns of weight 1. `nearest` checks it.
"""

import numpy as np

from splitmeans._types import IntArray, LabelArray
from splitmeans.errors import ParameterError
from splitmeans.kernels.compiled import kernel


@kernel
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
EXACT_FLOAT = 2**53

# Rows are walked in blocks whose distances stay in the processor's nearest cache.
_BLOCK = 512

# Shrinks a clipped row a little more than its length asks for, so that rounding cannot leave it
# longer than the radius; 2^-40 is far above the rounding of doubles and far below any noise.
SHRINK = 1.0 - 2.0**-40


@kernel
def _clipped_sums(rows, limits, centres, radii, sums):  # type: ignore[no-untyped-def]
    """Fill `sums` (k, 2 d + 1) (OUT, int64); see `clipped_sums`.

    `rows` (n, d), `limits` (d,) and `radii` (k,) are int64; `centres` (k, d) holds whole numbers
    as float64, small enough that every squared distance is below 2^53.
    """
    n, d = rows.shape
    k = centres.shape[0]
    columns = np.empty((d, _BLOCK))
    distances = np.empty(_BLOCK)
    best = np.empty(_BLOCK)
    labels = np.empty(_BLOCK, dtype=np.int64)
    for start in range(0, n, _BLOCK):
        size = min(_BLOCK, n - start)
        for i in range(size):
            for j in range(d):
                columns[j, i] = min(max(rows[start + i, j], -limits[j]), limits[j])
        for c in range(k):
            distances[:size] = 0.0
            for j in range(d):
                column = columns[j]
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
            sums[c, d] += 1
            inside = best[i] <= float(radius) * float(radius)
            factor = 1.0 if inside else radius / np.sqrt(best[i]) * SHRINK
            for j in range(d):
                # Conversion to an integer cuts towards zero: the clipped row gets no longer.
                offset = np.int64((columns[j, i] - centres[c, j]) * factor)
                sums[c, j] += offset
                sums[c, d + 1 + j] += offset * offset // (2 * radius)


def clipped_sums(
    raw_rows: IntArray, *, limits: IntArray, centres: IntArray, radii: IntArray
) -> IntArray:
    """Return, for each centre, what the rows nearest to it add up to relative to it.

    A row, clipped to plus or minus `limits`, at its nearest centre c (lowest index on ties) with
    offset v, clipped to length r, the centre's radius, adds v to the sums, 1 to the count, and of
    each column v_j^2 / (2 r), rounded down, to the squares. All are exact integers: they do not
    depend on the order of rows, and those of several blocks add up.

    Guarantee: a row's share of the sums has Euclidean length at most r, its share of the squares
    at most r / 2 (the squares of all columns add up to r^2 at most), and it adds to one centre.

    Args:
        raw_rows: Shape (n, d), int64 on the grid.
        limits: Largest grid integer of each column, shape (d,).
        centres: Shape (k, d), k >= 1, int64 within the limits.
        radii: Shape (k,), whole numbers >= 1.

    Returns:
        Shape (k, 2 d + 1): the sums, the count, the squares.
    """
    k, d = centres.shape
    if raw_rows.shape[1:] != (d,) or limits.shape != (d,) or radii.shape != (k,):
        raise ParameterError(
            f"rows, limits, centres and radii do not fit, got {raw_rows.shape}, {limits.shape}, "
            f"{centres.shape} and {radii.shape}"
        )
    if k == 0 or radii.min() < 1:
        raise ParameterError("there must be one or more centres and every radius must be >= 1")
    # Public values alone decide: rows are clipped to the limits.
    if d * (_largest(limits[np.newaxis]) + _largest(centres)) ** 2 >= EXACT_FLOAT:
        raise ParameterError("coordinates are too large for exact distances in double precision")
    sums = np.zeros((k, 2 * d + 1), dtype=np.int64)
    whole_radii = radii.astype(np.int64)
    rows = np.ascontiguousarray(raw_rows)
    _clipped_sums(rows, limits, centres.astype(np.float64), whole_radii, sums)
    return sums


@kernel
def _nearest_sums(rows, centres, sums):  # type: ignore[no-untyped-def]
    """Add to `sums` (k, d + 1) (OUT) the rows nearest to each centre, and 1 for each in the end."""
    n, d = rows.shape
    for i in range(n):
        best = 0
        best_distance = np.int64(-1)
        for c in range(centres.shape[0]):
            distance = np.int64(0)
            for j in range(d):
                gap = rows[i, j] - centres[c, j]
                distance += gap * gap
            if best_distance < 0 or distance < best_distance:
                best, best_distance = c, distance
        for j in range(d):
            sums[best, j] += rows[i, j]
        sums[best, d] += 1


def nearest_sums(raw_rows: IntArray, centres: IntArray) -> IntArray:
    """Return sums and counts of the rows nearest to each centre, shape (k, d + 1), exactly.

    Guarantee: a row adds itself and 1 to one centre; inputs already validated.
    """
    k, d = centres.shape
    sums = np.zeros((k, d + 1), dtype=np.int64)
    _nearest_sums(np.ascontiguousarray(raw_rows), np.ascontiguousarray(centres), sums)
    return sums
