"""From events to (epsilon, delta).

`basic_composition` adds the costs up, as the paper does. It knows every event of the library and
refuses any other.
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
    RandomisedResponseEvent,
)


@dataclass(frozen=True, kw_only=True)
class Cost:
    """A privacy guarantee: (epsilon, delta)-differential privacy; infinite means none."""

    epsilon: float
    delta: float

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(epsilon=self.epsilon + other.epsilon, delta=self.delta + other.delta)


FREE = Cost(epsilon=0.0, delta=0.0)


def basic_composition(events: Iterable[Event]) -> Cost:
    """Return the sum of the events' costs."""
    total = FREE
    for event in events:
        total += cost_of(event)
    return total


def cost_of(event: Event) -> Cost:
    """Return the cost of one event on its own."""
    match event:
        case LaplaceEvent(noise_multiplier=multiplier):
            return Cost(epsilon=1 / multiplier, delta=0.0)
        case GaussianEvent(noise_multiplier=multiplier, delta=delta):
            # Imported here: loading takes seconds, and only Gaussian noise needs it.
            import dp_accounting

            return Cost(epsilon=dp_accounting.get_epsilon_gaussian(multiplier, delta), delta=delta)
        case RandomisedResponseEvent(epsilon=epsilon):
            return Cost(epsilon=epsilon, delta=0.0)
        case PublishedSketchEvent(claimed_epsilon=epsilon, claimed_delta=delta):
            return Cost(epsilon=epsilon, delta=delta)
        case NonPrivateEvent():
            return Cost(epsilon=math.inf, delta=0.0)
        case ComposedEvent(parts=parts):
            return basic_composition(parts)
    raise PrivacyError(f"the cost of {type(event).__name__} is unknown, so it is refused")
