"""What participants other than the server can learn, with an accounting of its own.

A fellow party knows the run key, hence every decoy, and its own rows. In the published cell counts
H + D + E only the server's noise E hides users from it, and it sees the other parties' centres. So
one user's change at the other parties moves counts under E, and enters the other parties' local
releases. This holds while the server follows the protocol.
"""

import math

from splitmeans.membership.decoy.law import DecoyLaw
from splitmeans.plan import Plan
from splitmeans.privacy.accountant import Cost
from splitmeans.privacy.events import (
    ComposedEvent,
    CountGaussianEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    NonPrivateEvent,
    PureEvent,
    RandomisedResponseEvent,
    Relation,
)
from splitmeans.privacy.pld import FINE, epsilon_for


def fellow_party_cost(plan: Plan, relation: Relation, *, interval: float = FINE) -> Cost | None:
    """Return the worst cost towards any one party, None where no guarantee is claimed.

    ADD_OR_REMOVE is about the user's columns at all other parties, REPLACE about their values.
    Where user sets are equal, every party knows who is in them: only REPLACE has a meaning.
    """
    if not isinstance(plan.membership, DecoyLaw):
        return None
    if relation is Relation.ADD_OR_REMOVE and plan.study.user_sets == "equal":
        return None
    delta = plan.study.budget.delta
    costs = [
        epsilon_for(_events(plan, plan.membership, observer, relation), delta, interval=interval)
        for observer in range(len(plan.study.parties))
    ]
    return Cost(epsilon=max(costs), delta=delta)


def coalition_cost(plan: Plan, *, interval: float = FINE) -> Cost | None:
    """Return the cost, towards the server and one party together, of a user's values elsewhere.

    They can remove all decoys, so only the randomiser on each label and the noise of the other
    parties' local releases are left. None without `collusion_epsilon`; presence is never covered.
    """
    if all(law is None for law in plan.collusion_laws):
        return None
    delta = plan.study.budget.delta
    costs = []
    for observer in range(len(plan.study.parties)):
        others = [party for party in range(len(plan.study.parties)) if party != observer]
        local = [replaced(plan.local[party].event) for party in others]
        labels = [law.event for party in others if (law := plan.collusion_laws[party]) is not None]
        together = epsilon_for([*local, *labels], delta, interval=interval)
        if math.isinf(together):
            # Losses beyond the grid of exact accounting; pure ones may always be added up.
            together = epsilon_for(local, delta, interval=interval)
            together += sum(event.epsilon for event in labels)
        costs.append(together)
    return Cost(epsilon=max(costs), delta=delta)


def _events(plan: Plan, law: DecoyLaw, observer: int, relation: Relation) -> tuple[Event, ...]:
    seen = [mechanism.event for party, mechanism in enumerate(plan.local) if party != observer]
    if relation is Relation.REPLACE:
        seen = [replaced(event) for event in seen]
    cell = CountGaussianEvent(scale=law.server_sigma)
    for group in plan.groups:
        # With the observer in the group the user's record moves from one cell to another; without
        # it a record appears in, or leaves, one cell. A replaced user always moves.
        moves = 2 if observer in group or relation is Relation.REPLACE else 1
        seen += [cell] * moves
    return tuple(seen)


def replaced(event: Event) -> Event:
    """Return an event's cost when a user's values change instead of the user coming or going.

    A replacement is a removal and an addition in one release: sums move by twice their bound, and
    two counts move by one each.
    """
    match event:
        case GaussianEvent(noise_multiplier=multiplier, slack=slack):
            # Twice as many coordinates move.
            return GaussianEvent(noise_multiplier=multiplier / 2, slack=min(2 * slack, 0.5))
        case LaplaceEvent(single_count=True):
            return ComposedEvent(parts=(event, event))
        case LaplaceEvent(noise_multiplier=multiplier):
            return LaplaceEvent(noise_multiplier=multiplier / 2)
        case PureEvent(epsilon=epsilon):
            return PureEvent(epsilon=2 * epsilon)
        case RandomisedResponseEvent():
            # A randomised report is about a value, so replacing is what its epsilon is for.
            return event
        case ComposedEvent(parts=parts):
            return ComposedEvent(parts=tuple(replaced(part) for part in parts))
    return NonPrivateEvent(reason=f"no replacement bound for {type(event).__name__}")
