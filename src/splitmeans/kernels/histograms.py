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

# Rows whose products are added up at a time, in double precision.
_PRODUCT_ROWS = 2**15


def column_histograms(raw_rows: IntArray, *, limits: IntArray, bins: IntArray) -> IntArray:
    """Return the rows in each bin of each column, shape (bins of all columns,).

    Guarantee: a row, clipped to the limits, adds 1 to one bin of each column at most.

    Args:
        raw_rows: Coded rows, shape (n, d), int64.
        limits: Largest grid integer of each column, 0 for a column of levels, shape (d,).
        bins: Bins of each column, shape (d,).
    """
    _check_columns(raw_rows, limits)
    counts = np.zeros(int(bins.sum()), dtype=np.int64)
    _column_histograms(np.ascontiguousarray(raw_rows), limits, bins, counts)
    return counts


def cell_histogram(
    raw_rows: IntArray, *, limits: IntArray, bins: IntArray, places: IntArray, n_cells: int
) -> IntArray:
    """Return the rows in each cell, shape (cells,).

    A column whose places are all 0 is not cut; it does not matter whether a row has a value there.

    Guarantee: a row, clipped to the limits, adds 1 to one cell; if it has no value in a column that
    is cut, to none.

    Args:
        raw_rows: Coded rows, shape (n, d), int64.
        limits: Largest grid integer of each column, 0 for a column of levels, shape (d,).
        bins: Bins of each column, shape (d,).
        places: What each bin adds to the number of a row's cell, shape (bins of all columns,).
        n_cells: Number of cells; no sum of places reaches it.
    """
    _check_columns(raw_rows, limits)
    firsts = np.cumsum(bins) - bins
    cut = np.maximum.reduceat(places, firsts) > 0
    counts = np.zeros(n_cells, dtype=np.int64)
    rows = np.ascontiguousarray(raw_rows)
    _cell_histogram(rows, limits, bins, cut, np.ascontiguousarray(places), counts)
    return counts


def score_products(
    raw_rows: IntArray, *, limits: IntArray, bins: IntArray, scores: IntArray, longest: int
) -> IntArray:
    """Return the sums of products of every two columns' scores, shape (d, d), symmetric.

    A row's scores, one for the bin of each column and 0 for no value, are shortened to the length
    `longest`.

    Guarantee: a row adds z_i z_j for a whole-numbered z of Euclidean length at most `longest`; the
    products of i < j have length at most `longest`^2 sqrt((d - 1) / (2 d)).

    Args:
        raw_rows: Coded rows, shape (n, d), int64.
        limits: Largest grid integer of each column, 0 for a column of levels, shape (d,).
        bins: Bins of each column, shape (d,).
        scores: Whole-numbered score of each bin, shape (bins of all columns,).
        longest: Length of the longest vector of scores.
    """
    _check_columns(raw_rows, limits)
    if longest**2 * _PRODUCT_ROWS >= EXACT_FLOAT:
        raise ParameterError("scores are too large for exact products in double precision")
    d = len(limits)
    sums = np.zeros((d, d), dtype=np.int64)
    for start in range(0, len(raw_rows), _PRODUCT_ROWS):
        rows = np.ascontiguousarray(raw_rows[start : start + _PRODUCT_ROWS])
        found = np.empty(rows.shape)
        _scores(rows, limits, bins, np.ascontiguousarray(scores), float(longest), found)
        # Whole numbers whose sums stay below 2^53: exact in any order.
        sums += (found.T @ found).astype(np.int64)
    return sums


def _check_columns(raw_rows: IntArray, limits: IntArray) -> None:
    if raw_rows.ndim != 2 or raw_rows.shape[1] != len(limits) or raw_rows.dtype != np.int64:
        raise ParameterError(
            f"rows must be int64 of shape (n, {len(limits)}), got {raw_rows.dtype} of shape "
            f"{raw_rows.shape}"
        )


@kernel
def _column_histograms(rows, limits, bins, counts):  # type: ignore[no-untyped-def]
    """OUT `counts` (bins of all columns,)."""
    for i in range(rows.shape[0]):
        first = 0
        for j in range(rows.shape[1]):
            place = _bin(rows[i, j], limits[j], bins[j])
            if place >= 0:
                counts[first + place] += 1
            first += bins[j]


@kernel
def _cell_histogram(rows, limits, bins, cut, places, counts):  # type: ignore[no-untyped-def]
    """OUT `counts` (cells,)."""
    for i in range(rows.shape[0]):
        cell = 0
        first = 0
        for j in range(rows.shape[1]):
            place = _bin(rows[i, j], limits[j], bins[j]) if cut[j] else np.int64(0)
            if place < 0:
                cell = -1
                break
            cell += places[first + place]
            first += bins[j]
        if cell >= 0:
            counts[cell] += 1


@kernel
def _scores(rows, limits, bins, scores, longest, found):  # type: ignore[no-untyped-def]
    """OUT `found` (n, d), float64 that holds whole numbers."""
    n, d = rows.shape
    for i in range(n):
        square = 0.0
        first = 0
        for j in range(d):
            place = _bin(rows[i, j], limits[j], bins[j])
            score = float(scores[first + place]) if place >= 0 else 0.0
            found[i, j] = score
            square += score * score
            first += bins[j]
        if square > longest * longest:
            factor = longest / np.sqrt(square) * SHRINK
            for j in range(d):
                found[i, j] = float(np.int64(found[i, j] * factor))


@kernel
def _bin(code, limit, n_bins):  # type: ignore[no-untyped-def]
    """Return the bin of a code, -1 if it has none."""
    if limit == 0:
        return code if 0 <= code < n_bins else np.int64(-1)
    if code == NO_VALUE:
        return np.int64(-1)
    inside = min(max(code, -limit), limit)
    # Neither part is negative, so unsigned division, which is faster, gives the same.
    return np.int64(np.uint64((inside + limit) * n_bins) // np.uint64(2 * limit + 1))
