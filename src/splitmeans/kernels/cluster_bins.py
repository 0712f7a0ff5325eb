"""Counts of rows by bins of columns within clusters, and by pairs of columns.

Rows are coded (`study/coding.py`). A column of numbers is cut at edges: the bin of x is the number
of its edges that are at most x. A column of levels has a bin for each level. A value that is not
there is in no bin. Counts are exact, and those of several blocks of rows add up.
"""

import numpy as np

from splitmeans._types import NO_VALUE, IntArray, LabelArray
from splitmeans.errors import ParameterError
from splitmeans.kernels.compiled import kernel


def cluster_bins(
    raw_rows: IntArray,
    labels: LabelArray,
    *,
    n_clusters: int,
    edges: IntArray,
    bins: IntArray,
    levels: IntArray,
    pairs: IntArray,
) -> IntArray:
    """Return rows in each bin of each column for each cluster, then in each cell of each pair.

    Guarantee: a row adds 1 to one bin of each column at most, in its own cluster, and 1 to one cell
    of each pair at most.

    Args:
        raw_rows: Coded rows, shape (n, c), int64.
        labels: Their clusters, shape (n,), each below `n_clusters`.
        n_clusters: Number of clusters.
        edges: Inner edges of all columns of numbers, ascending, one column's after the other's.
        bins: Bins of each column, shape (c,); one of numbers has one edge less.
        levels: Number of levels of each column, 0 for numbers, shape (c,).
        pairs: Which two columns each pair has, shape (p, 2).

    Returns:
        Shape (n_clusters * all bins + cells of all pairs,): clusters one after the other, in each
        the columns; then the pairs, the second column's bins fastest.
    """
    if raw_rows.ndim != 2 or raw_rows.shape[1] != len(bins) or raw_rows.dtype != np.int64:
        raise ParameterError(
            f"rows must be int64 of shape (n, {len(bins)}), got {raw_rows.dtype} of shape "
            f"{raw_rows.shape}"
        )
    if int((bins - 1)[levels == 0].sum()) != len(edges):
        raise ParameterError("edges, bins and levels do not fit each other")
    cells = bins[pairs[:, 0]] * bins[pairs[:, 1]] if len(pairs) else np.zeros(0, dtype=np.int64)
    per_cluster = int(bins.sum())
    counts = np.zeros(n_clusters * per_cluster + int(cells.sum()), dtype=np.int64)
    starts = np.concatenate([[0], np.cumsum(np.where(levels == 0, bins - 1, 0))]).astype(np.int64)
    firsts = (n_clusters * per_cluster + np.cumsum(cells) - cells).astype(np.int64)
    rows = np.ascontiguousarray(raw_rows)
    _count(rows, labels, starts, edges, bins, levels, pairs, firsts, per_cluster, counts)
    return counts


@kernel
def _count(rows, labels, starts, edges, bins, levels, pairs, firsts, width, counts):  # type: ignore[no-untyped-def]
    """OUT `counts`."""
    n, c = rows.shape
    found = np.empty(c, dtype=np.int64)
    for i in range(n):
        at = labels[i] * width
        for j in range(c):
            code = rows[i, j]
            place = np.int64(-1)
            if levels[j] > 0:
                if 0 <= code < bins[j]:
                    place = code
            elif code != NO_VALUE:
                place = np.int64(0)
                for e in range(starts[j], starts[j + 1]):
                    if edges[e] <= code:
                        place += 1
            found[j] = place
            if place >= 0:
                counts[at + place] += 1
            at += bins[j]
        for p in range(pairs.shape[0]):
            first, second = found[pairs[p, 0]], found[pairs[p, 1]]
            if first >= 0 and second >= 0:
                counts[firsts[p] + first * bins[pairs[p, 1]] + second] += 1
