"""A mixture of a few classes that explains the tables of all pairs of parties at once.

Within a class the parties' labels are independent: P(a, b) = sum over z of
pi_z theta_i(a|z) theta_j(b|z). It is fitted by expectation maximisation on the likelihood of all
pair tables together. Where tables count labels in bundles (`pooling.py`), the mixture is over what
is in them: a class that has one of two clusters in every table is in that one.
Post-processing of released tables.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from splitmeans import _validate
from splitmeans._types import FloatArray, IntArray
from splitmeans.errors import ParameterError
from splitmeans.kernels.one_thread import on_one_thread
from splitmeans.synopsis.pairs import PairTables
from splitmeans.synopsis.pooling import Pooling

# Random starts end within a per mille of each other when there are twice as many classes as
# clusters; with as many classes as clusters some fail badly. A start takes a fraction of a second.
STARTS = 4
_STEPS = 300
_FIRST_STEPS = 40
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


@on_one_thread
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
    counted = _Counted(shape=shape, stacked=stacked, sizes=stacked.sum(axis=1, keepdims=True))
    fits = [
        _steps(counted, *_start(counted, n_classes, rng=rng), most=_STEPS) for _ in range(n_starts)
    ]
    return max(fits, key=lambda fit: fit.log_likelihood)


@on_one_thread
def fit_bundled_classes(
    tables: PairTables,
    pooling: Pooling,
    shares: Sequence[FloatArray],
    *,
    n_classes: int,
    rng: np.random.Generator,
) -> LatentClasses:
    """Fit a mixture over local clusters to tables that count bundles of them.

    Args:
        tables: Users in each cell of bundles of each pair i < j, none negative, all with the same
            positive sum.
        pooling: Which clusters are counted together.
        shares: About which share of its users is in each of a party's clusters, each of shape
            (k',), none zero: tables tell only those of bundles, and would leave others open.
        n_classes: Number of classes Z.
        rng: Draws the starts.
    """
    _validate.at_least(1, n_classes=n_classes)
    sizes = np.concatenate(shares)[:, np.newaxis]
    stacked = pooling.stacked(tables)
    stacked /= 2 * sum(float(table.sum()) for table in tables.values())
    counted = _Counted(
        shape=pooling.bundles.n_local_clusters,
        stacked=stacked,
        sizes=sizes / sizes.sum(),
        pooling=pooling,
    )
    # Most of what tells starts apart shows early, and a step is dear.
    tried = [
        _steps(counted, *_start(counted, n_classes, rng=rng), most=_FIRST_STEPS)
        for _ in range(STARTS)
    ]
    best = max(tried, key=lambda fit: fit.log_likelihood)
    return _steps(counted, np.concatenate(best.profiles), best.shares, most=_STEPS)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Counted:
    """All tables in one symmetric matrix over all labels of all parties.

    Attributes:
        shape: Labels of each party; with bundles, local clusters.
        stacked: Shares of users, zero in the blocks of a party with itself, which take no part in
            the fit; with bundles, in every cell that of all cells that are counted with it.
        sizes: Share of each label in all of them, shape (N, 1).
        pooling: The bundles, if labels come in some.
    """

    shape: tuple[int, ...]
    stacked: FloatArray
    sizes: FloatArray
    pooling: Pooling | None = None

    @property
    def starts(self) -> IntArray:
        """Where each party's labels begin."""
        return np.cumsum([0, *self.shape[:-1]])

    @property
    def party_of(self) -> IntArray:
        """The party of each label."""
        return np.repeat(np.arange(len(self.shape)), self.shape)

    @functools.cached_property
    def once(self) -> FloatArray:
        """The shares divided by how many cells each is repeated in."""
        if self.pooling is None:
            return self.stacked
        repeats = self.pooling.pooled(np.ones_like(self.stacked))
        return np.divide(self.stacked, repeats, out=np.zeros_like(repeats), where=repeats > 0)

    def ratios(self, predicted: FloatArray) -> FloatArray:
        """Return counted over predicted shares."""
        if self.pooling is None:
            return self.stacked / predicted
        pooled = self.pooling.pooled(predicted)
        return np.divide(self.stacked, pooled, out=np.zeros_like(pooled), where=pooled > 0)

    def log_likelihood(self, predicted: FloatArray, sizes: FloatArray) -> float:
        """Return the mean log-likelihood of a user in a pair, given predicted cells and sizes."""
        if self.pooling is None:
            return float(np.vdot(self.stacked, np.log(predicted)))
        pooled = self.pooling.pooled(predicted)
        logs = np.log(pooled, out=np.zeros_like(pooled), where=pooled > 0)
        return float(np.vdot(self.once, logs) + np.vdot(self.sizes, np.log(sizes)))


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


def _start(
    counted: _Counted, n_classes: int, *, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Draw profiles that begin near the sizes, and equal shares."""
    profiles = counted.sizes * rng.gamma(1.0, size=(len(counted.stacked), n_classes)) + _FLOOR
    profiles /= np.add.reduceat(profiles, counted.starts)[counted.party_of]
    return profiles, np.full(n_classes, 1 / n_classes)


def _steps(
    counted: _Counted, profiles: FloatArray, shares: FloatArray, *, most: int
) -> LatentClasses:
    """Run expectation maximisation from a start.

    A step is two matrix products: with P = profiles diag(shares) profiles^T and R = data / P, the
    expected users with label a in class z are profiles[a, z] shares[z] (R profiles)[a, z]. With
    bundles, data and P are sums over a bundle, and known sizes count as much as all tables.
    """
    starts, party_of = counted.starts, counted.party_of
    likelihood = -np.inf
    for step in range(most + 1):
        weighted = profiles * shares
        predicted = profiles @ weighted.T
        sizes = weighted.sum(axis=1, keepdims=True)
        if step % _CHECK_EVERY == 0:
            previous = likelihood
            likelihood = counted.log_likelihood(predicted, sizes)
            if likelihood - previous < _TOLERANCE:
                break
        expected = weighted * (counted.ratios(predicted) @ profiles) + _FLOOR
        if counted.pooling is not None:
            expected += weighted * (counted.sizes / sizes)
        in_party = np.add.reduceat(expected, starts)  # (S, Z)
        profiles = expected / in_party[party_of]
        shares = in_party.sum(axis=0) / in_party.sum()
    by_party = tuple(np.split(profiles, starts[1:]))
    return LatentClasses(shares=shares, profiles=by_party, log_likelihood=likelihood)
