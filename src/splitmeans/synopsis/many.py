"""Many parties: pseudo-points for more cells than memory can hold.

With sixteen parties the grid has more cells than there are users, but there are only 120 pair
tables. They are noisy, so what they say is first made plausible: a mixture of a few classes, in
which the parties' labels are independent, explains all of them at once, P(a, b) = sum over z of
pi_z theta_i(a|z) theta_j(b|z). It is fitted by expectation maximisation on the likelihood of all
pair tables together, and each cell is taken between what was counted and what the classes predict
(`raking.py`). Label vectors of maximum entropy with those tables (`entropy_sampling.py`), weighted
to agree with them as they can, are the pseudo-points. Everything here is post-processing of
released tables.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from splitmeans import _validate
from splitmeans._types import FloatArray, IntArray
from splitmeans.errors import ParameterError
from splitmeans.kmeans.draws import draw_evenly
from splitmeans.membership.estimator import WeightEstimator
from splitmeans.plan.grid_limits import N_POINTS
from splitmeans.synopsis.entropy_sampling import max_entropy_labels
from splitmeans.synopsis.pairs import PairTables, clean_pair_tables
from splitmeans.synopsis.raking import between, raked

# Random starts end within a per mille of each other when there are twice as many classes as
# clusters; with as many classes as clusters some fail badly. A start takes a fraction of a second.
STARTS = 4
_STEPS = 300
# Every so many steps the likelihood of a user in a pair must have risen by more than the tolerance.
_CHECK_EVERY = 20
_TOLERANCE = 1e-5
# No label is impossible in a class, so no division by zero and no dead end.
_FLOOR = 1e-12


@dataclass(frozen=True, kw_only=True, eq=False)
class LatentClasses:
    """A fitted mixture.

    Attributes:
        shares: Share of each class, shape (Z,).
        profiles: For each party the probability of each label in each class, shape (k'_l, Z).
        log_likelihood: Mean log-likelihood of a user in a pair table; higher is better.
    """

    shares: FloatArray
    profiles: tuple[FloatArray, ...]
    log_likelihood: float

    def pair(self, first: int, second: int) -> FloatArray:
        """Return the share of users in each cell of two parties, shape (k'_i, k'_j)."""
        return np.asarray((self.profiles[first] * self.shares) @ self.profiles[second].T)


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
    weights = raked(drawn, np.full(n_points, total / n_points), wanted)
    labels, which = np.unique(drawn, axis=0, return_inverse=True)
    return labels, np.asarray(np.bincount(which.ravel(), weights=weights), dtype=np.float64)


def fit_classes(
    tables: PairTables,
    shape: tuple[int, ...],
    *,
    n_classes: int,
    rng: np.random.Generator,
    n_starts: int = STARTS,
) -> LatentClasses:
    """Fit the mixture from several random starts and return the most likely one.

    Args:
        tables: Users in each cell of each pair i < j, none negative, all with the same positive
            sum.
        shape: Number of labels of each party.
        n_classes: Number of classes Z.
        rng: Draws the starts.
        n_starts: Number of starts.
    """
    _validate.at_least(1, n_classes=n_classes, n_starts=n_starts)
    stacked = _stack(tables, shape)
    # Products of such small matrices gain nothing from threads, and waiting for them on a busy
    # machine takes many times longer than the work.
    with threadpool_limits(limits=1, user_api="blas"):
        fits = [_fit_once(stacked, shape, n_classes=n_classes, rng=rng) for _ in range(n_starts)]
    return max(fits, key=lambda fit: fit.log_likelihood)


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


def _stack(tables: PairTables, shape: tuple[int, ...]) -> FloatArray:
    """Put all tables into one symmetric matrix over all labels of all parties; sum 1.

    The blocks on the diagonal (a party with itself) stay zero and take no part in the fit.
    """
    edges = np.cumsum([0, *shape])
    stacked = np.zeros((edges[-1], edges[-1]))
    for (first, second), table in tables.items():
        rows = slice(edges[first], edges[first + 1])
        columns = slice(edges[second], edges[second + 1])
        stacked[rows, columns] = table
        stacked[columns, rows] = table.T
    total = stacked.sum()
    if not total > 0:
        raise ParameterError("tables must count at least one user")
    return np.asarray(stacked / total)


def _fit_once(
    stacked: FloatArray, shape: tuple[int, ...], *, n_classes: int, rng: np.random.Generator
) -> LatentClasses:
    """Run expectation maximisation from one random start.

    A step is two matrix products: with P = profiles diag(shares) profiles^T and R = data / P, the
    expected users with label a in class z are profiles[a, z] shares[z] (R profiles)[a, z].
    """
    starts = np.cumsum([0, *shape[:-1]])
    party_of: npt.NDArray[np.intp] = np.repeat(np.arange(len(shape)), shape)
    sizes = stacked.sum(axis=1, keepdims=True)

    profiles = sizes * rng.gamma(1.0, size=(len(stacked), n_classes)) + _FLOOR
    profiles /= np.add.reduceat(profiles, starts)[party_of]
    shares = np.full(n_classes, 1 / n_classes)
    likelihood = -np.inf
    for step in range(_STEPS + 1):
        weighted = profiles * shares
        predicted = profiles @ weighted.T
        if step % _CHECK_EVERY == 0:
            previous, likelihood = likelihood, float(np.vdot(stacked, np.log(predicted)))
            if likelihood - previous < _TOLERANCE:
                break
        expected = weighted * ((stacked / predicted) @ profiles) + _FLOOR
        in_party = np.add.reduceat(expected, starts)  # (S, Z)
        profiles = expected / in_party[party_of]
        shares = in_party.sum(axis=0) / in_party.sum()
    by_party = tuple(np.split(profiles, starts[1:]))
    return LatentClasses(shares=shares, profiles=by_party, log_likelihood=likelihood)
