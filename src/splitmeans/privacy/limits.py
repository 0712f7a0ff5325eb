"""Limits on what all runs on the same people may cost together."""

import math
from dataclasses import dataclass

from splitmeans import _validate
from splitmeans.errors import ParameterError

# The figures of a cost, and of a limit.
AMOUNTS = ("epsilon", "delta", "party_epsilon", "coalition_epsilon")


@dataclass(frozen=True, kw_only=True)
class Limit:
    """The most that all runs on one data source may cost together.

    Attributes:
        epsilon: Towards the server and outsiders.
        delta: The same; it goes with the other figures as well.
        party_epsilon: Towards a fellow party, or several that share what they know; None: no limit.
        coalition_epsilon: Towards a party together with the server; None: no limit.
    """

    epsilon: float
    delta: float
    party_epsilon: float | None = None
    coalition_epsilon: float | None = None

    def __post_init__(self) -> None:
        _validate.positive(epsilon=self.epsilon)
        check_delta(self.delta)
        for name in ("party_epsilon", "coalition_epsilon"):
            if (value := getattr(self, name)) is not None:
                _validate.positive(**{name: value})

    def tightened(self, other: "Limit") -> "Limit":
        """Return the limit that keeps both."""
        pairs = {name: (getattr(self, name), getattr(other, name)) for name in AMOUNTS}
        given = {name: [one for one in pair if one is not None] for name, pair in pairs.items()}
        return Limit(**{name: min(both) for name, both in given.items() if both})


def check_cost(epsilon: float, delta: float) -> None:
    """Check the cost of a run; an infinite epsilon stands for a release without protection."""
    if epsilon != math.inf:
        _validate.positive(epsilon=epsilon)
    check_delta(delta)


def check_delta(delta: float) -> None:
    """Check a delta."""
    _validate.finite(delta=delta)
    if not 0 <= delta < 1:
        raise ParameterError(f"delta must be in [0, 1), got {delta!r}")
