"""A mixture of a few classes that explains the tables of all pairs of parties at once.

Within a class the parties' labels are independent: P(a, b) = sum over z of
pi_z theta_i(a|z) theta_j(b|z). It is fitted by expectation maximisation on the likelihood of all
pair tables together. Post-processing of released tables.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from splitmeans import _validate
from splitmeans._types import FloatArray
from splitmeans.errors import ParameterError
from splitmeans.synopsis.pairs import PairTables

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
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1, user_api="blas"):
        fits = [_fit_once(stacked, shape, n_classes=n_classes, rng=rng) for _ in range(n_starts)]
    return max(fits, key=lambda fit: fit.log_likelihood)


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
