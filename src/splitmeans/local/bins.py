"""Bins of columns, chosen from released values, and points brought to a column's released shape.

Everything here is post-processing: no row is looked at.
"""

import itertools
from collections.abc import Sequence

import numpy as np

from splitmeans._types import FloatArray, IntArray
from splitmeans.study.coding import Coding

NO_EDGES: IntArray = np.zeros(0, dtype=np.int64)


def codes_of(points: IntArray, coding: Coding) -> IntArray:
    """Return points as coded rows: numbers, or the position of the level, shape (n, c)."""
    codes = np.empty((len(points), len(coding.levels)), dtype=np.int64)
    codes[:, np.array(coding.levels) == 0] = points[:, coding.number_features]
    for place, own in coding.categorical:
        codes[:, place] = points[:, own].argmax(axis=1)
    return codes


def bins_of(codes: IntArray, edges: Sequence[IntArray], coding: Coding) -> IntArray:
    """Return the bin of each code, shape (n, c); that of a level is its position."""
    bins = codes.copy()
    for place, (own, n) in enumerate(zip(edges, coding.levels, strict=True)):
        if not n:
            bins[:, place] = np.searchsorted(own, codes[:, place], side="right")
    return bins


def bin_numbers(edges: Sequence[IntArray], coding: Coding) -> IntArray:
    """Return how many bins each column has: one for each level, or between edges."""
    return np.array([n or len(own) + 1 for n, own in zip(coding.levels, edges, strict=True)])


def even_edges(points: IntArray, coding: Coding, *, n_bins: int) -> list[IntArray]:
    """Return for each column of numbers the inner edges of bins with equally many points.

    Where points are dense bins are narrow, so that a single value that many rows have is told from
    its neighbours.
    """
    edges = []
    for own, n in zip(codes_of(points, coding).T, coding.levels, strict=True):
        ordered = np.sort(own)
        marks = ordered[np.arange(1, n_bins) * len(ordered) // n_bins]
        edges.append(NO_EDGES if n else np.unique(marks[marks > ordered[0]]))
    return edges


def coarser(edges: IntArray, shares: FloatArray, *, n_bins: int) -> IntArray:
    """Return those edges that part a column into about so many bins of equal shares.

    A bin with a large share stays on its own.

    Args:
        edges: Inner edges of all bins.
        shares: Share of each bin, one more than edges.
        n_bins: About how many.
    """
    below = np.cumsum(shares)
    marks = np.arange(1, n_bins) / n_bins * below[-1]
    at = np.minimum(np.searchsorted(below, marks), len(shares) - 1)
    wide = shares[at] > below[-1] / (2 * n_bins)
    chosen = np.unique(np.concatenate([at, at[wide] - 1]))
    return np.asarray(edges[chosen[(chosen >= 0) & (chosen < len(edges))]])


def at_most(edges: IntArray, shares: FloatArray, *, n_bins: int) -> IntArray:
    """Return those edges that part a column into so many bins at most; see `coarser`."""
    return next(
        found
        for wanted in range(n_bins, 0, -1)
        if len(found := coarser(edges, shares, n_bins=wanted)) < n_bins
    )


def with_shape(
    values: IntArray, edges: IntArray, shares: FloatArray, *, rng: np.random.Generator
) -> IntArray:
    """Return values in the same order that fill bins by these shares, evenly within each.

    Args:
        values: Shape (n,); none that is returned lies beyond them.
        edges: Inner edges of the bins, within the values.
        shares: Share of each bin, not all zero.
        rng: Puts equal values into an order.
    """
    order = np.lexsort((rng.random(len(values)), values))
    ends = np.concatenate([values[order[:1]], edges, values[order[-1:]]]).astype(np.float64)
    below = np.concatenate([[0.0], np.cumsum(shares)])
    ranks = (np.arange(len(values)) + 0.5) / len(values) * below[-1]
    found = np.empty(len(values), dtype=np.int64)
    # Bins without a share have edges at one place; a hair's breadth keeps them in order.
    rising = below + np.arange(len(below)) * 1e-12
    found[order] = np.rint(np.interp(ranks, rising, ends)).astype(np.int64)
    return found


def going_together(bins: IntArray, n_bins: IntArray, *, n_pairs: int) -> IntArray:
    """Return the pairs of columns whose bins tell most of each other, shape (n_pairs, 2).

    By the mutual information of released points with these bins, shape (n, c), the largest first.
    """
    if not n_pairs:
        return np.zeros((0, 2), dtype=np.int64)
    pairs = list(itertools.combinations(range(len(n_bins)), 2))
    told = [_information(bins[:, i], bins[:, j], int(n_bins[i]), int(n_bins[j])) for i, j in pairs]
    best = np.argsort(-np.array(told), kind="stable")[:n_pairs]
    return np.array([pairs[at] for at in best], dtype=np.int64)


def _information(first: IntArray, second: IntArray, n: int, m: int) -> float:
    joint = np.bincount(first * m + second, minlength=n * m).reshape(n, m) / len(first)
    apart = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    there = joint > 0
    return float(np.sum(joint[there] * np.log(joint[there] / apart[there])))
