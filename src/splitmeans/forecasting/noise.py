"""Noise levels of every release of a plan, as standard deviations in units that people know."""

from collections.abc import Iterable
from dataclasses import dataclass

from splitmeans._types import NoiseLine
from splitmeans.membership.methods import method_of
from splitmeans.plan.plan import Plan
from splitmeans.plan.releases import COLUMNS, DETAIL, EVERYONE, LOCAL_CLUSTERS, releases_of


@dataclass(frozen=True, kw_only=True)
class NoiseLevel:
    """One noisy quantity of a release.

    Attributes:
        party: Who releases it, or "all parties".
        release: What of a stage, "local clusters", "detail", "memberships" or "columns together".
        what: The quantity.
        deviation: Standard deviation of its noise; for phantoms and misreports their number or
            probability.
        unit: What the deviation counts. "box" is half of a column's range (times its weight),
            "spread" a local cluster's root mean square distance from its centre.
    """

    party: str
    release: str
    what: str
    deviation: float
    unit: str


def noise_levels(plan: Plan, *, users: int) -> tuple[NoiseLevel, ...]:
    """Return the noise of all releases, in the order in which they happen.

    `users` only matters where noise is on a sum and what counts is the noise of a mean, or where
    the number of steps depends on it.
    """
    levels = []
    # None in a study of counts alone.
    laws = dict(zip(plan.study.party_names, plan.local, strict=bool(plan.local)))
    details = dict(zip(plan.study.party_names, plan.detail, strict=False))
    staged = {stage.what: stage for stage in plan.stages}
    for release in releases_of(plan):
        if release.what in staged:
            law = staged[release.what].law_of(release.party)
            found: Iterable[NoiseLine] = law.noise_lines()
        elif release.what == LOCAL_CLUSTERS:
            found = laws[release.party].noise_lines(users)
        elif release.what == DETAIL:
            found = details[release.party].noise_lines()
        elif release.what == COLUMNS:
            assert plan.columns is not None, "there is no such release"
            found = plan.columns.noise_lines()
        else:
            found = method_of(plan.study).noise_lines(plan.membership, plan)
        levels += [
            NoiseLevel(
                party=release.party, release=release.what, what=what, deviation=size, unit=unit
            )
            for what, size, unit in found
        ]
    return tuple(levels)


def shown_party(party: str) -> str:
    """Return whose release it is, for a table."""
    return "all together" if party == EVERYONE else party
