"""Nearest centre of every row, in exact integer arithmetic (rule R7).

A user's label must depend on that user's row and the released centres alone. Floating-point
distances break this: blocked matrix products round differently when other rows come and go. Here
every distance is a whole number below 2^53, exact in double precision, and ties go to the lowest
index.

Exactness needs d * (2 * bound)^2 < 2^53, with bound the largest coordinate of rows and centres;
with 2^20 grid units that allows two thousand columns of weight 1. `nearest` checks it.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from splitmeans._types import FloatArray, IntArray, LabelArray
from splitmeans.errors import ParameterError
from splitmeans.kernels.compiled import kernel
from splitmeans.kernels.widths import takes_narrow_rows

# Whole numbers below 2^53 are exact in double precision, and so are their sums in any order.
EXACT_FLOAT = 2**53

# Shrinks a clipped row a little more than its length asks for, so that rounding cannot leave it
# longer than the radius; 2^-40 is far above the rounding of doubles and far below any noise.
SHRINK = 1.0 - 2.0**-40

# Rows that go through all steps at a time, while they are in the processor's cache.
_ROWS_AT_ONCE = 512


@takes_narrow_rows
def nearest(raw_rows: IntArray, centres: IntArray) -> LabelArray:
    """Return the index of each row's nearest centre, shape (n,); ties go to the lowest index.

    Guarantee: a row's label is a pure function of that row and `centres`.

    Args:
        raw_rows: Shape (n, d), on the grid, int64 or as they are kept in memory, int32.
        centres: Shape (k, d), k >= 1, on the same grid.
    """
    if raw_rows.ndim != 2 or centres.ndim != 2 or raw_rows.shape[1] != centres.shape[1]:
        raise ParameterError(
            f"rows and centres must have equal columns, got {raw_rows.shape} and {centres.shape}"
        )
    if not {raw_rows.dtype, centres.dtype} <= {np.dtype(np.int32), np.dtype(np.int64)}:
        raise ParameterError(
            f"rows and centres must be int64 (or int32), got {raw_rows.dtype} and {centres.dtype}"
        )
    if len(centres) == 0:
        raise ParameterError("centres must have at least one row, got 0")
    labels = np.empty(len(raw_rows), dtype=np.int32)
    _walk(raw_rows, centres, labels=labels)
    return labels


@takes_narrow_rows
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
        raw_rows: Shape (n, d), on the grid, int64 or int32.
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
    # Public values alone decide: rows are clipped to the limits. With a + b below 2^53 the rounded
    # quotient of whole numbers a / b has the right whole part: where a / b is below a whole number
    # m, it is so by 1 / b or more, and half a unit in m's last place is at most m / 2^53 < 1 / b.
    largest_gap = _largest(limits) + _largest(centres)
    if d * largest_gap**2 + 2 * int(radii.max()) >= EXACT_FLOAT:
        raise ParameterError("coordinates are too large for exact distances in double precision")
    sums = np.zeros((k, 2 * d + 1), dtype=np.int64)
    _walk(raw_rows, centres, limits=limits, radii=radii.astype(np.float64), sums=sums)
    return sums


def _walk(
    raw_rows: IntArray,
    centres: IntArray,
    *,
    limits: IntArray | None = None,
    radii: FloatArray | None = None,
    sums: IntArray | None = None,
    labels: LabelArray | None = None,
) -> None:
    """Label rows, clipped to the limits, and add them to `sums` (OUT), clipped if radii are given.

    `labels` (OUT), shape (n,), are kept if there is room for them.
    """
    n, d = raw_rows.shape
    most, reach = min(n, _ROWS_AT_ONCE), _largest(centres)
    rows = _narrow(raw_rows)
    lowest = _pass_over(
        rows,
        rows.reshape(-1),
        np.full(d, 2**63 - 1) if limits is None else np.array(limits, dtype=np.int64),
        _as_own(centres),
        np.empty((most, d), dtype=rows.dtype),
        np.empty(most, dtype=np.int32) if labels is None else labels,
        np.empty(0) if radii is None else radii,
        np.empty((0, 0), dtype=np.int64) if sums is None else sums,
    )
    if d * (reach - int(lowest)) ** 2 >= EXACT_FLOAT:
        raise ParameterError("coordinates are too large for exact distances in double precision")


def _narrow(rows: IntArray) -> npt.NDArray[np.signedinteger[Any]]:
    """Return rows in 32 bits, as tables keep them, if they fit; for 64 there is other code."""
    if rows.dtype != np.int32 and _largest(rows) < 2**31:
        rows = rows.astype(np.int32)
    return np.ascontiguousarray(rows)


def _as_own(centres: IntArray) -> IntArray:
    """Return a copy: what was read from messages is read-only, which would be another type."""
    return np.array(centres, order="C", dtype=np.int64)


def _largest(values: IntArray) -> int:
    """Return the largest absolute value as a Python integer, which cannot overflow."""
    if values.size == 0:
        return 0
    return max(int(values.max()), -int(values.min()))


@kernel
def _pass_over(rows, values, limits, centres, clipped, labels, radii, sums):  # type: ignore[no-untyped-def]
    """Some rows at a time, while they are in the processor's cache; see `_walk`.

    Args:
        rows: Shape (n, d).
        values: The same in one row, shape (n d,).
        limits: To which they are clipped, shape (d,).
        centres: Shape (k, d), int64.
        clipped: Scratch: rows within the limits, as many as are taken at a time.
        labels: OUT, for all rows, or scratch for those that are taken at a time.
        radii: Of `_clipped_sums`, or none.
        sums: OUT of it, or none.

    Returns:
        Minus the largest absolute value: the smallest integer has no absolute value.
    """
    n, d = rows.shape
    step = clipped.shape[0]
    narrowest = np.int64(2**63 - 1)
    for j in range(d):
        narrowest = min(narrowest, limits[j])
    lowest = np.int64(0)
    columns = np.empty((d, step))
    places = centres.astype(np.float64)
    for start in range(0, n, max(step, 1)):
        end = min(start + step, n)
        inside = rows[start:end]
        least = _lowest(values[start * d : end * d])
        if least < -narrowest:
            # Rows of a table are within the limits; where limits differ that is for each to see.
            inside = clipped[: end - start]
            least = _clip(rows[start:end], limits, inside)
        lowest = min(lowest, least)
        for j in range(d):
            column = columns[j]
            for i in range(end - start):
                column[i] = np.float64(inside[i, j])
        own = labels[start:end] if labels.size == n else labels[: end - start]
        find_nearest(columns, places, own)
        if radii.size > 0:
            _clipped_sums(inside, own, centres, radii, sums)
    return lowest


@kernel
def find_nearest(columns, centres, labels):  # type: ignore[no-untyped-def]
    """Fill `labels` (n,) (OUT) with the nearest of `centres` (k, d) of points by column (d, >= n).

    Distances are sums in the order of columns; the lowest index on ties.
    """
    n = labels.size
    distances, best = np.empty(n), np.empty(n)
    for i in range(n):
        labels[i] = 0
        best[i] = np.inf
    for c in range(centres.shape[0]):
        for i in range(n):
            distances[i] = 0.0
        for j in range(centres.shape[1]):
            column, place = columns[j], centres[c, j]
            for i in range(n):
                gap = column[i] - place
                distances[i] += gap * gap
        for i in range(n):
            closer = distances[i] < best[i]
            best[i] = distances[i] if closer else best[i]
            labels[i] = c if closer else labels[i]


@kernel
def _lowest(values):  # type: ignore[no-untyped-def]
    """Return minus the largest absolute value."""
    least, most = np.int64(0), np.int64(0)
    for i in range(values.size):
        value = np.int64(values[i])
        least = value if value < least else least
        most = value if value > most else most
    return min(least, -most)


@kernel
def _clip(rows, limits, clipped):  # type: ignore[no-untyped-def]
    """Fill `clipped` (n, d) (OUT) with rows within the limits; return minus the largest value."""
    lowest = np.int64(0)
    for j in range(rows.shape[1]):
        for i in range(rows.shape[0]):
            value = min(max(np.int64(rows[i, j]), -limits[j]), limits[j])
            clipped[i, j] = value
            below = value if value < 0 else -value
            lowest = below if below < lowest else lowest
    return lowest


@kernel
def _clipped_sums(rows, labels, centres, radii, sums):  # type: ignore[no-untyped-def]
    """Add to `sums` (k, 2 d + 1) (OUT, int64); see `clipped_sums`.

    `rows` (n, d), within the limits, and `centres` (k, d), int64, are small enough that every
    squared distance is below 2^53; `radii` (k,) holds whole numbers as float64.
    """
    d = rows.shape[1]
    gaps = np.empty(d)
    for i in range(labels.size):
        c = labels[i]
        own = sums[c]
        square = np.int64(0)
        for j in range(d):
            gap = np.int64(rows[i, j]) - centres[c, j]
            square += gap * gap
            gaps[j] = gap
        radius, length = radii[c], float(square)
        if length > radius * radius:
            # A loop of its own, so that other rows do not wait for a root that they do not need.
            factor = radius / np.sqrt(length) * SHRINK
            for j in range(d):
                gaps[j] *= factor
        twice = 2 * radius
        own[d] += 1
        for j in range(d):
            # Conversion to an integer cuts towards zero: the clipped row gets no longer.
            offset = np.int64(gaps[j])
            own[j] += offset
            own[d + 1 + j] += np.int64(float(offset * offset) / twice)
