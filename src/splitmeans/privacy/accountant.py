"""What events cost together, as an (epsilon, delta) that people read."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from splitmeans.privacy.events import Event
from splitmeans.privacy.pld import FINE, epsilon_for


@dataclass(frozen=True, kw_only=True)
class Cost:
    """A privacy guarantee: (epsilon, delta)-differential privacy; infinite means none."""

    epsilon: float
    delta: float


def cost_text(cost: Cost | None) -> str:
    """Return a cost in words; None is a case that no bound covers."""
    if cost is None or math.isinf(cost.epsilon):
        return "no guarantee"
    return f"epsilon {cost.epsilon:.4g}, delta {cost.delta:.3g}"


def total_cost(events: Iterable[Event], *, delta: float, interval: float = FINE) -> Cost:
    """Return what the events cost together: their epsilon at this delta, computed exactly."""
    return Cost(epsilon=epsilon_for(events, delta, interval=interval), delta=delta)
