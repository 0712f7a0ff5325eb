"""Weighted k-means on a few public points, for any number of them (the paper, phase 4).

The points are released values (synthetic points at a party, pseudo-users at the server), so this is
post-processing. Noise can leave fewer useful points than clusters; the number of centres is agreed
beforehand all the same, so the result always has exactly that many.

Lloyd's steps begin at several k-means++ starts; of many points the starts see a sample, and the
best of them continue with all points. Then single centres are relocated for as long as the loss
falls: Lloyd's steps never carry a centre past others, so with many clusters that are apart nearly
every start ends with two centres in one cluster and one between two others.

`python -m benchmarks speed` prints the time beside scikit-learn's.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from splitmeans import _validate
from splitmeans._types import FloatArray, IntArray, LabelArray
from splitmeans.errors import ParameterError
from splitmeans.kernels import lloyd
from splitmeans.kmeans.draws import draw_evenly

# Restarts of k-means++: the points are few, so restarts cost little and bad local optima cost much.
RESTARTS = 10
# Points that starts see where there are more than twice as many, and the starts that continue then.
_SAMPLE = 4096
_KEPT_STARTS = 4
# The steps end when the centres move by less than this share of the points' variance.
_TOLERANCE = 1e-4
_MOST_STEPS = 300
# Columns of fewer levels are read as numbers: a look-up takes as long as a few products.
_FEWEST_LEVELS = 8
# A relocation must lower the loss by this share of it.
_WORTH_IT = 1e-4
# Gains are estimated from below and costs from above: a relocation is tried if its gain is at least
# this part of its cost.
_PROMISING = 0.3
# Relocations that are tried before the search ends: this over the number of centres, within limits.
_TRIES, _FEWEST_TRIES, _MOST_TRIES = 96, 2, 8


def weighted_kmeans(
    points: FloatArray,
    weights: FloatArray,
    *,
    n_clusters: int,
    rng: np.random.Generator,
    starts: int = RESTARTS,
    levels: Sequence[slice] = (),
    begin: FloatArray | None = None,
    move_stuck: bool = True,
) -> FloatArray:
    """Return `n_clusters` centres, shape (n_clusters, d), of weighted points.

    Points with weight zero or below do not count; if no weight is positive, all points count
    equally. With no more different points than clusters every point is a centre, heaviest first,
    and the list is repeated until it is long enough.

    Args:
        points: Shape (n, d), n >= 1.
        weights: Shape (n,).
        n_clusters: Number of centres to return.
        rng: Seeds the restarts.
        starts: Number of restarts; the best is taken.
        levels: The features of each column of levels. Where every point has one level of a column
            it costs one look-up, however many levels there are.
        begin: Good centres to continue from, shape (n_clusters, d); no start is drawn then.
        move_stuck: Whether centres of drawn starts are relocated.
    """
    _validate.at_least(1, n_clusters=n_clusters)
    if points.ndim != 2 or len(points) == 0:
        raise ParameterError(f"points must have shape (n, d) with n >= 1, got {points.shape}")
    if weights.shape != (len(points),):
        raise ParameterError(f"weights must have shape ({len(points)},), got {weights.shape}")
    positive = weights > 0
    if positive.any():
        points, weights = points[positive], weights[positive]
    else:
        weights = np.ones(len(points))
    if not _more_different_than(n_clusters, points):
        return _repeat_points(points, weights, n_clusters=n_clusters)
    given = _as_points(points, weights, levels=levels)
    if begin is not None:
        return given.features(_steps(given, begin[:, given.order] - given.bottoms).centres)
    found = _best_of_starts(given, n_clusters=n_clusters, n_starts=starts, rng=rng)
    return given.features(_relocated(given, found) if move_stuck else found)


def n_different(points: FloatArray) -> int:
    """Return how many different places points are at, shape (n, d)."""
    if points.size == 0:
        return min(len(points), 1)
    # As strings of bytes, which sort much faster than rows do; adding 0 makes -0 one of them.
    rows = np.ascontiguousarray(points + 0.0)
    return len(np.unique(rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1])))))


def _more_different_than(count: int, points: FloatArray) -> bool:
    # The first few rows nearly always settle it; sorting all rows of a large table would be slow.
    first = points[: 4 * (count + 1)]
    return n_different(first) > count or n_different(points) > count


def _repeat_points(points: FloatArray, weights: FloatArray, *, n_clusters: int) -> FloatArray:
    different, which = np.unique(points, axis=0, return_inverse=True)
    totals = np.bincount(which.ravel(), weights=weights)
    heaviest_first = different[np.argsort(-totals, kind="stable")]
    return np.asarray(np.resize(heaviest_first, (n_clusters, points.shape[1])))


class _Points(NamedTuple):
    """n points with p columns of numbers and q columns of levels.

    A column of L levels is L features, of which a point has one at the top (`span`) and all others
    at zero. Centres have all features: the numbers, then the levels of each column.

    Attributes:
        numbers: Shape (n, p).
        places: The feature of each point's level in each column, shape (n, q).
        spans: The value of that feature, shape (q,).
        weights: Shape (n,), all positive.
        order: The given feature at each place of a centre, shape (D,).
        bottoms: The number taken off each feature, shape (D,), in that order.
    """

    numbers: FloatArray
    places: IntArray
    spans: FloatArray
    weights: FloatArray
    order: IntArray
    bottoms: FloatArray

    @property
    def rows(self) -> tuple[FloatArray, IntArray, FloatArray, FloatArray]:
        """Return the arrays that kernels take."""
        return self.numbers, self.places, self.spans, self.weights

    def features(self, centres: FloatArray) -> FloatArray:
        """Return centres, shape (k, D), with the features as they were given."""
        found = np.empty_like(centres)
        found[:, self.order] = centres + self.bottoms
        return found

    def some(self, chosen: IntArray) -> "_Points":
        """Return some points, each of weight 1."""
        return self._replace(
            numbers=self.numbers[chosen], places=self.places[chosen], weights=np.ones(len(chosen))
        )

    def centres_at(self, chosen: IntArray) -> FloatArray:
        """Return all features of some points, shape (m, D)."""
        found = np.zeros((len(chosen), len(self.order)))
        found[:, : self.numbers.shape[1]] = self.numbers[chosen]
        np.put_along_axis(found, self.places[chosen], self.spans, axis=1)
        return found


def _as_points(points: FloatArray, weights: FloatArray, *, levels: Sequence[slice]) -> _Points:
    """Return points with one place for each column of levels that is one."""
    columns = [
        (own, found)
        for own in levels
        if own.stop - own.start >= _FEWEST_LEVELS
        and (found := _level_of_each(points[:, own])) is not None
    ]
    is_number = np.ones(points.shape[1], dtype=bool)
    for own, _ in columns:
        is_number[own] = False
    numbers = np.flatnonzero(is_number)
    order, bottoms = [numbers], [np.zeros(len(numbers))]
    places, first = np.empty((len(points), len(columns)), dtype=np.int64), len(numbers)
    for column, (own, (level, bottom, _)) in enumerate(columns):
        places[:, column] = first + level
        first += own.stop - own.start
        order.append(np.arange(own.start, own.stop))
        bottoms.append(np.full(own.stop - own.start, bottom))
    return _Points(
        numbers=np.ascontiguousarray(points[:, numbers], dtype=np.float64),
        places=places,
        spans=np.array([span for _, (_, _, span) in columns], dtype=np.float64),
        weights=np.ascontiguousarray(weights, dtype=np.float64),
        order=np.concatenate(order),
        bottoms=np.concatenate(bottoms),
    )


def _level_of_each(features: FloatArray) -> tuple[IntArray, float, float] | None:
    """Return the level of each point, the bottom, and how far the top is from it; None if none."""
    bottom, top = float(features.min()), float(features.max())
    at_top = features == top
    if not (at_top.sum(axis=1) == 1).all() or not (at_top | (features == bottom)).all():
        return None
    return at_top.argmax(axis=1), bottom, top - bottom


class _Rest(NamedTuple):
    """Where Lloyd's steps ended.

    Attributes:
        centres: Shape (k, D).
        loss: The weighted sum of squared distances to them.
        labels: The nearest centre of each point, shape (n,).
        nearest: The distance to it at most, shape (n,).
        second: The distance to any other at least, shape (n,).
    """

    centres: FloatArray
    loss: float
    labels: LabelArray
    nearest: FloatArray
    second: FloatArray


def _steps(
    points: _Points, start: FloatArray, *, known: _Rest | None = None, most: int = _MOST_STEPS
) -> _Rest:
    """Move centres to the means of their points until they rest.

    `known` is about centres of which `start`, shape (k, D), differs in a few.
    """
    centres, n = np.array(start, dtype=np.float64, order="C"), len(points.weights)
    if known is None:
        before = centres.copy()
        near = np.full(n, -1, dtype=np.int32), np.empty(n), np.empty(n)
    else:
        before = known.centres.copy()
        near = known.labels.copy(), known.nearest.copy(), known.second.copy()
    variance = float(np.var(points.numbers, axis=0).sum())
    for column, span in zip(points.places.T, points.spans, strict=True):
        shares = np.bincount(column - column.min()) / n
        variance += float(span) ** 2 * float((shares * (1 - shares)).sum())
    tolerance = _TOLERANCE * variance / len(points.order)
    loss = lloyd.to_rest(*points.rows, centres, before, *near, tolerance, most)
    return _Rest(centres, loss, *near)


def _best_of_starts(
    points: _Points, *, n_clusters: int, n_starts: int, rng: np.random.Generator
) -> FloatArray:
    """Return the centres, shape (n_clusters, D), of the start that ends with the least loss."""
    seen = points
    if len(points.weights) > 2 * _SAMPLE:
        seen = points.some(draw_evenly(points.weights, _SAMPLE, rng=rng))
    ends = []
    for _ in range(n_starts):
        uniforms = np.zeros((n_clusters, 2 + int(math.log(n_clusters))))
        uniforms[0, 0], uniforms[1:] = rng.random(), rng.random(uniforms[1:].shape)
        chosen = np.empty(n_clusters, dtype=np.int64)
        lloyd.spread(np.ascontiguousarray(seen.numbers.T), *seen.rows[1:], uniforms, chosen)
        ends.append(_steps(seen, seen.centres_at(chosen)))
    if seen is not points:
        ends.sort(key=lambda end: end.loss)
        ends = [_steps(points, end.centres) for end in ends[:_KEPT_STARTS]]
    return min(ends, key=lambda end: end.loss).centres


def _relocated(points: _Points, centres: FloatArray) -> FloatArray:
    """Return centres, shape (k, D), of no larger loss than where Lloyd's steps ended."""
    if len(centres) < 3:
        return centres
    while True:
        # Without a step: every point's nearest and second nearest centre, exactly.
        now = _steps(points, centres, most=0)
        for start in _moves(points, now):
            found = _steps(points, start, known=now)
            if found.loss < (1 - _WORTH_IT) * now.loss:
                break
        else:
            return centres
        centres = found.centres


def _moves(points: _Points, now: _Rest) -> list[FloatArray]:
    """Return centres with one of them moved, most promising first; none if none promises gain."""
    k = len(now.centres)
    tries = min(max(_TRIES // k, _FEWEST_TRIES), _MOST_TRIES)
    # How much the squared distance of each point would grow without its centre.
    missed = np.square(now.second) - np.square(now.nearest)
    costs = np.bincount(now.labels, weights=points.weights * missed, minlength=k)
    # Each cluster, cut at its mean across the feature in which it is widest.
    sums = np.zeros((2, k, len(points.order) + 1))
    lloyd.half_sums(*points.rows, now.labels, sums)
    totals = sums[:, :, -1]
    halves = sums[:, :, :-1] / np.maximum(totals, 1e-300)[:, :, np.newaxis]
    both = totals[0] * totals[1] / np.maximum(totals.sum(axis=0), 1e-300)
    gains = both * np.square(halves[0] - halves[1]).sum(axis=1)
    promised = [
        (gains[taker] - costs[giver], taker, giver)
        for taker in np.argsort(-gains, kind="stable")[:tries]
        for giver in np.argsort(costs, kind="stable")[:tries]
        if taker != giver and gains[taker] > _PROMISING * costs[giver]
    ]
    promised.sort(key=lambda move: -move[0])
    starts = []
    for _, taker, giver in promised[:tries]:
        start = now.centres.copy()
        start[[taker, giver]] = halves[:, taker]
        starts.append(start)
    return starts
