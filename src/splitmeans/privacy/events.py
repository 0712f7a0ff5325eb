"""Privacy events: what a release does to a user's privacy, as plain public values.

Mechanisms and accountants meet only here. A mechanism describes itself by an event; an accountant
turns events into (epsilon, delta) and refuses an event it does not know. All events are about
adding or removing one user with all columns at all parties, unless they say otherwise.
"""

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from splitmeans import _validate


class Relation(Enum):
    """Which tables count as neighbours."""

    ADD_OR_REMOVE = "one user added or removed, with all columns at all parties"
    REPLACE = "one user's values replaced by any others"


@dataclass(frozen=True, kw_only=True)
class LaplaceEvent:
    """Integers plus discrete Laplace noise; `noise_multiplier` is scale / L1 sensitivity."""

    noise_multiplier: float

    def __post_init__(self) -> None:
        _validate.positive(noise_multiplier=self.noise_multiplier)


@dataclass(frozen=True, kw_only=True)
class GaussianEvent:
    """Integers plus discrete Gaussian noise; `noise_multiplier` is scale / L2 sensitivity.

    `delta` is the share of the failure probability that a planner who reports this event as
    (epsilon, delta) has reserved for it.
    """

    noise_multiplier: float
    delta: float

    def __post_init__(self) -> None:
        _validate.positive(noise_multiplier=self.noise_multiplier)
        _validate.open_unit(delta=self.delta)


@dataclass(frozen=True, kw_only=True)
class RandomisedResponseEvent:
    """Every user's own report passes an epsilon-local-DP randomiser; covers REPLACE only."""

    epsilon: float

    def __post_init__(self) -> None:
        _validate.positive(epsilon=self.epsilon)


@dataclass(frozen=True, kw_only=True)
class PublishedSketchEvent:
    """One party's sketch with phantoms per cluster, as the paper accounts for it (its Theorem 2).

    The statement holds for one party alone. The parties' sketches share hash keys, so adding the
    parties' costs up is the paper's argument, not a proof.
    """

    repetitions: int
    gamma: float
    phantoms: int
    floor: int
    claimed_epsilon: float
    claimed_delta: float


@dataclass(frozen=True, kw_only=True)
class NonPrivateEvent:
    """A release with no protection at all, for baselines."""

    reason: str


@dataclass(frozen=True, kw_only=True)
class ComposedEvent:
    """Several events about the same user, each possibly chosen after seeing the earlier ones."""

    parts: tuple["Event", ...]


Event: TypeAlias = (
    LaplaceEvent
    | GaussianEvent
    | RandomisedResponseEvent
    | PublishedSketchEvent
    | NonPrivateEvent
    | ComposedEvent
)
