"""Every release of a run with what it costs: the list that a privacy officer checks."""

from dataclasses import dataclass

from splitmeans.plan.plan import Plan
from splitmeans.privacy.events import Event
from splitmeans.wire.messages import PartyRelease, StageRelease, staged

EVERYONE = "all parties"
LOCAL_CLUSTERS, MEMBERSHIPS = "local clusters", "memberships"
DETAIL = "detail"
COLUMNS = "columns together"
# Of a study of counts alone.
PRESENCES = "who is where"


_MEANS = {
    LOCAL_CLUSTERS: "typical values of groups of people, with noise",
    DETAIL: "how columns spread, in all and in each group, with noise; it is in the invented "
    "people's values",
    COLUMNS: "in which bin of each column a person is, among invented records, to count columns of "
    "two organisations together",
    MEMBERSHIPS: "who is in which group, among invented records or with noise",
    PRESENCES: "a record for every person, among invented ones",
}


@dataclass(frozen=True, kw_only=True)
class Release:
    """One thing that leaves a party, with its privacy event and what slots call its message."""

    party: str
    what: str
    event: Event
    message: str

    @property
    def means(self) -> str:
        """What it is, for readers who know no method."""
        if self.what not in _MEANS:
            return f"{self.what}, with noise"
        return f"{self.what}: {_MEANS[self.what]}"


def releases_of(plan: Plan) -> tuple[Release, ...]:
    """List all releases of a run, in the order in which they happen.

    Releases of `EVERYONE` are made by all parties under one key and have one cost together.
    """
    releases = []
    for number, stage in enumerate(plan.stages, start=1):
        for party in stage.parties:
            releases.append(
                Release(
                    party=party,
                    what=stage.what,
                    event=stage.law_of(party).event,
                    message=staged(StageRelease, number),
                )
            )
    # Centres and, where the local algorithm makes them, points: one release, paid for once.
    clustering = () if plan.study.counts_only else plan.study.party_names
    for place, party in enumerate(clustering):
        event = plan.cluster_events[place]
        releases.append(
            Release(party=party, what=LOCAL_CLUSTERS, event=event, message=PartyRelease.TAG)
        )
        if plan.detail:
            # It travels in the points, which it has drawn anew.
            event = plan.detail[place].event
            releases.append(
                Release(party=party, what=DETAIL, event=event, message=PartyRelease.TAG)
            )
    members = (EVERYONE,) if plan.groups else plan.study.party_names
    for party in members:
        releases.append(
            Release(
                party=party,
                what=PRESENCES if plan.study.counts_only else MEMBERSHIPS,
                event=plan.membership_event,
                message=PartyRelease.TAG,
            )
        )
    if plan.columns is not None:
        event = plan.columns.event
        releases.append(
            Release(party=EVERYONE, what=COLUMNS, event=event, message=PartyRelease.TAG)
        )
    return tuple(releases)
