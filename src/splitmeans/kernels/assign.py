"""Nearest centre of every row, in exact integer arithmetic (rule R7).

A user's label must depend on that user's row and the released centres alone. Floating-point
distances break this: blocked matrix products round differently when other rows come and go. Here
every distance that decides is an exact 64-bit integer and ties go to the lowest index; single
precision only settles what no rounding could change (`screen.py`).

Exactness needs d * (2 * bound)^2 < 2^63, with bound the largest coordinate of rows and centres;
with 2^20 grid units that allows a million columns of weight 1. `nearest` checks it.
"""

import numpy as np

from splitmeans._types import IntArray, LabelArray
from splitmeans.errors import ParameterError
from splitmeans.kernels.compiled import kernel
from splitmeans.kernels.screen import BLOCK, room_for, screen_block, screen_of

# Whole numbers below 2^53 are exact in double precision, and so are their sums in any order.
EXACT_FLOAT = 2**53

# Shrinks a clipped row a little more than its length asks for, so that rounding cannot leave it
# longer than the radius; 2^-40 is far above the rounding of doubles and far below any noise.
SHRINK = 1.0 - 2.0**-40

# No coordinate is cut.
_NO_LIMIT = 2**62


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
    labels = np.empty(len(raw_rows), dtype=np.int32)
    rows, limits = np.ascontiguousarray(raw_rows), np.full(raw_rows.shape[1], _NO_LIMIT)
    low, high = _nearest(rows, limits, _as_own(centres), labels)
    if raw_rows.shape[1] * (max(int(high), -int(low)) + _largest(centres)) ** 2 >= 2**63:
        raise ParameterError("coordinates are too large for exact 64-bit distances")
    return labels


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
    # Public values alone decide: rows are clipped to the limits. With a + b below 2^53 the rounded
    # quotient of whole numbers a / b has the right whole part: where a / b is below a whole number
    # m, it is so by 1 / b or more, and half a unit in m's last place is at most m / 2^53 < 1 / b.
    largest_gap = _largest(limits) + _largest(centres)
    if d * largest_gap**2 + 2 * int(radii.max()) >= EXACT_FLOAT:
        raise ParameterError("coordinates are too large for exact distances in double precision")
    sums = np.zeros((k, 2 * d + 1), dtype=np.int64)
    rows = np.ascontiguousarray(raw_rows)
    _clipped_sums(rows, limits, _as_own(centres), radii.astype(np.float64), sums)
    return sums


def nearest_sums(raw_rows: IntArray, centres: IntArray) -> IntArray:
    """Return sums and counts of the rows nearest to each centre, shape (k, d + 1), exactly.

    Guarantee: a row adds itself and 1 to one centre; inputs already validated.
    """
    k, d = centres.shape
    sums = np.zeros((k, d + 1), dtype=np.int64)
    _sum_up(np.ascontiguousarray(raw_rows), nearest(raw_rows, centres), sums)
    return sums


def _as_own(centres: IntArray) -> IntArray:
    """Return a copy: what was read from messages is read-only, which would be another type."""
    return np.array(centres, order="C")


def _largest(values: IntArray) -> int:
    """Return the largest absolute value as a Python integer, which cannot overflow."""
    if values.size == 0:
        return 0
    return max(int(values.max()), -int(values.min()))


@kernel
def _nearest(rows, limits, centres, labels):  # type: ignore[no-untyped-def]
    """Fill `labels` (n,) (OUT); return the smallest and the largest coordinate."""
    screen = screen_of(centres)
    room = room_for(screen)
    low, high = np.int64(0), np.int64(0)
    for start in range(0, rows.shape[0], BLOCK):
        block = rows[start : start + BLOCK]
        lowest, highest = _label_block(block, limits, centres, screen, room)
        low, high = min(low, lowest), max(high, highest)
        labels[start : start + BLOCK] = room.labels[: block.shape[0]]
    return low, high


@kernel
def _label_block(block, limits, centres, screen, room):  # type: ignore[no-untyped-def]
    """Fill `room.labels` (OUT) of at most BLOCK rows, clipped to the limits; return their range."""
    size, d = block.shape
    low, high = np.int64(0), np.int64(0)
    for i in range(size):
        for j in range(d):
            value = min(max(block[i, j], -limits[j]), limits[j])
            low, high = min(low, value), max(high, value)
            room.columns[j, i] = value
    screen_block(screen, room, size)
    slack = screen.slack_at_zero + screen.slack_by_size * max(float(high), -float(low))
    for i in range(size):
        if not room.margins[i] > slack:
            room.labels[i] = _exactly_nearest(block[i], limits, centres)
    return low, high


@kernel
def _exactly_nearest(row, limits, centres):  # type: ignore[no-untyped-def]
    best = 0
    best_distance = np.int64(-1)
    for c in range(centres.shape[0]):
        distance = np.int64(0)
        for j in range(row.size):
            gap = min(max(row[j], -limits[j]), limits[j]) - centres[c, j]
            distance += gap * gap
        if best_distance < 0 or distance < best_distance:
            best, best_distance = c, distance
    return best


@kernel
def _clipped_sums(rows, limits, centres, radii, sums):  # type: ignore[no-untyped-def]
    """Fill `sums` (k, 2 d + 1) (OUT, int64); see `clipped_sums`.

    `rows` (n, d), `limits` (d,) and `centres` (k, d) are int64, small enough that every squared
    distance is below 2^53; `radii` (k,) holds whole numbers as float64.
    """
    d = rows.shape[1]
    screen = screen_of(centres)
    room = room_for(screen)
    gaps = np.empty(d)
    for start in range(0, rows.shape[0], BLOCK):
        block = rows[start : start + BLOCK]
        _label_block(block, limits, centres, screen, room)
        for i in range(block.shape[0]):
            c = room.labels[i]
            row, centre, own = block[i], centres[c], sums[c]
            square = np.int64(0)
            for j in range(d):
                gap = min(max(row[j], -limits[j]), limits[j]) - centre[j]
                square += gap * gap
                gaps[j] = gap
            radius, length = radii[c], float(square)
            inside = length <= radius * radius
            factor = 1.0 if inside else radius / np.sqrt(length) * SHRINK
            twice = 2 * radius
            own[d] += 1
            for j in range(d):
                # Conversion to an integer cuts towards zero: the clipped row gets no longer.
                offset = np.int64(gaps[j] * factor)
                own[j] += offset
                own[d + 1 + j] += np.int64(float(offset * offset) / twice)


@kernel
def _sum_up(rows, labels, sums):  # type: ignore[no-untyped-def]
    """Add to `sums` (k, d + 1) (OUT) the rows of each label, and 1 for each in the end."""
    n, d = rows.shape
    for i in range(n):
        own = sums[labels[i]]
        for j in range(d):
            own[j] += rows[i, j]
        own[d] += 1
