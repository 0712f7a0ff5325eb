"""Who sees what of a run, and how well each observer can tell two cases of a user apart."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from splitmeans.plan import costs
from splitmeans.plan.plan import Plan
from splitmeans.plan.views import coalition_events, fellow_party_events
from splitmeans.privacy.accountant import Cost, cost_text
from splitmeans.privacy.calibrate import Views
from splitmeans.privacy.pld import delta_for
from splitmeans.study.counting import USER_ELSEWHERE

# e^epsilon is written out up to this epsilon.
_MOST_WRITTEN = 20.0

NO_BOUND = "no bound"
MEANING = (
    "any conclusion of an observer is at most the stated number of times as likely in one case as "
    "in the other, plus delta; the best guess between the two at even odds is right in at most the "
    "stated share of cases, on average over the noise"
)
# Why an observer's view has no bound.
KNOWS_KEYS = "the parties know the keys that the method's guarantee rests on"
REMOVES_DECOYS = "they can remove all decoys"
VALUES_CAN_BE_BOUND = f"{REMOVES_DECOYS}; decoy.collusion_epsilon bounds what they learn of values"


@dataclass(frozen=True, kw_only=True)
class Bound:
    """How well an observer can tell two cases of a user apart, at most.

    Attributes:
        case: How the two cases differ.
        cost: Epsilon and delta; None where there is no bound.
        factor: How many times as likely any conclusion is in one case as in the other, at most,
            plus delta; rounded up.
        guess: How often the best guess between the two at even odds is right, at most, on average
            over the noise; rounded up.
        why: Why there is no bound.
    """

    case: str
    cost: Cost | None = None
    factor: str = NO_BOUND
    guess: str = NO_BOUND
    why: str | None = None

    @property
    def text(self) -> str:
        """The bound in one line."""
        if self.cost is None:
            return f"no guarantee ({self.why})"
        return (
            f"{cost_text(self.cost)}; {self.factor} times as likely, guesses right in {self.guess}"
        )


@dataclass(frozen=True, kw_only=True)
class Observer:
    """One kind of observer, by a short name for programs: what it sees, and what it can learn."""

    name: str
    who: str
    sees: str
    bounds: tuple[Bound, ...] = ()


def observers_of(plan: Plan) -> Iterator[Observer]:
    """Yield all observers."""
    study, step = plan.study, costs.step_of(plan)
    views = (plan.lifetime_events,)
    server = (_bound("a user added or removed", costs.total_of(plan), views, step=step),)
    yield Observer(
        name="server",
        who="the server, also one that breaks the rules",
        sees="all releases, the number and size of messages; no run key, id or row",
        bounds=server,
    )
    yield Observer(
        name="reader",
        who="readers of the result",
        sees="the published result, which is computed from the releases alone",
        bounds=server,
    )
    step = costs.step_of(plan, study.budget.party_epsilon)
    cases = costs.party_cases(study)
    staged = "".join(f", each released {stage.what}" for stage in plan.stages)
    yield Observer(
        name="party",
        who="another party, or several that share what they know, if the server follows the rules",
        sees=f"the published result{staged}, and the run key; the figure is the largest for one "
        "party, or for several that share what they know, about a user's columns at the rest",
        bounds=tuple(
            _bound(cases[of], cost, fellow_party_events(plan, of), step=step, why=KNOWS_KEYS)
            for of, cost in costs.party_costs(plan).items()
        ),
    )
    about, why = f"{costs.VALUES_ELSEWHERE}; not presence", VALUES_CAN_BE_BOUND
    if study.counts_only:
        about, why = USER_ELSEWHERE, REMOVES_DECOYS
    if not study.membership_facts.hides_from_parties:
        why = KNOWS_KEYS
    step = costs.step_of(plan, study.budget.coalition_epsilon)
    cost = costs.towards_coalition(plan)
    yield Observer(
        name="coalition",
        who="parties and the server together, or a party if the server breaks the rules",
        sees="the releases and the run key",
        bounds=(_bound(about, cost, coalition_events(plan), step=step, why=why),),
    )
    if study.public_keys:
        yield Observer(
            name="carrier",
            who="the carrier of the messages (a shared folder, a relay)",
            sees="who sends to whom, when, and how many bytes; it can open no message",
        )


def likelier(epsilon: float) -> str:
    """Return e^epsilon, rounded up."""
    if epsilon > _MOST_WRITTEN:
        return f"e^{math.ceil(1000 * epsilon) / 1000:g}"
    return f"{math.ceil(100 * math.exp(epsilon)) / 100:,.2f}"


def _bound(
    case: str, cost: Cost | None, views: Views, *, step: float, why: str | None = None
) -> Bound:
    if cost is None:
        return Bound(case=case, why=why)
    share = best_guess(cost, views, interval=step)
    guess = f"{math.ceil(1000 * share) / 10:.1f} %"
    return Bound(case=case, cost=cost, factor=likelier(cost.epsilon), guess=guess)


def best_guess(cost: Cost, views: Views, *, interval: float) -> float:
    """Return the largest share of guesses at even odds between two cases that can be right.

    It is half of one plus the total variation of the two distributions, which is delta at epsilon 0
    of the exact losses; and by any (epsilon, delta) at most (e^epsilon + delta) / (e^epsilon + 1).
    """
    odds = math.exp(-cost.epsilon)
    bound = (1 + odds * cost.delta) / (1 + odds)
    if views:
        distance = max(delta_for(view, 0.0, interval=interval) for view in views)
        bound = min(bound, (1 + distance) / 2)
    return min(1.0, bound)
