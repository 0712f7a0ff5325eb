"""Lloyd's k-means on weighted points, from several k-means++ starts.

A participant of a run clusters up to some ten thousand released points, which takes a tenth of a
second; loading scikit-learn for it takes most of a second at every participant. `python -m
benchmarks speed` prints its time beside scikit-learn's, and the tests compare the losses.

Of many points the starts see a sample, and the best of them go on with all points: two and a half
times as fast as ten starts on 20,000 points, and with a mean loss that is no larger
(k of 5 to 15 on one synopsis, six seeds each).
"""

import math

import numpy as np

from splitmeans._types import FloatArray, IntArray
from splitmeans.kernels.lloyd import lloyd_step, nearer_distances, own_distances
from splitmeans.kernels.screen import in_single
from splitmeans.kmeans.draws import draw_evenly

_STEPS = 300
# The steps end when the centres move by less than this share of the points' variance.
TOLERANCE = 1e-4
# Points that starts see where there are more than twice as many, and the starts that go on then.
_SAMPLE = 4096
_KEPT_STARTS = 4


def best_of_starts(
    points: FloatArray,
    weights: FloatArray,
    *,
    n_clusters: int,
    n_starts: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Return the centres, shape (n_clusters, d), of the start that ends with the least loss.

    Args:
        points: Shape (n, d), more different ones than clusters.
        weights: Shape (n,), all positive.
        n_clusters: Number of centres.
        n_starts: Number of starts.
        rng: Draws the starts.
    """
    columns = np.ascontiguousarray(points.T, dtype=np.float64)
    weights = np.ascontiguousarray(weights, dtype=np.float64)
    tolerance = TOLERANCE * float(np.mean(np.var(columns, axis=1)))
    seen, seen_weights = columns, weights
    if len(points) > 2 * _SAMPLE:
        drawn = draw_evenly(weights, _SAMPLE, rng=rng)
        seen, seen_weights = np.ascontiguousarray(columns[:, drawn]), np.ones(_SAMPLE)
    ends = []
    for _ in range(n_starts):
        start = spread_start(seen, seen_weights, n_clusters=n_clusters, rng=rng)
        ends.append(lloyd(seen, seen_weights, start=start, tolerance=tolerance))
    if seen is not columns:
        ends.sort(key=lambda end: end[1])
        ends = [
            lloyd(columns, weights, start=centres, tolerance=tolerance)
            for centres, _ in ends[:_KEPT_STARTS]
        ]
    best, _ = min(ends, key=lambda end: end[1])
    return np.asarray(best, dtype=np.float64)


def spread_start(
    columns: FloatArray, weights: FloatArray, *, n_clusters: int, rng: np.random.Generator
) -> FloatArray:
    """Draw centres that are far from each other (k-means++, each the best of a few draws).

    Args:
        columns: The points by column, shape (d, n).
        weights: Shape (n,).
        n_clusters: Number of centres.
        rng: Draws them.
    """
    n_draws = 2 + int(math.log(n_clusters))
    chosen = [int(_draw(weights, 1, rng=rng)[0])]
    anywhere = np.full(columns.shape[1], np.inf)
    nearest = nearer_distances(columns, columns[:, chosen].T, nearest=anywhere)[0]
    for _ in range(n_clusters - 1):
        drawn = _draw(weights * nearest, n_draws, rng=rng)
        nearer = nearer_distances(columns, columns[:, drawn].T, nearest=nearest)
        # A sum of products, not a matrix product: libraries split those among threads.
        best = int(np.argmin((weights * nearer).sum(axis=1)))
        chosen.append(int(drawn[best]))
        nearest = nearer[best]
    return np.asarray(columns[:, chosen].T)


def lloyd(
    columns: FloatArray, weights: FloatArray, *, start: FloatArray, tolerance: float
) -> tuple[FloatArray, float]:
    """Move centres to the means of their points until they rest; return them and the loss.

    Args:
        columns: The points by column, shape (d, n).
        weights: Shape (n,), all positive.
        start: Starting centres, shape (k, d).
        tolerance: Stop once the squared shifts of all centres add up to no more than this.
    """
    n = columns.shape[1]
    centres, labels, single = start, np.full(n, -1, dtype=np.int32), in_single(columns)
    for _ in range(_STEPS):
        compared = centres  # what the labels are about
        changed, sums, totals = lloyd_step(columns, weights, centres, single=single, labels=labels)
        if changed == 0:
            break
        moved = sums / np.where(totals > 0, totals, 1.0)[:, np.newaxis]
        lost = np.flatnonzero(totals == 0)
        if len(lost):
            # A centre without points starts anew where the loss is largest.
            distances = own_distances(columns, centres, labels=labels)
            worst = np.argsort(-weights * distances, kind="stable")[: len(lost)]
            moved[lost] = columns[:, worst].T
        shift = float(np.sum(np.square(moved - centres)))
        centres = moved
        if shift <= tolerance:
            compared = centres
            lloyd_step(columns, weights, centres, single=single, labels=labels)
            break
    distances = own_distances(columns, compared, labels=labels)
    return centres, float((weights * distances).sum())


def _draw(weights: FloatArray, n_draws: int, *, rng: np.random.Generator) -> IntArray:
    """Draw positions in proportion to their weights."""
    edges = np.cumsum(weights)
    found = np.searchsorted(edges, rng.random(n_draws) * edges[-1], side="right")
    return np.asarray(np.minimum(found, len(weights) - 1))
