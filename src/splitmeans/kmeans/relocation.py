"""Moving single centres to where they are needed more, after Lloyd's steps have come to rest.

Lloyd's steps never carry a centre past others. With many clusters that are apart nearly every start
ends with two centres in one cluster and one between two others, and further starts make other such
mistakes. Here a centre that is hardly missed moves to the cluster that gains most from a second
one, and the steps go on from there, for as long as the loss falls.
"""

import numpy as np

from splitmeans._types import FloatArray
from splitmeans.kernels import lloyd
from splitmeans.kernels.points import Points
from splitmeans.kmeans.lloyd import tolerance_of
from splitmeans.kmeans.steps import Nearest, Sums, nearest_of_all, steps_to_rest

# A move must lower the loss by this share of it.
_WORTH_IT = 1e-4
# Gains are estimated from below and costs from above: a move is tried if its gain is at least this
# part of its cost.
_PROMISING = 0.3
# Moves that are tried before the search ends: this over the number of centres, within limits. With
# few centres a move takes little time and is more of the loss.
_TRIES, _FEWEST_TRIES, _MOST_TRIES = 96, 2, 8


def relocated(points: Points, centres: FloatArray) -> FloatArray:
    """Return centres, shape (k, D), of no larger loss.

    Args:
        points: The points.
        centres: Where Lloyd's steps ended, shape (k, D), k >= 1.
    """
    if len(centres) < 3:
        return centres
    tolerance = tolerance_of(points)
    known, loss, sums = nearest_of_all(points, centres)
    while True:
        for start in _moves(points, centres, known, sums):
            found, lower, _ = steps_to_rest(
                points, start=start, tolerance=tolerance, known=known.copy(), known_of=centres
            )
            if lower < (1 - _WORTH_IT) * loss:
                break
        else:
            return centres
        centres = found
        known, loss, sums = nearest_of_all(points, centres)


def _moves(points: Points, centres: FloatArray, known: Nearest, sums: Sums) -> list[FloatArray]:
    """Return centres with one of them moved, most promising first; none if none promises gain.

    Args:
        points: The points.
        centres: Shape (k, D).
        known: Each point's centre, its distance and that of the second nearest.
        sums: Of each centre's points.
    """
    k = len(centres)
    tries = min(max(_TRIES // k, _FEWEST_TRIES), _MOST_TRIES)
    # How much the squared distance of each point would grow without its centre.
    missed = np.square(known.lower, dtype=np.float64) - np.square(known.upper, dtype=np.float64)
    costs = np.bincount(known.labels, weights=points.weights * missed, minlength=k)
    gains, halves = _halves(points, known, sums)
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


def _halves(points: Points, known: Nearest, whole: Sums) -> tuple[FloatArray, FloatArray]:
    """Cut each cluster at its mean across the feature in which it is widest.

    Returns:
        How much the loss falls by it, shape (k,), and the means of both halves, shape (2, k, D).
    """
    labels, p, k = known.labels, points.numbers.shape[1], len(whole.totals)
    means, totals = whole.means(np.zeros((k, points.n_features))), whole.totals
    widths = np.zeros((k, points.n_features))
    lloyd.spreads(points.numbers, points.weights, labels, means, widths)
    # A share s of a cluster at the top of a feature of levels is a variance of s (1 - s) span^2.
    heights = points.span_of_level
    widths[:, p:] = totals[:, np.newaxis] * means[:, p:] * (heights - means[:, p:])
    sums = np.zeros((2, k, points.n_features + 1))
    lloyd.half_sums(
        points.numbers,
        points.codes,
        points.firsts,
        points.spans,
        points.weights,
        labels,
        means,
        widths.argmax(axis=1),
        sums,
    )
    weights = sums[:, :, -1]
    halves = sums[:, :, :-1] / np.maximum(weights, 1e-300)[:, :, np.newaxis]
    both = weights[0] * weights[1] / np.maximum(totals, 1e-300)
    return both * np.square(halves[0] - halves[1]).sum(axis=1), halves
