"""What a bound towards parties costs: a plan with it beside the plan without."""

import dataclasses
from dataclasses import dataclass
from typing import Any

from splitmeans.forecasting.cell_error import cell_error
from splitmeans.forecasting.loss_model import LossForecast, loss_forecast, refusal, strain_of
from splitmeans.forecasting.rough_plan import rough_plan, stage_users
from splitmeans.plan.costs import towards_party
from splitmeans.plan.plan import Plan
from splitmeans.plan.settle import make_plan

_BOUNDS = ("party_epsilon", "coalition_epsilon")


@dataclass(frozen=True, kw_only=True)
class Worth:
    """What a plan gives: the error of a cell, and the loss ratio where it is known."""

    loss: LossForecast | None
    cell_error: float
    local_mu: float | None


@dataclass(frozen=True, kw_only=True)
class Price:
    """What one bound of a study costs.

    Attributes:
        bound: "party_epsilon" or "coalition_epsilon".
        value: The bound.
        chosen: Whether the study sets it; if not, it is what setting it would cost, roughly.
        without: What the study gives without this bound, all others kept.
        given: What it gives with it.
    """

    bound: str
    value: float
    chosen: bool
    without: Worth
    given: Worth

    @property
    def more_noise(self) -> float | None:
        """By how much the bound multiplies the noise of local releases."""
        if self.without.local_mu is None or self.given.local_mu is None:
            return None
        return self.without.local_mu / self.given.local_mu


def prices(plan: Plan, *, users: int, structure: str | None) -> tuple[Price, ...]:
    """Return the price of each bound that the study sets, or of the one that it could set.

    That is `party_epsilon` = epsilon, if the figure towards a party is the larger one.
    """
    study, budget = plan.study, plan.study.budget

    def worth(of: Plan) -> Worth:
        loss = None
        if refusal(of) is None:
            loss = loss_forecast(strain_of(of, users=users), structure=structure)
        local_mu = of.local[0].mu if of.local else None
        return Worth(loss=loss, cell_error=cell_error(of, users=users), local_mu=local_mu)

    found = []
    for name in _BOUNDS:
        value = getattr(budget, name)
        if value is not None:
            unbounded: dict[str, Any] = {name: None}
            open_budget = dataclasses.replace(budget, **unbounded)
            unbound = dataclasses.replace(study, budget=open_budget)
            without = make_plan(unbound, released=plan.released)
            price = Price(
                bound=name, value=value, chosen=True, without=worth(without), given=worth(plan)
            )
            found.append(price)
    party = towards_party(plan)
    larger = party is not None and party[1].epsilon > budget.epsilon
    if budget.party_epsilon is None and larger:
        bounded = dataclasses.replace(budget, party_epsilon=budget.epsilon)
        found_users = stage_users(study, users)
        given = rough_plan(dataclasses.replace(study, budget=bounded), users=found_users)
        price = Price(
            bound="party_epsilon",
            value=budget.epsilon,
            chosen=False,
            without=worth(rough_plan(study, users=found_users)),
            given=worth(given),
        )
        found.append(price)
    return tuple(found)
