"""How many users are at which parties, with intervals, from published counts.

Every group of parties was counted with noise of its own: of three or more parties the presence
table, all ways to be at some of them, and a table of each pair, whose cells add up to who is at
both, only at the first and only at the second. Pair tables have finer cells but are about the same
users, so all counts are fitted together by least squares, each with the variance of its noise,
which the plan says. The noise is a sum of discrete Gaussian draws, so 95 % intervals are 1.96
deviations on each side; nobody can be fewer than none, so they are cut at zero.

Guarantee: computed from published values, so it costs no privacy.
"""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from splitmeans._types import FloatArray, IntArray
from splitmeans.errors import ParameterError
from splitmeans.figures import users as shown
from splitmeans.intervals.sizes import WIDTH_95
from splitmeans.membership.decoy.law import DecoyLaw
from splitmeans.membership.decoy.layout import law_and_widths
from splitmeans.membership.method import Group
from splitmeans.plan.plan import Plan
from splitmeans.synopsis.presence_counts import is_counted, patterns_of, presence_tables


@dataclass(frozen=True, kw_only=True)
class Count:
    """Some users, counted with noise.

    Attributes:
        parties: Names of the parties that they are at.
        users: Estimated number, zero or more.
        low: Lower end of the 95 % interval, zero or more.
        high: Upper end.
    """

    parties: tuple[str, ...]
    users: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{shown(self.users)} ({shown(self.low)} to {shown(self.high)})"


@dataclass(frozen=True, kw_only=True)
class Share:
    """Which share of one party's users is at another one as well.

    Attributes:
        of: The party whose users are all of them.
        at: The other party.
        share: Between 0 and 1.
        low: Lower end of the 95 % interval.
        high: Upper end.
    """

    of: str
    at: str
    share: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Overlap:
    """Who is at which parties.

    Attributes:
        patterns: Users at exactly these parties of the study, all parties first; what is counted of
            nobody is there too. Their estimates are none negative but not forced to add up.
        pairs: Users at both of two parties, wherever else they are.
        parties: Users at each party.
        everyone: Users at one party or more.
        shares: For each two parties the share of the one's users who are at the other.
    """

    patterns: tuple[Count, ...]
    pairs: tuple[Count, ...]
    parties: tuple[Count, ...]
    everyone: Count
    shares: tuple[Share, ...] = field(repr=False)

    @property
    def at_all(self) -> Count:
        """Users at all parties."""
        return self.patterns[0]

    def both(self, first: str, second: str) -> Count:
        """Users at both of two parties, wherever else they are."""
        for count in self.pairs:
            if set(count.parties) == {first, second}:
                return count
        listed = ", ".join(count.parties[0] for count in self.parties)
        raise ParameterError(f"both must name two of {listed}, got {first!r} and {second!r}")

    def exactly(self, *parties: str) -> Count:
        """Users at these parties and at no other."""
        for count in self.patterns:
            if set(count.parties) == set(parties):
                return count
        listed = ", ".join(count.parties[0] for count in self.parties)
        raise ParameterError(f"exactly must name some of {listed}, got {parties!r}")


def overlap_of(plan: Plan, counts: IntArray) -> Overlap:
    """Return who is at which parties.

    Raises:
        ParameterError: If the run did not count it.
    """
    if not is_counted(plan):
        raise ParameterError(why_not(plan))
    names = plan.study.party_names
    fit = _Fit(plan, counts)
    patterns = patterns_of(len(names))
    at = [fit.sum_of(column) for column in patterns.T]
    both = {
        (first, second): fit.sum_of(patterns[:, first] * patterns[:, second])
        for first, second in itertools.combinations(range(len(names)), 2)
    }

    def named(places: tuple[int, ...]) -> tuple[str, ...]:
        return tuple(names[place] for place in places)

    return Overlap(
        patterns=tuple(
            _count(named(tuple(np.flatnonzero(pattern))), *found)
            for pattern, found in zip(patterns, fit.each(), strict=True)
        ),
        pairs=tuple(fit.count(named(pair), chosen) for pair, chosen in both.items()),
        parties=tuple(fit.count((name,), own) for name, own in zip(names, at, strict=True)),
        everyone=fit.count(names, fit.sum_of(np.ones(len(patterns), dtype=np.int64))),
        shares=tuple(
            share
            for pair, chosen in both.items()
            for of, other in (pair, pair[::-1])
            if (share := fit.share(names[of], names[other], chosen, of=at[of])) is not None
        ),
    )


def why_not(plan: Plan) -> str:
    """Return why a run does not say who is at which parties."""
    return (
        f"memberships were sent by the method {plan.study.membership!r}, which does not count who "
        "is at which parties; take membership='decoy'"
    )


class _Sum(NamedTuple):
    """A sum of some unknowns: 1 for those, and its covariance with each sum that pairs say."""

    chosen: IntArray
    seen: FloatArray


class _Fit:
    """Least squares of the counts of all ways to be at some parties, shape (R,).

    Unknowns are up to 65,535, and pairs say a few hundred sums of them. So only a matrix of sums is
    solved for, and no covariance of all unknowns is ever held.
    """

    def __init__(self, plan: Plan, counts: IntArray) -> None:
        n_parties, rate = len(plan.study.parties), plan.sample_rate
        tables = presence_tables(plan, counts)
        everyone = tuple(range(n_parties))
        patterns = patterns_of(n_parties)
        self.rate = rate
        self.variances = _variances(plan, everyone) / rate**2
        self.users: FloatArray = tables[everyone] / rate
        # What pairs say, in terms of the same unknowns: 0 or 1 of each.
        pairs = [group for group in tables if group != everyone]
        seen = [
            (patterns[:, group] == way).all(axis=1)
            for group in pairs
            for way in patterns_of(len(group))
        ]
        self.rows = np.array(seen, dtype=np.float32).reshape(len(seen), len(patterns))
        observed = np.concatenate([np.zeros(0), *(tables[group] / rate for group in pairs)])
        own = [np.zeros(0), *(_variances(plan, group) / rate**2 for group in pairs)]
        # Where pairs were counted too, all unknowns are single cells: of the same noise.
        spread = (self.rows @ self.rows.T) * self.variances[0]
        self.inverse = np.linalg.inv(spread + np.diag(np.concatenate(own)))
        missing = observed - self.rows @ self.users
        self.users = self.users + self.variances * ((self.inverse @ missing) @ self.rows)

    def sum_of(self, chosen: IntArray) -> _Sum:
        """Return a sum of unknowns."""
        return _Sum(chosen, (self.rows @ chosen.astype(np.float32)) * self.variances[0])

    def covariance(self, one: _Sum, two: _Sum) -> float:
        """Return the covariance of two sums."""
        common = one.chosen * two.chosen
        # Who is in the sample is drawn once, for all tables.
        sampled = (1 / self.rate - 1) * float(common @ np.maximum(self.users, 0.0))
        return float(common @ self.variances - one.seen @ self.inverse @ two.seen) + sampled

    def each(self) -> Iterator[tuple[float, float]]:
        """Yield every unknown with its variance."""
        known = ((self.inverse @ self.rows) * self.rows).sum(axis=0) * self.variances**2
        sampled = (1 / self.rate - 1) * np.maximum(self.users, 0.0)
        yield from zip(
            self.users.tolist(), (self.variances - known + sampled).tolist(), strict=True
        )

    def count(self, parties: tuple[str, ...], own: _Sum) -> Count:
        return _count(parties, float(own.chosen @ self.users), self.covariance(own, own))

    def share(self, name: str, other: str, chosen: _Sum, *, of: _Sum) -> Share | None:
        """Return a share with its interval; None where the whole may be nobody.

        The interval is Fieller's: the shares r for which `chosen - r of` may be zero.
        """
        part, whole = (float(own.chosen @ self.users) for own in (chosen, of))
        z = WIDTH_95**2
        square = whole**2 - z * self.covariance(of, of)
        if square <= 0 or whole <= 0:
            return None
        middle = part * whole - z * self.covariance(chosen, of)
        rest = part**2 - z * self.covariance(chosen, chosen)
        root = math.sqrt(max(middle**2 - square * rest, 0.0))
        low, high = (middle - root) / square, (middle + root) / square
        return Share(
            of=name,
            at=other,
            share=min(max(part / whole, 0.0), 1.0),
            low=min(max(low, 0.0), 1.0),
            high=min(max(high, 0.0), 1.0),
        )


def _count(parties: tuple[str, ...], estimate: float, variance: float) -> Count:
    half = WIDTH_95 * math.sqrt(variance)
    return Count(
        parties=parties,
        users=max(estimate, 0.0),
        low=max(estimate - half, 0.0),
        high=max(estimate + half, 0.0),
    )


def _variances(plan: Plan, group: Group) -> FloatArray:
    """Return the variance of each published count of a group, before a sample is scaled up."""
    membership = plan.membership
    assert isinstance(membership, DecoyLaw), "the study was not checked"
    law, widths = law_and_widths(
        group, membership, plan.presence, n_local_clusters=plan.n_local_clusters
    )
    own = np.array([widths[party] for party in group])
    # A count is a sum over the clusters of the parties that its users are at.
    cells = np.where(patterns_of(len(group)) == 1, own, 1).prod(axis=1)
    return np.asarray(cells * (float(law.variance) + law.server_sigma**2))
