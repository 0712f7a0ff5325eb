"""From events to (epsilon, delta), by the accounting that a study asks for.

"paper" adds the costs of single releases up, as the paper does. "tight" composes exact privacy
losses (`privacy.pld`). Both refuse an event they do not know.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from splitmeans.errors import PrivacyError
from splitmeans.privacy.events import (
    ComposedEvent,
    Event,
    GaussianEvent,
    LaplaceEvent,
    NonPrivateEvent,
    PublishedSketchEvent,
    PureEvent,
    RandomisedResponseEvent,
)
from splitmeans.privacy.pld import FINE, epsilon_for


@dataclass(frozen=True, kw_only=True)
class Cost:
    """A privacy guarantee: (epsilon, delta)-differential privacy; infinite means none."""

    epsilon: float
    delta: float

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(epsilon=self.epsilon + other.epsilon, delta=self.delta + other.delta)


FREE = Cost(epsilon=0.0, delta=0.0)


def cost_text(cost: Cost | None) -> str:
    """Return a cost in words; None is a case that no bound covers."""
    if cost is None:
        return "no guarantee"
    if math.isinf(cost.epsilon):
        return "no privacy"
    if cost.delta == 0:
        return f"epsilon {cost.epsilon:.4g}"
    return f"epsilon {cost.epsilon:.4g}, delta {cost.delta:.3g}"


def cost_mapping(cost: Cost | None) -> dict[str, float] | None:
    """Return a cost as plain values. Infinity has no place in JSON; null says: no bound."""
    if cost is None or math.isinf(cost.epsilon):
        return None
    return {"epsilon": cost.epsilon, "delta": cost.delta}


def total_cost(
    events: Iterable[Event], *, delta: float, accounting: str, interval: float = FINE
) -> Cost:
    """Return what the events cost together.

    Tight accounting reads epsilon at the `delta` that was agreed; the paper's has a delta of its
    own for each release and adds them up.
    """
    if accounting == "paper":
        return basic_composition(events)
    epsilon = epsilon_for(events, delta, interval=interval)
    return Cost(epsilon=epsilon, delta=0.0 if math.isinf(epsilon) else delta)


def basic_composition(events: Iterable[Event]) -> Cost:
    """Return the sum of the events' costs."""
    total = FREE
    for event in events:
        total += cost_of(event)
    return total


def cost_of(event: Event) -> Cost:
    """Return the cost of one event on its own, as the paper counts it."""
    match event:
        case LaplaceEvent(noise_multiplier=multiplier):
            return Cost(epsilon=1 / multiplier, delta=0.0)
        case PureEvent(epsilon=epsilon) | RandomisedResponseEvent(epsilon=epsilon):
            return Cost(epsilon=epsilon, delta=0.0)
        case GaussianEvent(delta=float(delta)):
            return Cost(epsilon=epsilon_for((event,), delta), delta=delta)
        case PublishedSketchEvent(claimed_epsilon=epsilon, claimed_delta=delta):
            return Cost(epsilon=epsilon, delta=delta)
        case NonPrivateEvent():
            return Cost(epsilon=math.inf, delta=0.0)
        case ComposedEvent(parts=parts):
            return basic_composition(parts)
    raise PrivacyError(f"the cost of {type(event).__name__} is unknown, so it is refused")
