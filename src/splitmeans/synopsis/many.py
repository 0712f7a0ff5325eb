"""Many parties: pseudo-points for more cells than memory can hold.

With sixteen parties the grid has more cells than there are users, but there are only 120 pair
tables. They are noisy, so what they say is first made plausible: a mixture of a few classes
explains all of them at once (`classes.py`), and each cell is taken between what was counted and
what the classes predict (`raking.py`). Label vectors of maximum entropy with those tables
(`entropy_sampling.py`), weighted to agree with them as they can, are the pseudo-points.

Where tables count local clusters in bundles (`membership/bundles.py`), classes and vectors are of
clusters, and only what is compared with a table is added up over its bundles. Everything here is
post-processing of released tables.
"""

from collections.abc import Sequence

import numpy as np

from splitmeans import _validate
from splitmeans._types import FloatArray, IntArray
from splitmeans.errors import ParameterError
from splitmeans.kmeans.draws import draw_evenly
from splitmeans.membership.bundles import Bundles
from splitmeans.membership.estimator import WeightEstimator
from splitmeans.plan.grid_limits import N_POINTS
from splitmeans.synopsis.classes import LatentClasses, fit_bundled_classes, fit_classes
from splitmeans.synopsis.entropy_sampling import max_entropy_labels
from splitmeans.synopsis.pairs import clean_pair_tables, clean_tables_apart
from splitmeans.synopsis.pooling import Pooling
from splitmeans.synopsis.raking import between, raked

# No cluster of a party is taken to have fewer of its users than this share.
_LEAST_SHARE = 1e-5


def latent_points(
    estimator: WeightEstimator,
    *,
    n_classes: int,
    n_points: int = N_POINTS,
    rng: np.random.Generator,
    deviation: float | None = None,
) -> tuple[IntArray, FloatArray]:
    """Return different label vectors, shape (points, S), and their weights, shape (points,).

    The weights add up to the number of users that the pair tables agree on. With no user at all
    there is one point of weight zero.

    Args:
        estimator: What the messages say about pairs of clusters, of two parties or more.
        n_classes: Number of classes; about twice the number of clusters wanted.
        n_points: How many vectors to draw; equal ones are merged, so fewer may come back.
        rng: Seeds the starts and draws the vectors.
        deviation: Standard deviation of the noise of a pair table's cell, if known.
    """
    _validate.at_least(1, n_classes=n_classes, n_points=n_points)
    if len(estimator.n_local_clusters) < 2:
        raise ParameterError("latent classes need at least 2 parties, got 1")
    tables, total = clean_pair_tables(estimator, deviation=deviation)
    if total == 0:
        return np.zeros((1, len(estimator.n_local_clusters)), dtype=np.int64), np.zeros(1)
    model = fit_classes(tables, estimator.n_local_clusters, n_classes=n_classes, rng=rng)
    wanted = tables
    if deviation:
        counted = {pair: estimator.joint(pair) for pair in tables}
        predicted = {pair: total * model.pair(*pair) for pair in tables}
        wanted = between(counted, predicted, deviation=deviation, total=total)
    start = draw_labels(model, n_points, rng=rng)
    drawn = max_entropy_labels(wanted, start, deviation=deviation or 0.0, rng=rng)
    return _merged(drawn, raked(drawn, np.full(n_points, total / n_points), wanted))


def bundled_points(
    estimator: WeightEstimator,
    bundles: Bundles,
    shares: Sequence[FloatArray],
    *,
    n_classes: int,
    n_points: int = N_POINTS,
    rng: np.random.Generator,
    deviation: float,
) -> tuple[IntArray, FloatArray]:
    """Return vectors of local clusters and their weights, as `latent_points` does of labels.

    Args:
        estimator: What the messages say about pairs of bundles.
        bundles: Which clusters are in which.
        shares: About which share of its users is in each of a party's clusters.
        n_classes: See `latent_points`.
        n_points: See `latent_points`.
        rng: See `latent_points`.
        deviation: See `latent_points`.
    """
    _validate.at_least(1, n_classes=n_classes, n_points=n_points)
    tables, total = clean_tables_apart(estimator, deviation=deviation)
    if total == 0:
        return np.zeros((1, len(shares)), dtype=np.int64), np.zeros(1)
    pooling = Pooling(bundles=bundles)
    floored = [np.maximum(own, _LEAST_SHARE) for own in shares]
    known = [own / own.sum() for own in floored]
    model = fit_bundled_classes(tables, pooling, known, n_classes=n_classes, rng=rng)
    profiles = np.concatenate(model.profiles)
    cells = total * (profiles * model.shares) @ profiles.T
    counted = {pair: estimator.joint(pair) for pair in tables}
    predicted = {pair: pooling.table(cells, pair) for pair in tables}
    wanted = between(counted, predicted, deviation=deviation, total=total)
    drawn = max_entropy_labels(
        wanted,
        draw_labels(model, n_points, rng=rng),
        deviation=deviation,
        rng=rng,
        pooling=pooling,
        shares=profiles @ model.shares,
    )
    weights = raked(drawn, np.full(n_points, total / n_points), wanted, bundles=bundles)
    return _merged(drawn, weights)


def _merged(drawn: IntArray, weights: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the different vectors, and the weights of equal ones together."""
    labels, which = np.unique(drawn, axis=0, return_inverse=True)
    return labels, np.asarray(np.bincount(which.ravel(), weights=weights), dtype=np.float64)


def draw_labels(model: LatentClasses, n_points: int, *, rng: np.random.Generator) -> IntArray:
    """Draw label vectors, shape (n_points, S), with as little chance as possible.

    Every class, and every label of every party within a class, comes as often as its probability
    says, up to one point. Only which labels of different parties meet is random.
    """
    classes = draw_evenly(model.shares, n_points, rng=rng)
    ends = np.cumsum(np.bincount(classes, minlength=len(model.shares)))
    labels = np.empty((n_points, len(model.profiles)), dtype=np.int64)
    for party, profile in enumerate(model.profiles):
        start = 0
        for which, end in enumerate(ends):
            if end > start:
                in_order = draw_evenly(profile[:, which], int(end - start), rng=rng)
                labels[start:end, party] = rng.permutation(in_order)
            start = end
    return labels
