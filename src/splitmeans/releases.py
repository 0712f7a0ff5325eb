"""Every release of a run with what it costs: the list that a privacy officer checks."""

from dataclasses import dataclass

from splitmeans.features import bounds_of, features_of
from splitmeans.local import make_local
from splitmeans.local.mechanism import LocalClustering
from splitmeans.plan import Plan, counting_party, needs_count
from splitmeans.privacy.accountant import Cost, cost_of
from splitmeans.privacy.events import Event, LaplaceEvent


@dataclass(frozen=True, kw_only=True)
class Release:
    """One thing that leaves a party, with its privacy event."""

    party: str
    what: str
    event: Event

    @property
    def cost(self) -> Cost:
        """The release's cost on its own."""
        return cost_of(self.event)


def local_mechanism(plan: Plan, party: str) -> LocalClustering:
    """Return the local clustering that a party runs under this plan."""
    bounds = bounds_of(features_of(plan.study.party(party)))
    return make_local(
        plan.local_method,
        n_clusters=plan.n_local_clusters,
        bounds=bounds,
        epsilon=plan.shares.local_epsilon,
    )


def count_scale(plan_epsilon: float) -> float:
    """Scale of the discrete Laplace noise on the user count (sensitivity 1)."""
    return 1 / plan_epsilon


def releases_of(plan: Plan) -> tuple[Release, ...]:
    """List all releases of a run, in the order in which they happen."""
    releases = []
    if needs_count(plan.study):
        event = LaplaceEvent(noise_multiplier=count_scale(plan.shares.count_epsilon))
        releases.append(
            Release(party=counting_party(plan.study), what="number of users", event=event)
        )
    for party in plan.study.party_names:
        centres = local_mechanism(plan, party).event
        releases.append(Release(party=party, what="local centres", event=centres))
        releases.append(Release(party=party, what="memberships", event=plan.membership.event))
    return tuple(releases)
