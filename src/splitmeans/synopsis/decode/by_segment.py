"""Places within local clusters by segment: a cluster of two segments has each on its own side.

Pseudo-users of a cell have any of the places of their local cluster at a party. Where two segments
share a local cluster, as they do when there are many parties with few columns each, the users of
each are nearer to the rest of their segment; put together by chance, both have the same mean there,
and the centres of both are drawn towards each other (mixed Gaussian data, 8 parties, k = 20,
epsilon 0.25: half of all that is lost).

Segments are found once with the places as they are. At each party users of different segments and
the same local cluster then exchange places as two normal distributions with the same covariance
would have them (linear discriminants): what a segment has in clusters of its own tells where its
users are in those that it shares. Every cell keeps its users and every party its places.
Post-processing.
"""

from dataclasses import replace

import numpy as np

from splitmeans._types import FloatArray, IntArray
from splitmeans.kmeans.nearest import nearest_centres
from splitmeans.kmeans.weighted_kmeans import weighted_kmeans
from splitmeans.synopsis.decode.placing import PseudoUsers

# How often every pseudo-user is offered an exchange at every party; twice as many change losses by
# less than 0.001.
_OFFERS = 4
# Of so many of a party's features, those in which segments differ most; of a column with hundreds
# of levels, few tell segments apart.
_MOST_FEATURES = 96
# Share of the mean variance that every direction has at least.
_LEAST_VARIANCE = 1e-6


def exchange_by_segments(
    users: PseudoUsers, *, n_segments: int, rng: np.random.Generator
) -> PseudoUsers:
    """Return pseudo-users who have exchanged places within local clusters.

    Args:
        users: Pseudo-users.
        n_segments: How many segments the study looks for.
        rng: Finds segments and draws exchanges; nothing is hidden by it.
    """
    # One start: segments that are not the best still tell who goes with whom.
    points = users.nodes.astype(np.float64)
    centres = weighted_kmeans(points, users.weights, n_clusters=n_segments, rng=rng, starts=1)
    segments = nearest_centres(points, centres).astype(np.int64)
    places = tuple(
        _exchanged(part, own, segments, users.weights, rng=rng)
        for part, own in zip(users.places, users.labels.T, strict=True)
    )
    return replace(users, places=places)


def _exchanged(
    places: IntArray,
    labels: IntArray,
    segments: IntArray,
    weights: FloatArray,
    *,
    rng: np.random.Generator,
) -> IntArray:
    """Return one party's places, shape (u, d), exchanged."""
    pulls = _pulls(places.astype(np.float64), segments, weights)
    now = places.copy()
    for _ in range(_OFFERS):
        first, second = partners(labels, rng=rng)
        # Within a segment nothing is told apart, and what is arranged stays so.
        apart = segments[first] != segments[second]
        first, second = first[apart], second[apart]
        # What the density of both would be multiplied by (Metropolis), as a logarithm.
        pull = pulls[segments[first]] - pulls[segments[second]]
        gain = np.einsum("ud,ud->u", now[second] - now[first], pull)
        agreed = np.log(rng.random(len(first))) < gain
        first, second = first[agreed], second[agreed]
        now[first], now[second] = now[second], now[first]
    return now


def _pulls(places: FloatArray, segments: IntArray, weights: FloatArray) -> FloatArray:
    """Return the mean of each segment over the covariance within segments, shape (k, d).

    Features in which segments differ least have no part in it where there are many.
    """
    totals = np.bincount(segments, weights=weights)
    sums = np.stack([np.bincount(segments, weights * own) for own in places.T], axis=1)
    means = sums / np.maximum(totals, 1e-9)[:, np.newaxis]
    apart = totals @ np.square(means - totals @ means / totals.sum())
    kept = np.sort(np.argsort(-apart, kind="stable")[:_MOST_FEATURES])
    pulls = np.zeros_like(means)
    pulls[:, kept] = _over_covariance(means[:, kept], places[:, kept], segments, weights)
    return pulls


def _over_covariance(
    means: FloatArray, places: FloatArray, segments: IntArray, weights: FloatArray
) -> FloatArray:
    within = places - means[segments]
    covariance = (within * weights[:, np.newaxis]).T @ within / weights.sum()
    d = len(covariance)
    least = _LEAST_VARIANCE * float(np.trace(covariance)) / d
    # Columns in which nobody differs within a segment leave nothing to exchange.
    whole = covariance + max(least, 1.0) * np.eye(d)
    return np.asarray(np.linalg.solve(whole, means.T).T)


def partners(labels: IntArray, *, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Return pairs of pseudo-users with the same label, nobody in two of them."""
    order = np.argsort(labels + rng.random(len(labels)))
    first, second = order[0:-1:2], order[1::2]
    same = labels[first] == labels[second]
    return first[same], second[same]
