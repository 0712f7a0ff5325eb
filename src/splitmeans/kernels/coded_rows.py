"""Nearest centres and clipped sums of coded rows: columns of numbers and of levels, some empty.

A column of numbers is one feature, a column of c levels is c features, of which a row has one at
the top and all others at the bottom of its bounds (`study/coding.py`). How far each level is from a
centre in the features of its column is worked out once for all rows, so a row takes one addition
for a column and centre, however many levels the column has.

A negative code of levels, or the number `NO_VALUE`, is no value: such a column adds nothing to the
row's distances, so that they are distances over the columns that are there, and nothing to sums.
All distances are exact whole numbers; what `kernels.assign` says of exactness holds here.
"""

import numpy as np

from splitmeans._types import NO_VALUE, FloatArray, IntArray, LabelArray
from splitmeans.errors import ParameterError
from splitmeans.kernels.assign import EXACT_FLOAT, SHRINK
from splitmeans.kernels.compiled import kernel


def coded_nearest(
    raw_rows: IntArray, *, centres: IntArray, limits: IntArray, levels: tuple[int, ...]
) -> LabelArray:
    """Return the index of each row's nearest centre, shape (n,); ties go to the lowest index.

    Guarantee: a row's label is a pure function of that row and `centres`.

    Args:
        raw_rows: Coded rows, shape (n, columns), int64.
        centres: Shape (k, d), k >= 1, int64 within the limits.
        limits: Largest grid integer of each feature, shape (d,).
        levels: Number of levels of each column, 0 for numbers.
    """
    starts = _starts(raw_rows, levels, limits)
    tables = _level_distances(centres, limits, starts, levels)
    labels = np.empty(len(raw_rows), dtype=np.int32)
    rows, widths = np.ascontiguousarray(raw_rows), np.array(levels, dtype=np.int64)
    _nearest(rows, limits, widths, starts, centres.astype(np.float64), tables, labels)
    return labels


def coded_sums(
    raw_rows: IntArray,
    *,
    centres: IntArray,
    radii: IntArray,
    limits: IntArray,
    levels: tuple[int, ...],
) -> IntArray:
    """Return, for each centre, what the rows nearest to it add up to relative to it.

    As `kernels.assign.clipped_sums` for the features of coded rows, with two differences: a column
    without a value has offset 0, and squares are of columns of numbers alone (a level's square
    says nothing that its sum does not).

    Guarantee: a row's share of the sums has Euclidean length at most r, its share of the squares
    at most r / 2, and it adds to one centre.

    Returns:
        Shape (k, d + 1 + numbers): the sums, the count, the squares.
    """
    k, d = centres.shape
    starts = _starts(raw_rows, levels, limits)
    if limits.shape != (d,) or radii.shape != (k,) or k == 0 or radii.min() < 1:
        raise ParameterError("centres, limits and radii do not fit each other")
    tables = _level_distances(centres, limits, starts, levels)
    widths = np.array(levels, dtype=np.int64)
    sums = np.zeros((k, d + 1 + int((widths == 0).sum())), dtype=np.int64)
    rows = np.ascontiguousarray(raw_rows)
    labels = np.empty(len(rows), dtype=np.int32)
    floats = centres.astype(np.float64)
    _nearest(rows, limits, widths, starts, floats, tables, labels)
    _add_up(rows, limits, widths, starts, centres, radii.astype(np.int64), labels, sums)
    return sums


def _starts(raw_rows: IntArray, levels: tuple[int, ...], limits: IntArray) -> IntArray:
    starts = np.concatenate([[0], np.cumsum([max(1, n) for n in levels])]).astype(np.int64)
    if raw_rows.ndim != 2 or raw_rows.shape[1] != len(levels) or raw_rows.dtype != np.int64:
        raise ParameterError(
            f"rows must be int64 of shape (n, {len(levels)}), got {raw_rows.dtype} of shape "
            f"{raw_rows.shape}"
        )
    if starts[-1] != len(limits):
        raise ParameterError(f"levels must make {len(limits)} features, got {starts[-1]}")
    # Public values alone decide: rows are clipped to the limits, and centres lie within them.
    if len(limits) * (2 * int(limits.max())) ** 2 >= EXACT_FLOAT:
        raise ParameterError("coordinates are too large for exact distances in double precision")
    return starts


def _level_distances(
    centres: IntArray, limits: IntArray, starts: IntArray, levels: tuple[int, ...]
) -> FloatArray:
    """Return the squared distance of each level from each centre, shape (k, d + columns).

    Column j has its levels from place starts[j] + j on, and after them equal shares of all.
    """
    found = np.zeros((len(centres), int(starts[-1]) + len(levels)))
    for place, n in enumerate(levels):
        if not n:
            continue
        first = int(starts[place])
        own = centres[:, first : first + n]
        bottom, top = (own + limits[first]) ** 2, (own - limits[first]) ** 2
        at = first + place
        found[:, at : at + n] = bottom.sum(axis=1, keepdims=True) - bottom + top
        base, rest = divmod(2 * int(limits[first]), n)
        even = np.full(n, base - int(limits[first]))
        even[:rest] += 1
        found[:, at + n] = ((own - even) ** 2).sum(axis=1)
    return found


@kernel
def _nearest(rows, limits, levels, starts, centres, tables, labels):  # type: ignore[no-untyped-def]
    """OUT `labels` (n,)."""
    n, columns = rows.shape
    for i in range(n):
        best = 0
        best_distance = -1.0
        for c in range(centres.shape[0]):
            distance = 0.0
            for j in range(columns):
                code = rows[i, j]
                if levels[j] == 0:
                    if code == NO_VALUE:
                        continue
                    limit = limits[starts[j]]
                    gap = min(max(code, -limit), limit) - centres[c, starts[j]]
                    distance += gap * gap
                elif code >= 0:
                    distance += tables[c, starts[j] + j + min(code, levels[j])]
            if best_distance < 0 or distance < best_distance:
                best, best_distance = c, distance
        labels[i] = best


@kernel
def _add_up(rows, limits, levels, starts, centres, radii, labels, sums):  # type: ignore[no-untyped-def]
    """OUT `sums` (k, d + 1 + numbers)."""
    n, columns = rows.shape
    d = centres.shape[1]
    offsets = np.empty(d)
    for i in range(n):
        c = labels[i]
        square = 0.0
        for j in range(columns):
            code = rows[i, j]
            first, width = starts[j], max(levels[j], 1)
            if code == NO_VALUE or (levels[j] > 0 and code < 0):
                for f in range(first, first + width):
                    offsets[f] = 0.0
                continue
            limit = limits[first]
            if levels[j] == 0:
                offsets[first] = min(max(code, -limit), limit) - centres[c, first]
            elif code < width:
                for f in range(first, first + width):
                    offsets[f] = -limit - centres[c, f]
                offsets[first + code] += 2 * limit
            else:
                base, rest = 2 * limit // width, 2 * limit % width
                for f in range(first, first + width):
                    offsets[f] = base + (f - first < rest) - limit - centres[c, f]
            for f in range(first, first + width):
                square += offsets[f] * offsets[f]
        radius = radii[c]
        inside = square <= float(radius) * float(radius)
        factor = 1.0 if inside else radius / np.sqrt(square) * SHRINK
        sums[c, d] += 1
        at = d + 1
        for j in range(columns):
            for f in range(starts[j], starts[j] + max(levels[j], 1)):
                # Conversion to an integer cuts towards zero: the clipped row gets no longer.
                offset = np.int64(offsets[f] * factor)
                sums[c, f] += offset
                if levels[j] == 0:
                    sums[c, at] += offset * offset // (2 * radius)
                    at += 1
