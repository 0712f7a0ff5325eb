"""Weighted k-means on released points, so post-processing (the paper, phase 4).

The result always has as many centres as were agreed, also if noise leaves fewer useful points.
Lloyd's steps begin at several k-means++ starts; of many points the starts see a sample, and the
best of them continue with all points. Then single centres are relocated for as long as the loss
falls: Lloyd's steps never carry a centre past others, so with many clusters that are apart nearly
every start ends with two centres in one cluster and one between two others.

Most points keep their centre from one step to the next. The distance to a point's own centre, at
most, and to every other one, at least, stay true when the moves of centres are added and taken off
(Hamerly, "Making k-means even faster", 2010), so only points that this does not settle are compared
with all centres.
"""

import math
from typing import NamedTuple

import numpy as np

from splitmeans import _validate
from splitmeans._types import FloatArray, LabelArray
from splitmeans.errors import ParameterError
from splitmeans.kernels.compiled import kernel
from splitmeans.kernels.registers import look_up
from splitmeans.kmeans.draws import draw_evenly

# Restarts of k-means++: the points are few, so restarts cost little and bad local optima cost much.
RESTARTS = 10
# Points that starts see where there are more than twice as many, and the starts that continue then.
_SAMPLE = 4096
_KEPT_STARTS = 4
# The steps end when the centres move by less than this share of the points' variance.
_TOLERANCE = 1e-4
_MOST_STEPS = 300
# A relocation must lower the loss by this share of it.
_WORTH_IT = 1e-4
# Gains are estimated from below and costs from above: a relocation is tried if its gain is at least
# this part of its cost.
_PROMISING = 0.3
# Relocations that are tried before the search ends: this over the number of centres, within limits.
_TRIES, _FEWEST_TRIES, _MOST_TRIES = 96, 2, 8
# Points compared with all centres at a time, while they are in the processor's cache.
_ROWS_AT_ONCE = 512
# In place of the weight of a cluster or half that has none.
_NO_WEIGHT = 1e-300


def weighted_kmeans(
    points: FloatArray,
    weights: FloatArray,
    *,
    n_clusters: int,
    rng: np.random.Generator,
    starts: int = RESTARTS,
    begin: FloatArray | None = None,
    move_stuck: bool = True,
) -> FloatArray:
    """Return `n_clusters` centres, shape (n_clusters, d), of weighted points.

    Points with weight zero or below do not count; if no weight is positive, all points count
    equally. With no more different points than clusters every point is a centre, heaviest first,
    and the list is repeated until it is long enough.

    Points have the shape (n, d), n >= 1, weights (n,). From good centres to `begin` with, of the
    result's shape, no start is drawn; centres of drawn starts are relocated with `move_stuck`.
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
    points, weights = np.ascontiguousarray(points, float), np.ascontiguousarray(weights, float)
    if begin is not None:
        return _steps(points, weights, begin).centres
    found = _best_of_starts(points, weights, n_clusters, starts, rng)
    return _relocated(points, weights, found) if move_stuck else found


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


class _Rest(NamedTuple):
    """Where Lloyd's steps ended; labels and distances of points as in `_to_rest`."""

    centres: FloatArray
    loss: float
    labels: LabelArray
    nearest: FloatArray
    second: FloatArray


def _steps(
    points: FloatArray, weights: FloatArray, start: FloatArray, *, most: int = _MOST_STEPS
) -> _Rest:
    """Move centres, shape (k, d), to the means of their points until they rest.

    After no step at all both distances are exact.
    """
    centres, n = np.array(start, dtype=np.float64, order="C"), len(points)
    near = np.zeros(n, dtype=np.int32), np.empty(n), np.empty(n)
    tolerance = _TOLERANCE * float(np.var(points, axis=0).sum()) / points.shape[1]
    loss = _to_rest(points, weights, centres, *near, tolerance, most)
    return _Rest(centres, loss, *near)


def _best_of_starts(
    points: FloatArray,
    weights: FloatArray,
    n_clusters: int,
    n_starts: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Return the centres, shape (n_clusters, d), of the start that ends with the least loss."""
    seen, seen_weights = points, weights
    if len(points) > 2 * _SAMPLE:
        seen = points[draw_evenly(weights, _SAMPLE, rng=rng)]
        seen_weights = np.ones(_SAMPLE)
    columns = np.ascontiguousarray(seen.T)
    ends = []
    for _ in range(n_starts):
        uniforms = np.zeros((n_clusters, 2 + int(math.log(n_clusters))))
        uniforms[0, 0], uniforms[1:] = rng.random(), rng.random(uniforms[1:].shape)
        chosen = np.empty(n_clusters, dtype=np.int64)
        _spread(columns, seen_weights, uniforms, chosen)
        ends.append(_steps(seen, seen_weights, seen[chosen]))
    if seen is not points:
        ends.sort(key=lambda end: end.loss)
        ends = [_steps(points, weights, end.centres) for end in ends[:_KEPT_STARTS]]
    return min(ends, key=lambda end: end.loss).centres


def _relocated(points: FloatArray, weights: FloatArray, centres: FloatArray) -> FloatArray:
    """Return centres, shape (k, d), of no larger loss than where Lloyd's steps ended."""
    if len(centres) < 3:
        return centres
    while True:
        now = _steps(points, weights, centres, most=0)
        for start in _moves(points, weights, now):
            found = _steps(points, weights, start)
            if found.loss < (1 - _WORTH_IT) * now.loss:
                break
        else:
            return centres
        centres = found.centres


def _moves(points: FloatArray, weights: FloatArray, now: _Rest) -> list[FloatArray]:
    """Return centres with one of them moved, most promising first; none if none promises gain."""
    k = len(now.centres)
    tries = min(max(_TRIES // k, _FEWEST_TRIES), _MOST_TRIES)
    # How much the squared distance of each point would grow without its centre.
    missed = np.square(now.second) - np.square(now.nearest)
    costs = np.bincount(now.labels, weights=weights * missed, minlength=k)
    halves, totals = _halves(points, weights, now.labels, k)
    both = totals[0] * totals[1] / np.maximum(totals.sum(axis=0), _NO_WEIGHT)
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


def _halves(
    points: FloatArray, weights: FloatArray, labels: LabelArray, k: int
) -> tuple[FloatArray, FloatArray]:
    """Return means, shape (2, k, d), and weights, shape (2, k), of both halves of each cluster.

    A cluster is cut at its mean across the feature in which it is widest.
    """
    means, totals = _means(points, weights, labels, k)
    widths, _ = _means(np.square(points - means[labels]), weights, labels, k)
    cut = widths.argmax(axis=1)[labels][:, np.newaxis]
    above = np.take_along_axis(points, cut, 1) > np.take_along_axis(means[labels], cut, 1)
    means, totals = _means(points, weights, labels + k * above.ravel(), 2 * k)
    return means.reshape(2, k, -1), totals.reshape(2, k)


def _means(
    points: FloatArray, weights: FloatArray, labels: LabelArray, k: int
) -> tuple[FloatArray, FloatArray]:
    totals = np.bincount(labels, weights=weights, minlength=k)
    sums = [np.bincount(labels, weights=weights * column, minlength=k) for column in points.T]
    means = np.stack(sums, axis=1) / np.maximum(totals, _NO_WEIGHT)[:, np.newaxis]
    return means, np.asarray(totals, dtype=np.float64)


@kernel
def _to_rest(  # type: ignore[no-untyped-def]
    points, weights, centres, labels, nearest, second, tolerance, most_steps
):
    """INOUT centres (k, d), to the means of their points until they rest; return the loss.

    OUT, each (n,): `labels` the nearest centre of each point, `nearest` the distance to it at most,
    `second` that to any other at least. Stops when squared moves of all centres add up to no more
    than the tolerance.
    """
    k = len(centres)
    moves, rows = np.zeros(k), np.arange(labels.size)
    sums, totals, members = np.zeros_like(centres), np.zeros(k), np.zeros(k, np.int64)
    labels[:] = -1
    unsettled, resting = labels.size, False
    for step in range(most_steps + 1):
        if step:
            unsettled = _unsettled(points, centres, moves, labels, nearest, second, rows)
        changed = 0
        for start in range(0, unsettled, _ROWS_AT_ONCE):
            some = rows[start : min(start + _ROWS_AT_ONCE, unsettled)]
            found = _two_nearest(points, some, centres, nearest, second)
            for place in range(some.size):
                i, label = some[place], found[place]
                if label != labels[i]:
                    _move(points[i], weights[i], labels[i], label, sums, totals, members)
                    labels[i] = label
                    changed += 1
        if resting or changed == 0 or step == most_steps:
            break
        _fill_empty(points, weights, labels, centres, sums, totals, members)
        resting = _to_means(sums, totals, centres, moves) <= tolerance
    loss = 0.0
    for i in range(labels.size):
        loss += weights[i] * _square(points, i, centres, labels[i])
    return loss


@kernel
def _unsettled(points, centres, moves, labels, nearest, second, rows):  # type: ignore[no-untyped-def]
    """OUT the points whose nearest centre may have changed, at the front of `rows` (n,).

    Returns how many these are; the bounds of all points follow the moves of centres (INOUT).
    """
    free = np.full(len(centres), np.inf)
    for c in range(free.size):
        for other in range(c):
            # Within half the distance to the nearest other centre no other is nearer.
            half = np.sqrt(_square(centres, c, centres, other)) / 2.0
            free[c], free[other] = min(free[c], half), min(free[other], half)
    mover = np.argmax(moves)
    farthest, others, count = moves[mover], 0.0, 0
    for c in range(moves.size):
        if c != mover:
            others = max(others, moves[c])
    for i in range(labels.size):
        own = labels[i]
        nearest[i] += moves[own]
        second[i] -= others if own == mover else farthest
        settled = max(second[i], free[own])
        if nearest[i] > settled:
            nearest[i] = np.sqrt(_square(points, i, centres, own))
            if nearest[i] > settled:
                rows[count] = i
                count += 1
    return count


@kernel
def _square(points, i, centres, c):  # type: ignore[no-untyped-def]
    square = 0.0
    for j in range(points.shape[1]):
        gap = points[i, j] - centres[c, j]
        square += gap * gap
    return square


@kernel
def _two_nearest(points, rows, centres, nearest, second):  # type: ignore[no-untyped-def]
    """Return the nearest centre of some points; OUT its distance and that of the second nearest."""
    m, d = rows.size, points.shape[1]
    columns, squares = np.empty((d, m)), np.empty(m)
    for place in range(m):
        for j in range(d):
            columns[j, place] = points[rows[place], j]
    found, best, next_best = np.zeros(m, np.int32), np.full(m, np.inf), np.full(m, np.inf)
    for c in range(len(centres)):
        squares[:] = 0.0
        for j in range(d):
            column, middle = columns[j], centres[c, j]
            for i in range(m):
                gap = column[i] - middle
                squares[i] += gap * gap
        for i in range(m):
            closer = squares[i] < best[i]
            next_best[i] = best[i] if closer else min(next_best[i], squares[i])
            best[i] = squares[i] if closer else best[i]
            found[i] = c if closer else found[i]
    for i in range(m):
        nearest[rows[i]], second[rows[i]] = np.sqrt(best[i]), np.sqrt(next_best[i])
    return found


@kernel
def _move(point, weight, old, new, sums, totals, members):  # type: ignore[no-untyped-def]
    """INOUT the sums of two clusters, of which a point leaves one (none if below 0) for another."""
    for sign, c in ((-1, old), (1, new)):
        if c >= 0:
            if members[c] == 0:  # what an empty cluster began with is no member
                sums[c], totals[c] = 0.0, 0.0
            members[c] += sign
            totals[c] += sign * weight
            for j in range(point.size):
                sums[c, j] += sign * weight * point[j]


@kernel
def _fill_empty(points, weights, labels, centres, sums, totals, members):  # type: ignore[no-untyped-def]
    """INOUT: a centre without points starts again at the point that costs most."""
    if 0 not in members:
        return
    costs = np.empty(labels.size)
    for i in range(labels.size):
        costs[i] = weights[i] * _square(points, i, centres, labels[i])
    for empty in range(members.size):
        if members[empty] == 0:
            worst = np.argmax(costs)
            costs[worst], totals[empty] = -1.0, 1.0
            for j in range(centres.shape[1]):
                sums[empty, j] = points[worst, j]


@kernel
def _to_means(sums, totals, centres, moves):  # type: ignore[no-untyped-def]
    """INOUT centres; OUT how far each moves. Returns the sum of squared moves."""
    shift = 0.0
    for c in range(len(centres)):
        square = 0.0
        for j in range(centres.shape[1]):
            mean = sums[c, j] / totals[c]
            square += (mean - centres[c, j]) ** 2
            centres[c, j] = mean
        moves[c] = np.sqrt(square)
        shift += square
    return shift


@kernel
def _spread(columns, weights, uniforms, chosen):  # type: ignore[no-untyped-def]
    """OUT `chosen` (k,), points far from each other (k-means++, each the best of a few draws).

    Points are `columns` (d, n); `uniforms` (k, draws) in [0, 1), of the first row one is used.
    """
    n, n_draws = weights.size, uniforms.shape[1]
    nearest, edges = np.full(n, np.inf), np.empty(n)
    tried, kept = np.empty(n), np.empty(n)
    for place in range(chosen.size):
        total = 0.0
        for i in range(n):
            total += weights[i] * nearest[i] if place else weights[i]
            edges[i] = total
        least = np.inf
        for draw in range(n_draws if place else 1):
            at = min(look_up(edges, uniforms[place, draw] * total), n - 1)
            tried[:] = 0.0
            for column in columns:
                value = column[at]
                for i in range(n):
                    gap = column[i] - value
                    tried[i] += gap * gap
            loss = 0.0
            for i in range(n):
                tried[i] = min(tried[i], nearest[i])
                loss += weights[i] * tried[i]
            if loss < least:
                least = loss
                chosen[place] = at
                tried, kept = kept, tried
        nearest, kept = kept, nearest
