"""Lloyd's k-means on weighted points, from several k-means++ starts.

A participant of a run clusters up to some ten thousand released points, which takes some hundredths
of a second; loading scikit-learn for it takes most of a second at every participant. `python -m
benchmarks speed` prints its time beside scikit-learn's, and the tests compare the losses.

Of many points the starts see a sample, and the best of them go on with all points: two and a half
times as fast as ten starts on 20,000 points, and with a mean loss that is no larger
(k of 5 to 15 on one synopsis, six seeds each).
"""

import math

import numpy as np

from splitmeans._types import FloatArray
from splitmeans.kernels import steps
from splitmeans.kernels.points import Points
from splitmeans.kmeans.draws import draw_evenly
from splitmeans.kmeans.steps import steps_to_rest

# The steps end when the centres move by less than this share of the points' variance.
_TOLERANCE = 1e-4
# Points that starts see where there are more than twice as many, and the starts that go on then.
_SAMPLE = 4096
_KEPT_STARTS = 4


def best_of_starts(
    points: Points, *, n_clusters: int, n_starts: int, rng: np.random.Generator
) -> FloatArray:
    """Return the centres, shape (n_clusters, D), of the start that ends with the least loss.

    Args:
        points: More different ones than clusters.
        n_clusters: Number of centres.
        n_starts: Number of starts.
        rng: Draws the starts.
    """
    tolerance = tolerance_of(points)
    seen = points
    if points.n > 2 * _SAMPLE:
        seen = points.drawn(draw_evenly(points.weights, _SAMPLE, rng=rng))
    ends = []
    for _ in range(n_starts):
        start = spread_start(seen, n_clusters=n_clusters, rng=rng)
        ends.append(steps_to_rest(seen, start=start, tolerance=tolerance)[:2])
    if seen is not points:
        ends.sort(key=lambda end: end[1])
        ends = [
            steps_to_rest(points, start=centres, tolerance=tolerance)[:2]
            for centres, _ in ends[:_KEPT_STARTS]
        ]
    best, _ = min(ends, key=lambda end: end[1])
    return best


def tolerance_of(points: Points) -> float:
    """Return the sum of squared shifts at which steps end: a share of the mean variance."""
    variances = float(np.var(points.numbers, axis=0).sum())
    for own, span in zip(points.codes, points.spans, strict=True):
        shares = np.bincount(own) / points.n
        variances += float(span) ** 2 * float((shares * (1 - shares)).sum())
    return _TOLERANCE * variances / points.n_features


def spread_start(points: Points, *, n_clusters: int, rng: np.random.Generator) -> FloatArray:
    """Draw centres that are far from each other (k-means++, each the best of a few draws)."""
    n_draws = 2 + int(math.log(n_clusters))
    uniforms = np.zeros((n_clusters, n_draws))
    uniforms[0, 0] = rng.random()
    uniforms[1:] = rng.random((n_clusters - 1, n_draws))
    chosen = np.empty(n_clusters, dtype=np.int64)
    steps.spread(points.single, points.codes, points.spans, points.weights, uniforms, chosen)
    return points.features(chosen)
