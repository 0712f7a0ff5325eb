"""The plan of a run: a study with everything settled that is public before the first release.

Server and parties each compute the plan themselves from the study and, where a method needs it, the
noisy user count; a plan that another participant proposes is compared, never believed.
"""

import hashlib
from dataclasses import dataclass

from splitmeans.local.law import LocalLaw
from splitmeans.membership.decoy.law import DecoyLaw, collusion_law
from splitmeans.membership.ldp.law import RandomisedLabels
from splitmeans.membership.method import Group, MembershipLaw
from splitmeans.membership.methods import method_of
from splitmeans.privacy.events import ComposedEvent, Event, LaplaceEvent
from splitmeans.study import Study
from splitmeans.wire.tags import tagged_text


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Everything public about a run.

    Attributes:
        study: What was agreed.
        noisy_count: The released number of users, where the method needs it.
        n_local_clusters: k' of each party.
        groups: Which parties share a membership release; empty where each party has its own.
        local: The law of each party's local clustering.
        membership: The law of the membership releases.
        count_scale: Scale of the Laplace noise on the user count, where it is released.
        grid_method: How cell weights of all parties are found.
        presence: The law of the presence table, where the last group is one: all parties, each
            with "present" as its only label.
    """

    study: Study
    noisy_count: int | None
    n_local_clusters: tuple[int, ...]
    groups: tuple[Group, ...]
    local: tuple[LocalLaw, ...]
    membership: MembershipLaw
    count_scale: float | None
    grid_method: str
    presence: DecoyLaw | None = None

    @property
    def fingerprint(self) -> str:
        """Hash of every parameter of every release."""
        parts = (self.study.hash, self.groups, self.grid_method, self.local, self.membership)
        # Of a table that draws are looked up in, which the parameters alone do not show (rule R3).
        table_hash = method_of(self.study).table_hash
        table = None if table_hash is None else table_hash(self.membership)
        more: tuple[object, ...] = (self.n_local_clusters, self.count_scale, table)
        if self.presence is not None:
            more = (*more, self.presence, self.presence.table_hash)
        parameters = tagged_text((*parts, *more))
        return hashlib.sha256(parameters.encode()).hexdigest()

    @property
    def counting_party(self) -> str | None:
        """The party that releases the user count, where the method needs it."""
        return None if self.count_scale is None else counting_party(self.study)

    @property
    def sample_rate(self) -> float:
        """Share of users in a decoy message, from public quantities."""
        return min(1.0, self.study.decoy.max_users / self.study.expected_users)

    @property
    def collusion_laws(self) -> tuple[RandomisedLabels | None, ...]:
        """For each party the randomiser its users' labels pass against collusion, if any."""
        epsilon = self.study.decoy.collusion_epsilon
        if epsilon is None or not self.study.membership_facts.hides_from_parties:
            return (None,) * len(self.study.parties)
        return tuple(collusion_law(epsilon, n_local_clusters=k) for k in self.n_local_clusters)

    @property
    def count_event(self) -> Event | None:
        """What releasing the user count costs."""
        if self.count_scale is None:
            return None
        return LaplaceEvent(noise_multiplier=self.count_scale, single_count=True)

    @property
    def membership_event(self) -> Event:
        """What the membership releases cost: per party, or for all parties together in groups."""
        if not self.groups:
            return self.membership.event
        return ComposedEvent(parts=tuple(self.law_of(group).event for group in self.groups))

    def law_of(self, group: Group) -> MembershipLaw:
        """The law of a group's release."""
        if self.presence is not None and len(group) == len(self.study.parties):
            return self.presence
        return self.membership

    @property
    def events(self) -> tuple[Event, ...]:
        """All events of the run, in order."""
        count = () if self.count_event is None else (self.count_event,)
        local = tuple(mechanism.event for mechanism in self.local)
        n_memberships = 1 if self.groups else len(self.study.parties)
        return (*count, *local, *(self.membership_event,) * n_memberships)


def counting_party(study: Study) -> str:
    """The one party that releases the user count.

    It is fixed by the study, not chosen by the server: a server that may pick could ask several
    parties and get several counts for the price of one.
    """
    return study.parties[0].name
