"""What a plan costs towards each observer: the only place where a stated figure is computed.

Figures are of all runs of a series together. A run that a user is not in costs the user nothing:
its releases have the same distribution with and without. So the cost of r runs is that of the
events of one run composed r times, whichever runs they are.
"""

import dataclasses
import math
from collections.abc import Iterable
from dataclasses import dataclass

from splitmeans.plan.plan import Plan
from splitmeans.plan.views import coalition_cost, fellow_party_cost, spelled_apart_events
from splitmeans.privacy.accountant import Cost, total_cost
from splitmeans.privacy.events import Event, Relation
from splitmeans.privacy.ledger_rules import VALUES_AND_PRESENCE, Towards
from splitmeans.privacy.pld import FINE, flatten, gap_of
from splitmeans.study import Study
from splitmeans.study.counting import USER_ELSEWHERE

# Below this share of the budget a plan says that it leaves some of it unused.
ENOUGH_USED = 0.95
# Every number of runs up to this is listed; of more, the powers of two.
_ALL_LISTED = 8

VALUES_ELSEWHERE = "a user's values elsewhere replaced"


@dataclass(frozen=True, kw_only=True)
class AttendedRuns:
    """The cost of being there in some runs of a series.

    Attributes:
        runs: In how many.
        towards_server: Towards the server and readers of the result.
        towards_party: Towards another party, the largest figure; None where nothing bounds it.
    """

    runs: int
    towards_server: Cost
    towards_party: Cost | None = None


def step_of(plan: Plan, bound: float | None = None) -> float:
    """Return the step of privacy loss that a bound, by default the budget, is calibrated with."""
    return FINE * max(1.0, plan.study.budget.epsilon if bound is None else bound)


def cost_of(plan: Plan, events: Iterable[Event]) -> Cost:
    """Return what events cost together, at the study's delta."""
    return total_cost(events, delta=plan.study.budget.delta, interval=step_of(plan))


def total_of(plan: Plan) -> Cost:
    """Return the cost of all releases of all runs together, towards the server."""
    return cost_of(plan, plan.lifetime_events)


def cost_spelled_apart(plan: Plan) -> Cost:
    """Return what the run costs a person whose id is written in another way at every party."""
    return cost_of(plan, spelled_apart_events(plan))


def party_cases(study: Study) -> dict[Relation, str]:
    """Return what can change of a user at the parties that an observing party is not."""
    if study.counts_only:
        return {Relation.ADD_OR_REMOVE: USER_ELSEWHERE}
    return {
        Relation.REPLACE: VALUES_ELSEWHERE,
        Relation.ADD_OR_REMOVE: "a user's columns elsewhere added or removed",
    }


def party_costs(plan: Plan) -> dict[Relation, Cost | None]:
    """Return the cost towards one or more parties in each case; None where no bound holds."""
    step = step_of(plan, plan.study.budget.party_epsilon)
    return {
        relation: fellow_party_cost(plan, relation, interval=step)
        for relation in party_cases(plan.study)
    }


def towards_party(plan: Plan) -> tuple[str, Cost] | None:
    """Return the largest cost towards another party, and of what; None where nothing bounds it."""
    cases = party_cases(plan.study)
    known = [(cases[of], cost) for of, cost in party_costs(plan).items() if cost is not None]
    return max(known, key=lambda pair: pair[1].epsilon, default=None)


def towards_coalition(plan: Plan) -> Cost | None:
    """Return the cost towards parties together with the server; None where nothing bounds it."""
    return coalition_cost(plan, interval=step_of(plan, plan.study.budget.coalition_epsilon))


def towards(plan: Plan) -> Towards:
    """Return what the ledger records beside the budget: the costs towards participants."""

    def epsilon(cost: Cost | None) -> float:
        return math.inf if cost is None else cost.epsilon

    return Towards(
        party_epsilon=max(map(epsilon, party_costs(plan).values())),
        party_relation=VALUES_AND_PRESENCE,
        coalition_epsilon=epsilon(towards_coalition(plan)),
    )


def attended_runs(plan: Plan) -> tuple[AttendedRuns, ...]:
    """Return the costs of being there in 1, 2, ... runs; nothing for a study of one run."""
    if plan.study.renewal is None:
        return ()
    most = plan.study.n_runs
    powers = {2**at for at in range(most.bit_length())}
    listed = sorted({*range(1, min(most, _ALL_LISTED) + 1), *powers, most})
    return tuple(cost_of_runs(plan, runs) for runs in listed)


def cost_of_runs(plan: Plan, runs: int) -> AttendedRuns:
    """Return the cost of being there in some number of runs of a series."""
    plan = dataclasses.replace(plan, series_run=None)
    found = (
        fellow_party_cost(plan, relation, interval=step_of(plan), runs=runs)
        for relation in Relation
    )
    party = max((one for one in found if one), key=lambda one: one.epsilon, default=None)
    server = cost_of(plan, plan.events * runs)
    return AttendedRuns(runs=runs, towards_server=server, towards_party=party)


def unused_budget(plan: Plan) -> str | None:
    """Return why a run costs clearly less than its budget; None where it does not."""
    budget, spent = plan.study.budget, total_of(plan).epsilon
    used = spent / budget.epsilon
    if used >= ENOUGH_USED:
        return None
    if budget.party_epsilon is not None or budget.coalition_epsilon is not None:
        reason = (
            "the bounds towards parties are what limits the noise, so a smaller epsilon would cost "
            "no accuracy"
        )
    elif gap_of(flatten(plan.lifetime_events)).delta(spent) > 0.05 * budget.delta:
        reason = (
            "the rounding of the method's tables takes the rest at this delta: raise delta, lower "
            "epsilon, or take membership = 'decoy'"
        )
    else:
        reason = "its whole-numbered parameters do not come closer"
    return (
        f"The run uses {100 * used:.0f} % of its budget (epsilon {spent:.4g} of "
        f"{budget.epsilon:g}): {reason}. The ledger is charged all of it."
    )
