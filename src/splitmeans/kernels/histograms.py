"""Counts of rows by bins of single columns, by cells of all columns, and products of their scores.

A column with values in [-bound, bound] has bins of equal width; the bin of x is
(x + bound) bins // (2 bound + 1), in integers. Counts are exact and those of several blocks of rows
add up.
"""

import numpy as np

from splitmeans._types import IntArray
from splitmeans.errors import ParameterError
from splitmeans.kernels.assign import EXACT_FLOAT, SHRINK
from splitmeans.kernels.compiled import kernel

# Rows whose products are added up at a time, in double precision.
_PRODUCT_ROWS = 2**15


def column_histograms(raw_rows: IntArray, *, limits: IntArray, n_bins: int) -> IntArray:
    """Return the rows in each bin of each column, shape (d, bins).

    Guarantee: a row, clipped to the limits, adds 1 to one bin of each column.

    Args:
        raw_rows: Shape (n, d), int64 on the grid.
        limits: Largest grid integer of each column, shape (d,).
        n_bins: Bins of a column.
    """
    _check_columns(raw_rows, limits)
    counts = np.zeros((len(limits), n_bins), dtype=np.int64)
    _column_histograms(np.ascontiguousarray(raw_rows), limits, counts)
    return counts


def cell_histogram(
    raw_rows: IntArray, *, limits: IntArray, places: IntArray, n_cells: int
) -> IntArray:
    """Return the rows in each cell, shape (cells,).

    Guarantee: a row, clipped to the limits, adds 1 to one cell.

    Args:
        raw_rows: Shape (n, d), int64 on the grid.
        limits: Largest grid integer of each column, shape (d,).
        places: What each bin of each column adds to the number of a row's cell, shape (d, bins).
        n_cells: Number of cells; no sum of places reaches it.
    """
    _check_columns(raw_rows, limits)
    counts = np.zeros(n_cells, dtype=np.int64)
    _cell_histogram(np.ascontiguousarray(raw_rows), limits, np.ascontiguousarray(places), counts)
    return counts


def score_products(
    raw_rows: IntArray, *, limits: IntArray, scores: IntArray, longest: int
) -> IntArray:
    """Return the sums of products of every two columns' scores, shape (d, d), symmetric.

    A row's scores, one for the bin of each column, are shortened to the length `longest`.

    Guarantee: a row adds z_i z_j for a whole-numbered z of Euclidean length at most `longest`; the
    products of i < j have length at most `longest`^2 sqrt((d - 1) / (2 d)).

    Args:
        raw_rows: Shape (n, d), int64 on the grid.
        limits: Largest grid integer of each column, shape (d,).
        scores: Whole-numbered score of each bin of each column, shape (d, bins).
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
        _scores(rows, limits, np.ascontiguousarray(scores), float(longest), found)
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
def _column_histograms(rows, limits, counts):  # type: ignore[no-untyped-def]
    """OUT `counts` (d, bins)."""
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            counts[j, _bin(rows[i, j], limits[j], counts.shape[1])] += 1


@kernel
def _cell_histogram(rows, limits, places, counts):  # type: ignore[no-untyped-def]
    """OUT `counts` (cells,)."""
    for i in range(rows.shape[0]):
        cell = 0
        for j in range(rows.shape[1]):
            cell += places[j, _bin(rows[i, j], limits[j], places.shape[1])]
        counts[cell] += 1


@kernel
def _scores(rows, limits, scores, longest, found):  # type: ignore[no-untyped-def]
    """OUT `found` (n, d), float64 that holds whole numbers."""
    n, d = rows.shape
    for i in range(n):
        square = 0.0
        for j in range(d):
            score = float(scores[j, _bin(rows[i, j], limits[j], scores.shape[1])])
            found[i, j] = score
            square += score * score
        if square > longest * longest:
            factor = longest / np.sqrt(square) * SHRINK
            for j in range(d):
                found[i, j] = float(np.int64(found[i, j] * factor))


@kernel
def _bin(value, limit, n_bins):  # type: ignore[no-untyped-def]
    inside = min(max(value, -limit), limit)
    # Neither part is negative, so unsigned division, which is faster, gives the same.
    return np.int64(np.uint64((inside + limit) * n_bins) // np.uint64(2 * limit + 1))
