"""Counts of rows by bins of single columns, by cells of all columns, and products of their scores.

Rows are coded (`study/coding.py`). A column of numbers in [-limit, limit] has bins of equal width;
the bin of x is (x + limit) bins // (2 limit + 1), in integers. A column of levels, whose limit is
given as 0, has a bin for each level. A value that is not there is in no bin. Counts are exact and
those of several blocks of rows add up.

The bins of all columns are in one row, each column's after those of the column before.
"""

import numpy as np

from splitmeans._types import NO_VALUE, IntArray
from splitmeans.errors import ParameterError
from splitmeans.kernels.assign import EXACT_FLOAT, SHRINK
from splitmeans.kernels.compiled import kernel
from splitmeans.kernels.widths import takes_narrow_rows

# Rows whose products are added up at a time, in double precision.
_PRODUCT_ROWS = 2**15
# Rows whose bins are worked out at a time, column by column, while they are in the nearest cache.
_BLOCK = 512
# Far below any sum of places.
_NO_CELL = -(2**40)


@takes_narrow_rows
def column_histograms(raw_rows: IntArray, *, limits: IntArray, bins: IntArray) -> IntArray:
    """Return the rows in each bin of each column, shape (bins of all columns,).

    Guarantee: a row, clipped to the limits, adds 1 to one bin of each column at most.

    Args:
        raw_rows: Coded rows, shape (n, d), int64 or int32.
        limits: Largest grid integer of each column, 0 for a column of levels, shape (d,).
        bins: Bins of each column, shape (d,).
    """
    _check_columns(raw_rows, limits, bins)
    counts = np.zeros(int(bins.sum()), dtype=np.int64)
    _column_histograms(np.ascontiguousarray(raw_rows), limits, bins, counts)
    return counts


@takes_narrow_rows
def cell_histogram(
    raw_rows: IntArray, *, limits: IntArray, bins: IntArray, places: IntArray, n_cells: int
) -> IntArray:
    """Return the rows in each cell, shape (cells,).

    A column whose places are all 0 is not cut; it does not matter whether a row has a value there.

    Guarantee: a row, clipped to the limits, adds 1 to one cell; if it has no value in a column that
    is cut, to none.

    Args:
        raw_rows: Coded rows, shape (n, d), int64 or int32.
        limits: Largest grid integer of each column, 0 for a column of levels, shape (d,).
        bins: Bins of each column, shape (d,).
        places: What each bin adds to the number of a row's cell, shape (bins of all columns,).
        n_cells: Number of cells; no sum of places reaches it.
    """
    _check_columns(raw_rows, limits, bins)
    firsts = np.cumsum(bins) - bins
    cut = np.maximum.reduceat(places, firsts) > 0
    counts = np.zeros(n_cells, dtype=np.int64)
    rows = np.ascontiguousarray(raw_rows)
    _cell_histogram(rows, limits, bins, cut, np.ascontiguousarray(places), counts)
    return counts


@takes_narrow_rows
def score_products(
    raw_rows: IntArray, *, limits: IntArray, bins: IntArray, scores: IntArray, longest: int
) -> IntArray:
    """Return the sums of products of every two columns' scores, shape (d, d), symmetric.

    A row's scores, one for the bin of each column and 0 for no value, are shortened to the length
    `longest`.

    Guarantee: a row adds z_i z_j for a whole-numbered z of Euclidean length at most `longest`; the
    products of i < j have length at most `longest`^2 sqrt((d - 1) / (2 d)).

    Args:
        raw_rows: Coded rows, shape (n, d), int64 or int32.
        limits: Largest grid integer of each column, 0 for a column of levels, shape (d,).
        bins: Bins of each column, shape (d,).
        scores: Whole-numbered score of each bin, shape (bins of all columns,).
        longest: Length of the longest vector of scores.
    """
    _check_columns(raw_rows, limits, bins)
    if longest**2 * _PRODUCT_ROWS >= EXACT_FLOAT:
        raise ParameterError("scores are too large for exact products in double precision")
    d = len(limits)
    sums = np.zeros((d, d), dtype=np.int64)
    for start in range(0, len(raw_rows), _PRODUCT_ROWS):
        rows = np.ascontiguousarray(raw_rows[start : start + _PRODUCT_ROWS])
        found = np.empty((d, len(rows)))
        _scores(rows, limits, bins, scores.astype(np.float64), float(longest), found)
        # Whole numbers whose sums stay below 2^53: exact in any order.
        sums += (found @ found.T).astype(np.int64)
    return sums


def _check_columns(raw_rows: IntArray, limits: IntArray, bins: IntArray) -> None:
    fits = raw_rows.ndim == 2 and raw_rows.shape[1] == len(limits)
    if not fits or raw_rows.dtype not in (np.int64, np.int32):
        raise ParameterError(
            f"rows must be int64 of shape (n, {len(limits)}), got {raw_rows.dtype} of shape "
            f"{raw_rows.shape}"
        )
    widest = 2 * int(limits.max(initial=0)) + 1
    if widest * (int(bins.max(initial=0)) + 1) >= EXACT_FLOAT:
        raise ParameterError("limits and bins are too large for exact bins in double precision")


@kernel
def _column_histograms(rows, limits, bins, counts):  # type: ignore[no-untyped-def]
    """OUT `counts` (bins of all columns,)."""
    n, d = rows.shape
    places = np.empty(_BLOCK, dtype=np.int64)
    # Every other row has counts of its own: an addition to a bin does not wait for the one before.
    others = np.zeros(counts.size, dtype=np.int64)
    for start in range(0, n, _BLOCK):
        block = rows[start : min(start + _BLOCK, n)]
        first = 0
        for j in range(d):
            _bins_of(block, j, limits[j], bins[j], places)
            own, other = counts[first : first + bins[j]], others[first : first + bins[j]]
            for i in range(0, block.shape[0] - 1, 2):
                if places[i] >= 0:
                    own[places[i]] += 1
                if places[i + 1] >= 0:
                    other[places[i + 1]] += 1
            if block.shape[0] % 2 and places[block.shape[0] - 1] >= 0:
                own[places[block.shape[0] - 1]] += 1
            first += bins[j]
    for place in range(counts.size):
        counts[place] += others[place]


@kernel
def _cell_histogram(rows, limits, bins, cut, places, counts):  # type: ignore[no-untyped-def]
    """OUT `counts` (cells,)."""
    n, d = rows.shape
    found = np.empty(_BLOCK, dtype=np.int64)
    cells = np.empty(_BLOCK, dtype=np.int64)
    for start in range(0, n, _BLOCK):
        block = rows[start : min(start + _BLOCK, n)]
        for i in range(block.shape[0]):
            cells[i] = 0
        first = 0
        for j in range(d):
            if cut[j]:
                _bins_of(block, j, limits[j], bins[j], found)
                own = places[first : first + bins[j]]
                for i in range(block.shape[0]):
                    # A row without a value has a cell far below zero, whatever follows.
                    cells[i] += own[found[i]] if found[i] >= 0 else _NO_CELL
            first += bins[j]
        for i in range(block.shape[0]):
            if cells[i] >= 0:
                counts[cells[i]] += 1


@kernel
def _scores(rows, limits, bins, scores, longest, found):  # type: ignore[no-untyped-def]
    """OUT `found` (d, n), float64 that holds whole numbers."""
    n, d = rows.shape
    places = np.empty(_BLOCK, dtype=np.int64)
    squares = np.empty(_BLOCK)
    for start in range(0, n, _BLOCK):
        block = rows[start : min(start + _BLOCK, n)]
        for i in range(block.shape[0]):
            squares[i] = 0.0
        first = 0
        for j in range(d):
            _bins_of(block, j, limits[j], bins[j], places)
            own, out = scores[first : first + bins[j]], found[j, start:]
            for i in range(block.shape[0]):
                score = own[places[i]] if places[i] >= 0 else 0.0
                out[i] = score
                squares[i] += score * score
            first += bins[j]
        for i in range(block.shape[0]):
            if squares[i] > longest * longest:
                factor = longest / np.sqrt(squares[i]) * SHRINK
                for j in range(d):
                    found[j, start + i] = float(np.int64(found[j, start + i] * factor))


@kernel
def _bins_of(rows, column, limit, n_bins, places):  # type: ignore[no-untyped-def]
    """OUT `places`: the bin of each row's code in this column, -1 if it has none."""
    if limit == 0:
        for i in range(rows.shape[0]):
            code = np.int64(rows[i, column])
            places[i] = code if 0 <= code < n_bins else np.int64(-1)
        return
    width = float(2 * limit + 1)
    for i in range(rows.shape[0]):
        code = np.int64(rows[i, column])
        inside = min(max(code, -limit), limit)
        # The whole part of a rounded quotient is right (`assign.clipped_sums` says why), and
        # quotients of doubles are worked out several at a time.
        place = np.int64(float((inside + limit) * n_bins) / width)
        places[i] = place if code != NO_VALUE else np.int64(-1)
