"""A mixture of a few classes that explains the tables of all pairs of parties at once.

Within a class the parties' labels are independent: P(a, b) = sum over z of
pi_z theta_i(a|z) theta_j(b|z). It is fitted by expectation maximisation on the likelihood of all
pair tables together. Where tables count labels in bundles
(`pooling.py`), the mixture is over what is in them: a class that has one of two clusters in every
table is in that one. Post-processing of released tables.
"""

import functools
from dataclasses import dataclass

import numpy as np

from splitmeans import _validate
from splitmeans._types import FloatArray
from splitmeans.kernels.one_thread import on_one_thread
from splitmeans.synopsis.decode.counted import PairTables
from splitmeans.synopsis.decode.pooling import Pooling

# Random starts end within a per mille of each other when there are twice as many classes as
# clusters; with as many classes as clusters some fail badly. Most of what tells starts apart shows
# early.
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

    @property
    def sizes(self) -> FloatArray:
        """Share of users with each label, of all parties one after the other, shape (N,)."""
        return np.concatenate(self.profiles) @ self.shares

    @property
    def cells(self) -> FloatArray:
        """Share of users with each two labels, shape (N, N)."""
        profiles = np.concatenate(self.profiles)
        return np.asarray((profiles * self.shares) @ profiles.T)


@on_one_thread
def fit_classes(
    tables: PairTables,
    pooling: Pooling,
    *,
    n_classes: int,
    rng: np.random.Generator,
    known: FloatArray | None = None,
) -> LatentClasses:
    """Fit the mixture from several random starts and return the most likely one.

    Args:
        tables: Users in each cell of each pair i < j, none negative, all with the same positive
            sum.
        pooling: Which local clusters are counted together.
        n_classes: Number of classes Z.
        rng: Draws the starts.
        known: About which share of the users has each label, shape (N,), none zero; for bundles,
            of which tables tell only the sum.
    """
    _validate.at_least(1, n_classes=n_classes)
    stacked = pooling.stacked(tables)
    stacked /= 2 * sum(float(table.sum()) for table in tables.values())
    data = _Data(pooling=pooling, stacked=stacked, known=known)
    tried = [
        _steps(data, *_start(data, n_classes, rng=rng), most=_FIRST_STEPS) for _ in range(STARTS)
    ]
    best = max(tried, key=lambda fit: fit.log_likelihood)
    return _steps(data, np.concatenate(best.profiles), best.shares, most=_STEPS)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Data:
    """All tables in one symmetric matrix over all labels of all parties.

    Attributes:
        pooling: Which of them are counted together.
        stacked: Shares of users, in every cell that of all cells that are counted with it; zero in
            the blocks of a party with itself, which take no part in the fit.
        known: See `fit_classes`.
    """

    pooling: Pooling
    stacked: FloatArray
    known: FloatArray | None

    @functools.cached_property
    def once(self) -> FloatArray:
        """The shares divided by how many cells each is repeated in."""
        repeats = self.pooling.pooled(np.ones_like(self.stacked))
        return np.divide(self.stacked, repeats, out=np.zeros_like(repeats), where=repeats > 0)

    def ratios(self, predicted: FloatArray) -> FloatArray:
        """Return counted over predicted shares."""
        pooled = self.pooling.pooled(predicted)
        return np.divide(self.stacked, pooled, out=np.zeros_like(pooled), where=pooled > 0)

    def log_likelihood(self, predicted: FloatArray, sizes: FloatArray) -> float:
        """Return the mean log-likelihood of a user in a pair, given predicted cells and sizes."""
        pooled = self.pooling.pooled(predicted)
        logs = np.log(pooled, out=np.zeros_like(pooled), where=pooled > 0)
        likelihood = float(np.vdot(self.once, logs))
        if self.known is not None:
            likelihood += float(self.known @ np.log(sizes)) / len(self.pooling.shape)
        return likelihood


def _start(
    data: _Data, n_classes: int, *, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Draw profiles that begin near the sizes, and equal shares."""
    sizes = data.once.sum(axis=1) if data.known is None else data.known
    profiles = rng.gamma(1.0, size=(len(sizes), n_classes)) * sizes[:, np.newaxis] + _FLOOR
    starts = data.pooling.starts[:-1]
    profiles /= np.add.reduceat(profiles, starts)[data.pooling.party_of]
    return profiles, np.full(n_classes, 1 / n_classes)


def _steps(data: _Data, profiles: FloatArray, shares: FloatArray, *, most: int) -> LatentClasses:
    """Run expectation maximisation from a start.

    A step is two matrix products: with P = profiles diag(shares) profiles^T and R = data / P, the
    expected users with label a in class z are profiles[a, z] shares[z] (R profiles)[a, z]. With
    bundles, data and P are sums over a bundle, and known sizes count as much as all tables.
    """
    starts, party_of = data.pooling.starts[:-1], data.pooling.party_of
    likelihood = -np.inf
    for step in range(most + 1):
        weighted = profiles * shares
        predicted = profiles @ weighted.T
        sizes = weighted.sum(axis=1)
        if step % _CHECK_EVERY == 0:
            previous = likelihood
            likelihood = data.log_likelihood(predicted, sizes)
            if likelihood - previous < _TOLERANCE:
                break
        expected = weighted * (data.ratios(predicted) @ profiles) + _FLOOR
        if data.known is not None:
            pull = data.known / (sizes * len(data.pooling.shape))
            expected += weighted * pull[:, np.newaxis]
        in_party = np.add.reduceat(expected, starts)  # (S, Z)
        profiles = expected / in_party[party_of]
        shares = in_party.sum(axis=0) / in_party.sum()
    by_party = tuple(np.split(profiles, starts[1:]))
    return LatentClasses(shares=shares, profiles=by_party, log_likelihood=likelihood)
