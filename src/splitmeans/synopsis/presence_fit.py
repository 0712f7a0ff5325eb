"""Latent classes with presence: the fit.

In class z party l's label is a with probability theta_l(a|z) if the user is there, and V[r, z]
users of the class are at just the parties of pattern r. Expectation maximisation on the Poisson
likelihood of all pair tables, and of the presence table with the weight of as many. V may differ
from class to class only through the odds of being at each party: it is raked to what the tables say
of each class at each party, and to the presence table. Without that bond the tables, which see two
parties at a time, leave it open who is at three.
"""

from dataclasses import dataclass

import numpy as np

from splitmeans import _validate
from splitmeans._types import FloatArray, IntArray
from splitmeans.synopsis.classes import STARTS

# Steps of a fit, and how many of them take absence for random: with few or none of those the
# classes settle on patterns of noise (three parties that share 5 % of their users, ratio of losses
# for everyone: 1.07 with 60 of them, 1.03 with 200; absence by segment has no less use of them).
_STEPS, _RANDOM_STEPS = 500, 200
# Every so many steps the log-likelihood of a user in a pair must have risen by the tolerance.
_CHECK_EVERY = 20
_TOLERANCE = 1e-5
# How far a class's share at a party is from that of all users, as a part of what is possible: users
# of a class at a party are shrunk to what random absence says, the more the noisier they are.
_PRIOR_SPREAD = 0.5
# Nothing is impossible, so no division by zero and no dead end.
_FLOOR = 1e-12


@dataclass(frozen=True, kw_only=True, eq=False)
class Observed:
    """Released tables, cleaned.

    Attributes:
        pairs: Pairs of parties i < j, shape (P, 2).
        tables: Users in each cell of each pair, none negative, shape (P, k' + 1, k' + 1); the last
            row and column are "absent". A party with fewer labels has empty ones before it.
        widths: k' of each party.
        patterns: Which parties each pattern of presence has, shape (R, S), 0 or 1.
        counts: Users of each pattern, none negative, shape (R,); all parties is the first pattern.
        deviation: Standard deviation of the noise of a pair table's cell.
    """

    pairs: IntArray
    tables: FloatArray
    widths: tuple[int, ...]
    patterns: FloatArray
    counts: FloatArray
    deviation: float


@dataclass(frozen=True, kw_only=True, eq=False)
class PresenceClasses:
    """A fitted mixture.

    Attributes:
        users: V, the users of each pattern of presence in each class, shape (R, Z).
        profiles: For each party the probability of each label in each class, shape (k'_l, Z).
        log_likelihood: Poisson log-likelihood of a user in a pair table; higher is better.
    """

    users: FloatArray
    profiles: tuple[FloatArray, ...]
    log_likelihood: float


def fit_presence(
    observed: Observed, *, n_classes: int, rng: np.random.Generator, n_starts: int = STARTS
) -> PresenceClasses:
    """Fit the mixture from several random starts and return the most likely one.

    Args:
        observed: The tables; they must count somebody.
        n_classes: Number of classes Z.
        rng: Draws the starts.
        n_starts: Number of starts.
    """
    _validate.at_least(1, n_classes=n_classes, n_starts=n_starts)
    fits = [_Fit(observed, n_classes=n_classes, rng=rng).run() for _ in range(n_starts)]
    return max(fits, key=lambda fit: fit.log_likelihood)


class _Fit:
    """One fit, from a random start: what is observed, and the parameters that steps change."""

    def __init__(self, observed: Observed, *, n_classes: int, rng: np.random.Generator) -> None:
        self.widths, self.patterns = observed.widths, observed.patterns
        self.first, self.second = observed.pairs.T
        self.n_pairs, n_parties = len(observed.pairs), len(observed.widths)
        # For each pattern and pair, one of: both there, only the first, only the second.
        one, two = self.patterns[:, self.first], self.patterns[:, self.second]
        self.seen = np.concatenate([one * two, one * (1 - two), (1 - one) * two], axis=1)
        self.both = observed.tables[:, :-1, :-1]
        self.alone = np.stack([observed.tables[:, :-1, -1], observed.tables[:, -1, :-1]])
        self.counts = observed.counts[:, np.newaxis] + _FLOOR
        self.total = float(self.counts.sum())
        self.shares = (self.patterns.T @ self.counts) / self.total  # (S, 1)
        # Of the users of a class at a party: its k' labels, each found in S - 1 tables.
        self.noise = observed.deviation**2 * max(self.widths) / (n_parties - 1)
        exists = np.arange(max(self.widths)) < np.array(self.widths)[:, np.newaxis]
        self.exists = exists[:, :, np.newaxis]
        self.theta = self._normalised(rng.gamma(1.0, size=(*exists.shape, n_classes)))
        self.users = self.counts * np.full(n_classes, 1 / n_classes)

    def run(self) -> PresenceClasses:
        likelihood = previous = -np.inf
        for step in range(_STEPS + 1):
            found, likelihood = self._expected()
            if step % _CHECK_EVERY == 0:
                if step > _RANDOM_STEPS and likelihood - previous < _TOLERANCE:
                    break
                previous = likelihood
            wanted = self._wanted(found)
            if step < _RANDOM_STEPS:
                in_class = wanted.sum(axis=0)
                self.users = self.counts * (in_class / in_class.sum())
            else:
                self.users = self._raked(wanted)
        profiles = tuple(self.theta[party, :width] for party, width in enumerate(self.widths))
        return PresenceClasses(users=self.users, profiles=profiles, log_likelihood=likelihood)

    def _expected(self) -> tuple[FloatArray, float]:
        """Change theta, and return what the tables say of the users of each pair.

        That is the factor by which users of each class must grow, for those at both parties, only
        at the first and only at the second, shape (3 P, Z); and the log-likelihood before.
        """
        one, two = self.theta[self.first], self.theta[self.second]
        at_both, at_one, at_two = np.split((self.seen.T @ self.users)[:, np.newaxis], 3)
        both = np.maximum((one * at_both) @ two.transpose(0, 2, 1), _FLOOR)
        alone = np.stack([(one * at_one).sum(axis=2), (two * at_two).sum(axis=2)])
        alone = np.maximum(alone, _FLOOR)
        likelihood = np.vdot(self.both, np.log(both)) + np.vdot(self.alone, np.log(alone))
        likelihood -= both.sum() + alone.sum()

        ratio, (alone_one, alone_two) = self.both / both, (self.alone / alone)[..., np.newaxis]
        back_one, back_two = ratio @ two, ratio.transpose(0, 2, 1) @ one
        factors = [one * back_one, one * alone_one, two * alone_two]
        theta = np.zeros_like(self.theta)
        np.add.at(theta, self.first, at_both * back_one + at_one * alone_one)
        np.add.at(theta, self.second, at_both * back_two + at_two * alone_two)
        self.theta = self._normalised(self.theta * theta)
        found = np.concatenate([factor.sum(axis=1) for factor in factors])
        return found, float(likelihood) / (self.total * self.n_pairs)

    def _wanted(self, found: FloatArray) -> FloatArray:
        """Return the users of each pattern and class that both kinds of tables speak for."""
        by_presence = self.counts / np.maximum(self.users.sum(axis=1, keepdims=True), _FLOOR)
        votes = self.seen.sum(axis=1, keepdims=True) + self.n_pairs
        return np.asarray(self.users * (self.seen @ found + self.n_pairs * by_presence) / votes)

    def _raked(self, wanted: FloatArray) -> FloatArray:
        """Scale V to the wanted users of each class at each party, then to the presence table."""
        in_class = wanted.sum(axis=0)
        random = self.shares * in_class
        spread = _PRIOR_SPREAD * np.minimum(self.shares, 1 - self.shares) * in_class
        trusted = np.square(spread) / (np.square(spread) + self.noise + _FLOOR)
        at_party = random + trusted * (self.patterns.T @ wanted - random)
        at_party = np.clip(at_party, 0.0, in_class)
        users = self.users + _FLOOR
        for present, here in zip(self.patterns.T, at_party, strict=True):
            now = present @ users
            away = np.maximum(users.sum(axis=0) - now, _FLOOR)
            factors = np.stack([(in_class - here) / away, here / np.maximum(now, _FLOOR)])
            users *= factors[present.astype(np.int64)]
        in_pattern = np.maximum(users.sum(axis=1, keepdims=True), _FLOOR)
        return np.asarray(users * (self.counts / in_pattern))

    def _normalised(self, theta: FloatArray) -> FloatArray:
        theta = (theta + _FLOOR) * self.exists
        return np.asarray(theta / theta.sum(axis=1, keepdims=True))
