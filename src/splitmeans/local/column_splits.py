"""Splitting columns into intervals, from noisy histograms of single columns.

A grid of equal cells wastes its cells: real columns crowd into a part of their bounds, and some
hardly vary. Here every column is cut where one-dimensional k-means cuts its histogram, and columns
share a given number of cells by how much each further interval lowers the squared error. Of levels
the most frequent ones have an interval each, and the others one together. All of this is
post-processing of released counts.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from splitmeans._types import FloatArray, IntArray

# Sixteen were no better, and the search for the best cuts takes longer with more.
MAX_INTERVALS = 8


@dataclass(frozen=True, kw_only=True, eq=False)
class Intervals:
    """A column cut into m intervals.

    Attributes:
        edges: First bin of each interval, and the number of bins; shape (m + 1,).
        points: Mean of each interval, shape (m,); zeros for levels, which are nowhere on a line.
        spreads: Mean squared distance from it, shape (m,); zeros for levels.
        order: Which level is the first, second and so on of the bins that are cut; None for
            numbers, whose bins are in order already.
    """

    edges: IntArray
    points: FloatArray
    spreads: FloatArray
    order: IntArray | None = None

    @property
    def interval_of_bin(self) -> IntArray:
        """For each bin, in the order that is cut, the interval that it belongs to."""
        return np.repeat(np.arange(len(self.points)), np.diff(self.edges))

    @property
    def interval_of_code(self) -> IntArray:
        """The same for each bin of numbers, or each level as it is listed."""
        return as_listed(self.interval_of_bin, self.order)


def as_listed(values: IntArray, order: IntArray | None) -> IntArray:
    """Return values of levels in an order as values of levels as they are listed."""
    if order is None:
        return values
    listed = np.empty_like(values)
    listed[order] = values
    return listed


def split_columns(
    weights: Sequence[FloatArray], positions: Sequence[FloatArray | float], *, max_cells: float
) -> list[Intervals]:
    """Cut every column so that the product of all numbers of intervals is at most `max_cells`.

    Greedy: the next step is the one with the largest fall in squared error per factor of cells,
    looking up to two intervals ahead (a symmetric column may gain from three, not from two).

    Args:
        weights: For each column the weight of its bins, none negative.
        positions: For each column of numbers the middle of its bins, equally spaced; for one of
            levels, whose bins are the levels by weight, how far each feature moves from one level
            to another.
        max_cells: Largest number of cells.
    """
    cuts = [
        level_cuts(w, x, most=MAX_INTERVALS)
        if isinstance(x, float)
        else best_cuts(w, x, most=MAX_INTERVALS)
        for w, x in zip(weights, positions, strict=True)
    ]
    sizes = [1] * len(cuts)
    while True:
        best_gain, best_column, best_size = 0.0, -1, 0
        for column, options in enumerate(cuts):
            now = sizes[column]
            for size in range(now + 1, min(now + 2, len(options)) + 1):
                if math.prod(sizes) / now * size > max_cells:
                    continue
                fall = options[now - 1][0] - options[size - 1][0]
                gain = fall / math.log(size / now)
                if gain > best_gain:
                    best_gain, best_column, best_size = gain, column, size
        if best_column < 0:
            break
        sizes[best_column] = best_size
    return [
        _intervals(w, x, edges=options[size - 1][1])
        for w, x, options, size in zip(weights, positions, cuts, sizes, strict=True)
    ]


def best_cuts(
    weights: FloatArray, positions: FloatArray, *, most: int
) -> list[tuple[float, IntArray]]:
    """Return for 1, 2, ..., `most` intervals the least squared error and its edges.

    Exact, by dynamic programming over the bins. The list is shorter if there are fewer bins.
    """
    n_bins = len(weights)
    cost = _interval_costs(weights, positions)
    every, least = np.arange(n_bins + 1), cost[:, 0]
    found = [(float(least[n_bins]), np.array([0, n_bins]))]
    previous_edges: list[IntArray] = []
    for _ in range(2, min(most, n_bins) + 1):
        totals = least + cost
        previous_edges.append(totals.argmin(axis=1))
        least = totals[every, previous_edges[-1]]
        edges = [n_bins]
        for edge_before in reversed(previous_edges):
            edges.append(int(edge_before[edges[-1]]))
        found.append((float(least[n_bins]), np.array([0, *reversed(edges)])))
    return found


def level_cuts(weights: FloatArray, gap: float, *, most: int) -> list[tuple[float, IntArray]]:
    """Return the same for levels by weight: the first ones alone, the others together.

    Of levels with shares p of a group the squared error is gap^2 (1 - sum of p^2) a row: two rows
    of different levels differ by `gap` in two features, and a mean is half way.
    """
    n_levels = len(weights)
    rest = np.concatenate([np.cumsum(weights[::-1])[::-1], [0.0]])
    squares = np.concatenate([np.cumsum(np.square(weights[::-1]))[::-1], [0.0]])
    found = []
    for size in range(1, min(most, n_levels) + 1):
        alone = size - 1
        together = rest[alone] - squares[alone] / max(rest[alone], 1e-9)
        edges = np.array([*range(size), n_levels])
        found.append((float(max(together, 0.0) * gap**2), edges))
    return found


def _interval_costs(weights: FloatArray, positions: FloatArray) -> FloatArray:
    """Return the squared error of bins a to b - 1 as one interval at [b, a]; bins + 1 each way."""
    mass, first, second = (
        np.concatenate([[0.0], np.cumsum(weights * positions**power)]) for power in (0, 1, 2)
    )
    mass, first, second = (np.subtract.outer(s, s) for s in (mass, first, second))
    means = first / np.where(mass > 0, mass, 1.0)
    cost = np.maximum(second - means * first, 0.0)
    return np.where(np.tri(len(cost), k=-1, dtype=bool), cost, np.inf)


def _intervals(weights: FloatArray, positions: FloatArray | float, *, edges: IntArray) -> Intervals:
    if isinstance(positions, float):
        # Levels are nowhere on a line; nothing is asked of where their intervals are.
        nowhere = np.zeros(len(edges) - 1)
        return Intervals(edges=edges, points=nowhere, spreads=nowhere)
    within_bin = (positions[1] - positions[0]) ** 2 / 12
    points, spreads = [], []
    for start, end in itertools.pairwise(edges.tolist()):
        inside = positions[start:end]
        # An interval without weight is as good as evenly filled.
        share = weights[start:end] if weights[start:end].sum() > 0 else np.ones(len(inside))
        point = np.average(inside, weights=share)
        points.append(point)
        spreads.append(np.average((inside - point) ** 2, weights=share) + within_bin)
    return Intervals(edges=edges, points=np.array(points), spreads=np.array(spreads))
