"""Synthetic points whose clusters have released shapes: post-processing, no row is looked at.

Points are candidates, some of them mixed of several points of a cluster so that every combination
can occur. Candidates are weighted until their counts agree with what was released, one histogram
after the other (proportional fitting), and drawn by weight. What pairs of columns have in common
stays as the points have it, but where a pair was released.

A noisy count is believed as far as counts are off by more than their noise (empirical Bayes, as in
`correction.py`), so that a release that is mostly noise leaves the points as they are.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from splitmeans._types import FloatArray, IntArray
from splitmeans.kernels.assign import nearest
from splitmeans.kmeans.draws import draw_evenly
from splitmeans.local.bins import bins_of, codes_of
from splitmeans.shrinkage import shrinkage
from splitmeans.study.coding import Coding

# Candidates that are mixed for each point, and what all of a kind weigh beside the points: with
# each column of any point of the cluster, and with one column of any point at all.
_MIXED = 2
_MIXED_WEIGHT, _STRAY_WEIGHT = 0.3, 0.03

_ROUNDS = 15
# A weight changes by no more than this factor at a count: cells with few candidates are left alone.
_MOST = 10.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Counts:
    """Noisy counts of the rows in groups that the bins of a candidate tell.

    Attributes:
        strides: What each column's bin adds to the number of a candidate's group, shape (c,), and
            the cluster's number, last.
        noisy: Rows in each group.
        deviation: Standard deviation of the noise on each; 0 for counts that are to be met.
    """

    strides: IntArray
    noisy: FloatArray
    deviation: float

    def groups(self, places: IntArray) -> IntArray:
        """Return the group of candidates with these bins and, last, clusters, shape (n,)."""
        return np.asarray(places @ self.strides)


def reshaped(
    points: IntArray,
    counts: Sequence[Counts],
    *,
    centres: IntArray,
    edges: Sequence[IntArray],
    coding: Coding,
    size: float,
    rng: np.random.Generator,
) -> IntArray:
    """Return as many points that agree with the counts as far as these are more than noise.

    Args:
        points: Released points, shape (n, d), in grid integers, each for equally many rows.
        counts: What was released of the rows; those that come last are met best.
        centres: The released centres, shape (k, d).
        edges: For each column of numbers the inner edges of its bins; none for levels.
        coding: Which features are numbers, and which are the levels of one column.
        size: Number of rows.
        rng: Mixes and draws; nothing is hidden by it.
    """
    candidates, weights = _candidates(points, centres=centres, coding=coding, rng=rng)
    weights *= size / weights.sum()
    labels = nearest(candidates, centres)
    bins = bins_of(codes_of(candidates, coding), edges, coding)
    places = np.column_stack([bins, labels.astype(np.int64)])
    groups = [own.groups(places) for own in counts]
    wanted = [
        _shrunk(_sums(at, weights, len(own.noisy)), own)
        for at, own in zip(groups, counts, strict=True)
    ]
    for _ in range(_ROUNDS):
        for at, target in zip(groups, wanted, strict=True):
            found = _sums(at, weights, len(target))
            ratios = np.divide(target, found, out=np.ones_like(target), where=found > 0)
            weights = weights * np.clip(ratios, 1 / _MOST, _MOST)[at]
        weights = weights * (size / weights.sum())
    # In the order of clusters, so that each gets its number of points to within one.
    order = np.argsort(labels, kind="stable")
    return candidates[order[draw_evenly(weights[order], len(points), rng=rng)]]


def _shrunk(model: FloatArray, counts: Counts) -> FloatArray:
    """Return counts between those of the candidates and the noisy ones, none negative."""
    if not counts.deviation:
        return counts.noisy
    off = counts.noisy - model
    weight = shrinkage(off, counts.deviation, sizes=np.maximum(model, 1.0), beyond_chance=True)
    return np.asarray(np.maximum(model + weight * off, 0.0))


def _candidates(
    points: IntArray, *, centres: IntArray, coding: Coding, rng: np.random.Generator
) -> tuple[IntArray, FloatArray]:
    """Return the points and mixtures of them, and their weights."""
    labels = nearest(points, centres).astype(np.int64)
    parts, weights = [points], [np.ones(len(points))]
    for _ in range(_MIXED):
        mixed = np.empty_like(points)
        for own in _columns(coding):
            mixed[:, own] = points[_shuffled(labels, rng)][:, own]
        parts.append(mixed)
        weights.append(np.full(len(points), _MIXED_WEIGHT / _MIXED))
    stray = points.copy()
    chosen = rng.integers(len(coding.levels), size=len(points))
    for place, own in enumerate(_columns(coding)):
        rows = np.flatnonzero(chosen == place)
        others = rng.integers(len(points), size=len(rows))
        stray[rows, own] = points[others, own]
    parts.append(stray)
    weights.append(np.full(len(points), _STRAY_WEIGHT))
    return np.concatenate(parts), np.concatenate(weights)


def _sums(groups: IntArray, weights: FloatArray, n_groups: int) -> FloatArray:
    return np.bincount(groups, weights=weights, minlength=n_groups).astype(np.float64)


def _columns(coding: Coding) -> list[slice]:
    """Return the features of each column."""
    return [
        slice(int(first), int(last))
        for first, last in zip(coding.starts[:-1], coding.starts[1:], strict=True)
    ]


def _shuffled(labels: IntArray, rng: np.random.Generator) -> IntArray:
    """Return for each position another one of the same label, each once."""
    positions = np.argsort(labels, kind="stable")
    mixed = np.lexsort((rng.random(len(labels)), labels))
    found = np.empty(len(labels), dtype=np.int64)
    found[positions] = mixed
    return found
