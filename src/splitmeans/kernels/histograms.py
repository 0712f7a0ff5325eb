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

# Products of two scores are below this: sums of 2^25 rows stay exact in 64 bits, scores in 32.
_LARGEST_PRODUCT = 2**38
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
    if longest**2 >= _LARGEST_PRODUCT or np.abs(scores).max(initial=0) >= 2**26:
        raise ParameterError("scores are too large for exact products")
    sums = np.zeros((len(limits), len(limits)), dtype=np.int64)
    rows = np.ascontiguousarray(raw_rows)
    _score_products(rows, limits, bins, scores.astype(np.float64), float(longest), sums)
    return sums + np.tril(sums, -1).T


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
    codes = np.empty(_BLOCK, dtype=np.int64)
    places = np.empty(_BLOCK, dtype=np.int64)
    # Every other row has counts of its own: an addition to a bin does not wait for the one before.
    others = np.zeros(counts.size, dtype=np.int64)
    for start in range(0, n, _BLOCK):
        block = rows[start : min(start + _BLOCK, n)]
        first = 0
        for j in range(d):
            _bins_of(block, j, limits[j], bins[j], codes, places)
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
    codes = np.empty(_BLOCK, dtype=np.int64)
    found = np.empty(_BLOCK, dtype=np.int64)
    cells = np.empty(_BLOCK, dtype=np.int64)
    for start in range(0, n, _BLOCK):
        block = rows[start : min(start + _BLOCK, n)]
        for i in range(block.shape[0]):
            cells[i] = 0
        first = 0
        for j in range(d):
            if cut[j]:
                _bins_of(block, j, limits[j], bins[j], codes, found)
                own = places[first : first + bins[j]]
                for i in range(block.shape[0]):
                    # A row without a value has a cell far below zero, whatever follows.
                    cells[i] += own[found[i]] if found[i] >= 0 else _NO_CELL
            first += bins[j]
        for i in range(block.shape[0]):
            if cells[i] >= 0:
                counts[cells[i]] += 1


@kernel
def _score_products(rows, limits, bins, scores, longest, sums):  # type: ignore[no-untyped-def]
    """Add to `sums` (d, d) (OUT) on and below the diagonal; `scores` hold whole numbers."""
    n, d = rows.shape
    codes = np.empty(_BLOCK, dtype=np.int64)
    places = np.empty(_BLOCK, dtype=np.int64)
    squares = np.empty(_BLOCK)
    found = np.empty((d, _BLOCK), dtype=np.int32)
    for start in range(0, n, _BLOCK):
        block = rows[start : min(start + _BLOCK, n)]
        for i in range(block.shape[0]):
            squares[i] = 0.0
        first = 0
        for j in range(d):
            _bins_of(block, j, limits[j], bins[j], codes, places)
            own, out = scores[first : first + bins[j]], found[j]
            for i in range(block.shape[0]):
                score = own[places[i]] if places[i] >= 0 else 0.0
                out[i] = np.int32(score)
                squares[i] += score * score
            first += bins[j]
        for i in range(block.shape[0]):
            if squares[i] > longest * longest:
                factor = longest / np.sqrt(squares[i]) * SHRINK
                for j in range(d):
                    found[j, i] = np.int32(found[j, i] * factor)
        for j in range(d):
            for other in range(j + 1):
                one, two = found[j], found[other]
                total = np.int64(0)
                for i in range(block.shape[0]):
                    total += np.int64(one[i]) * np.int64(two[i])
                sums[j, other] += total


@kernel
def _bins_of(rows, column, limit, n_bins, codes, places):  # type: ignore[no-untyped-def]
    """OUT `places`: the bin of each row's code in this column, -1 if it has none.

    `codes` is scratch: codes that lie apart are put side by side first, because a loop that does
    more than that with them does not become vector instructions.
    """
    for i in range(rows.shape[0]):
        codes[i] = rows[i, column]
    if limit == 0:
        for i in range(rows.shape[0]):
            places[i] = codes[i] if 0 <= codes[i] < n_bins else np.int64(-1)
        return
    width = float(2 * limit + 1)
    for i in range(rows.shape[0]):
        inside = min(max(codes[i], -limit), limit)
        # The whole part of a rounded quotient is right (`assign.clipped_sums` says why), and
        # quotients of doubles are worked out several at a time.
        place = np.int64(float((inside + limit) * n_bins) / width)
        places[i] = place if codes[i] != NO_VALUE else np.int64(-1)
