"""Moving single centres to where they are needed more, after Lloyd's steps have come to rest.

Lloyd's steps never carry a centre past others. With many clusters that are apart nearly every start
ends with two centres in one cluster and one between two others, and further starts make other such
mistakes. Here a centre that is hardly missed moves to the cluster that gains most from a second
one, and the steps go on from there, for as long as the loss falls.
"""

import numpy as np

from splitmeans._types import FloatArray, IntArray
from splitmeans.kernels.lloyd import nearest_two
from splitmeans.kmeans.lloyd import TOLERANCE, lloyd

# A move must lower the loss by this share of it.
_WORTH_IT = 1e-4
# Gains are estimated from below and costs from above: a move is tried if its gain is at least this
# part of its cost.
_PROMISING = 0.3
# Moves that are tried before the search ends: this over the number of centres, within limits. With
# few centres a move takes little time and is more of the loss.
_TRIES, _FEWEST_TRIES, _MOST_TRIES = 96, 2, 8


def relocated(points: FloatArray, weights: FloatArray, centres: FloatArray) -> FloatArray:
    """Return centres, shape (k, d), of no larger loss.

    Args:
        points: Shape (n, d).
        weights: Shape (n,), all positive.
        centres: Where Lloyd's steps ended, shape (k, d), k >= 1.
    """
    if len(centres) < 3:
        return centres
    columns = np.ascontiguousarray(points.T, dtype=np.float64)
    tolerance = TOLERANCE * float(np.mean(np.var(columns, axis=1)))
    labels, nearest, second = nearest_two(columns, centres)
    loss = float((weights * nearest).sum())
    while True:
        for start in _moves(points, weights, centres, labels=labels, missed=second - nearest):
            found, lower = lloyd(columns, weights, start=start, tolerance=tolerance)
            if lower < (1 - _WORTH_IT) * loss:
                break
        else:
            return centres
        centres, loss = found, lower
        labels, nearest, second = nearest_two(columns, centres)


def _moves(
    points: FloatArray,
    weights: FloatArray,
    centres: FloatArray,
    *,
    labels: IntArray,
    missed: FloatArray,
) -> list[FloatArray]:
    """Return centres with one of them moved, most promising first; none if none promises gain.

    Args:
        points: Shape (n, d).
        weights: Shape (n,).
        centres: Shape (k, d).
        labels: The nearest centre of each point.
        missed: How much the squared distance of each point would grow without its centre.
    """
    k = len(centres)
    tries = min(max(_TRIES // k, _FEWEST_TRIES), _MOST_TRIES)
    costs = np.bincount(labels, weights=weights * missed, minlength=k)
    gains, halves = _halves(points, weights, labels=labels, n_clusters=k)
    promised = [
        (gains[taker] - costs[giver], taker, giver)
        for taker in np.argsort(-gains, kind="stable")[:tries]
        for giver in np.argsort(costs, kind="stable")[:tries]
        if taker != giver and gains[taker] > _PROMISING * costs[giver]
    ]
    promised.sort(key=lambda move: -move[0])
    starts = []
    for _, taker, giver in promised[:tries]:
        start = centres.copy()
        start[[taker, giver]] = halves[:, taker]
        starts.append(start)
    return starts


def _halves(
    points: FloatArray, weights: FloatArray, *, labels: IntArray, n_clusters: int
) -> tuple[FloatArray, FloatArray]:
    """Cut each cluster at its mean across the column in which it is widest.

    Returns:
        How much the loss falls by it, shape (k,), and the means of both halves, shape (2, k, d).
    """

    def sums(values: FloatArray, groups: IntArray, n_groups: int) -> FloatArray:
        return np.stack(
            [np.bincount(groups, weights=weights * v, minlength=n_groups) for v in values.T], axis=1
        )

    totals = np.maximum(np.bincount(labels, weights=weights, minlength=n_clusters), 1e-300)
    means = sums(points, labels, n_clusters) / totals[:, np.newaxis]
    offsets = points - means[labels]
    widest = sums(np.square(offsets), labels, n_clusters).argmax(axis=1)
    above = offsets[np.arange(len(points)), widest[labels]] > 0
    half = np.where(above, labels + n_clusters, labels)
    half_totals = np.bincount(half, weights=weights, minlength=2 * n_clusters)
    half_sums = sums(points, half, 2 * n_clusters)
    halves = half_sums / np.maximum(half_totals, 1e-300)[:, np.newaxis]
    halves = halves.reshape(2, n_clusters, -1)
    low, high = half_totals.reshape(2, n_clusters)
    gains = low * high / totals * np.square(halves[0] - halves[1]).sum(axis=1)
    return gains, halves
