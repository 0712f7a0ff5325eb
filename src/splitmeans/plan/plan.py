"""The plan of a run: a study with everything settled that is public before the first release.

Server and parties each compute the plan themselves from the study and the values that its stages
have released; a plan that another participant proposes is compared, never believed.
"""

import functools
import hashlib
from dataclasses import dataclass

from splitmeans.local.laws.detail import DetailLaw
from splitmeans.local.laws.guided_lloyd import GuidedLloydLaw
from splitmeans.membership.bundles import Bundles
from splitmeans.membership.decoy.column_tables import ColumnTables
from splitmeans.membership.decoy.direct_labels import DirectLabels
from splitmeans.membership.decoy.law import DecoyLaw, collusion_law
from splitmeans.membership.method import Group, MembershipLaw
from splitmeans.membership.methods import method_of
from splitmeans.plan.categories_stage import CATEGORIES
from splitmeans.plan.series import SeriesRun
from splitmeans.plan.settled import settled_parties
from splitmeans.plan.size_stage import SIZE, SizeLaw
from splitmeans.plan.stages import ReleasedValues, Stage
from splitmeans.privacy.events import ComposedEvent, Event, with_slack
from splitmeans.study import PartySpec, Study
from splitmeans.wire.tags import tagged_text

# A learned column has 2 to 25 levels where 25 are assumed: scales are at least 2 / 7 of those, and
# slack goes with their square and the number of features.
_SLACK_ROOM = 100.0


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Everything public about a run.

    Attributes:
        study: What was agreed.
        released: The values of the stages so far.
        stages: What is released before the main releases, in order.
        n_local_clusters: k' of each party.
        n_labels: How many labels each party has in a table of two parties, at most k'.
        groups: Which parties share a membership release.
        local: The law of each party's local clustering; none in a study of counts alone.
        membership: The law of the membership releases.
        presence: The law of the presence table, where the last group is one: all parties, each
            with "present" as its only label. In a study of counts alone it is the membership's.
        detail: The law of each party's shapes within clusters; empty where the study asks for none.
        columns: Tables of columns of two parties that are counted beside the clusters; None where
            there are none.
        series_run: Which run of its series this is; None for a study of one run, and for a plan
            that is about any run.
    """

    study: Study
    released: ReleasedValues
    stages: tuple[Stage, ...]
    n_local_clusters: tuple[int, ...]
    n_labels: tuple[int, ...]
    groups: tuple[Group, ...]
    local: tuple[GuidedLloydLaw, ...]
    membership: MembershipLaw
    presence: DecoyLaw | None = None
    detail: tuple[DetailLaw, ...] = ()
    columns: ColumnTables | None = None
    series_run: SeriesRun | None = None

    @property
    def fingerprint(self) -> str:
        """Hash of every parameter of every release, and of the values that they follow from."""
        parts = (self.study.hash, self.groups, self.local, self.membership)
        # Of a table that draws are looked up in, which the parameters alone do not show (rule R3).
        table_hash = method_of(self.study).table_hash
        table = None if table_hash is None else table_hash(self.membership)
        staged = (self.stages, self.released) if self.stages else None
        more: tuple[object, ...] = (self.n_local_clusters, staged, table)
        if self.n_labels != self.n_local_clusters:
            more = (*more, self.n_labels)
        if self.presence is not None:
            more = (*more, self.presence, self.presence.table_hash)
        if self.detail:
            more = (*more, self.detail)
        if self.columns is not None:
            more = (*more, self.columns, self.columns.law.table_hash)
        if self.series_run is not None:
            more = (*more, (self.series_run.number, self.series_run.previous))
        parameters = tagged_text((*parts, *more))
        return hashlib.sha256(parameters.encode()).hexdigest()

    @property
    def bundles(self) -> Bundles:
        """How local clusters become labels of a table of two parties."""
        return Bundles(n_local_clusters=self.n_local_clusters, n_labels=self.n_labels)

    @property
    def next_stage(self) -> Stage | None:
        """The stage whose values are missing first; None if all of the plan is settled."""
        done = len(self.released)
        return self.stages[done] if done < len(self.stages) else None

    @functools.cached_property
    def parties(self) -> tuple[PartySpec, ...]:
        """The parties of the study with the bounds that were learned so far.

        Where something is still to be learned, something stands for it that has the same noise.
        """
        return settled_parties(self.study, self.stages, self.released)

    def party(self, name: str) -> PartySpec:
        """The party of this name, with the bounds that were learned."""
        return self.parties[self.study.party_names.index(self.study.party(name).name)]

    @property
    def released_users(self) -> float | None:
        """About how many users a party has, as released, at least one; None before or without."""
        return users_of(self.stages, self.released)

    @property
    def most_users(self) -> dict[str, int]:
        """The most users that each party can have by its own released number, and by no other's.

        Noise exceeds the margin with a probability below 2e-22. Empty before the stage or without
        it.
        """
        for stage, values in zip(self.stages, self.released, strict=False):
            if isinstance(stage.law, SizeLaw):
                most = [max(own, 0) + stage.law.most_noise for (own,) in values]
                return dict(zip(self.study.party_names, most, strict=True))
        return {}

    @property
    def assumed_users(self) -> float:
        """About how many users a party has: as the study says, else as released, else a guess."""
        said: float | None = self.study.expected_users
        if said is None:
            said = self.released_users
        return self.study.assumed_users if said is None else said

    @property
    def tagged_users(self) -> float:
        """For about how many users of a party tags are made: of its study or, if more, released.

        That is the smallest released number, so that none alone makes all messages long.
        """
        return max(self.study.assumed_users, min(self.most_users.values(), default=0))

    @property
    def sample_rate(self) -> float:
        """Share of users in a decoy message: from the study alone, so no party can lower it."""
        expected = self.study.expected_users
        return 1.0 if expected is None else min(1.0, self.study.decoy.max_users / expected)

    @property
    def collusion_laws(self) -> tuple[DirectLabels | None, ...]:
        """For each party the randomiser its users' labels pass against collusion, if any."""
        epsilon = self.study.decoy.collusion_epsilon
        if epsilon is None or not self.study.membership_facts.hides_from_parties:
            return (None,) * len(self.study.parties)
        return tuple(collusion_law(epsilon, n_local_clusters=k) for k in self.n_local_clusters)

    @property
    def stage_events(self) -> tuple[Event, ...]:
        """What all stages cost, also those that are still to come."""
        return tuple(event for stage in self.stages for event in stage.events)

    @property
    def local_events(self) -> tuple[Event, ...]:
        """What each party's main release about its own rows costs: clusters, and any detail."""
        if not self.detail:
            return self.cluster_events
        both = zip(self.cluster_events, self.detail, strict=True)
        return tuple(ComposedEvent(parts=(event, law.event)) for event, law in both)

    @functools.cached_property
    def cluster_events(self) -> tuple[Event, ...]:
        """What each party's local clustering costs.

        The slack of discrete noise depends on how many features there are. As long as categories
        are to be learned it has room for any number of them.
        """
        found = tuple(mechanism.event for mechanism in self.local)
        to_come = self.stages[len(self.released) :]
        if any(stage.name == CATEGORIES for stage in to_come):
            return tuple(with_slack(event, _SLACK_ROOM) for event in found)
        return found

    @property
    def membership_event(self) -> Event:
        """What the membership releases cost, for all parties together in groups."""
        return ComposedEvent(parts=tuple(self.law_of(group).event for group in self.groups))

    def law_of(self, group: Group) -> MembershipLaw:
        """The law of a group's release."""
        if self.presence is not None and len(group) == len(self.study.parties):
            return self.presence
        return self.membership

    @property
    def events(self) -> tuple[Event, ...]:
        """All events of the run, in order."""
        joined = () if self.columns is None else (self.columns.event,)
        return (*self.stage_events, *self.local_events, self.membership_event, *joined)

    @property
    def lifetime_events(self) -> tuple[Event, ...]:
        """All events of all runs that the budget is for: those of one run, as often as it is run.

        A run may follow from what earlier ones released; its noise never does.
        """
        return self.events * self.study.n_runs


def users_of(stages: tuple[Stage, ...], released: ReleasedValues) -> float | None:
    """Return the mean of the released numbers of users, each at least one; None without any."""
    for stage, values in zip(stages, released, strict=False):
        if stage.name == SIZE:
            return sum(max(own, 1) for (own,) in values) / len(values)
    return None
