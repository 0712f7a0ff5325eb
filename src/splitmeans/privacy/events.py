"""Privacy events: what a release does to a user's privacy, as plain public values.

Mechanisms and accountants meet only here. A mechanism describes itself by an event; an accountant
turns events into (epsilon, delta) and refuses an event it does not know. All events are about
adding or removing one user with all columns at all parties, unless they say otherwise. Every event
is hashable, so that composed results can be cached.
"""

import math
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import ClassVar, NamedTuple, TypeAlias

from splitmeans import _validate
from splitmeans.errors import ParameterError
from splitmeans.wire.tags import AS_DIGEST, tagged_text


class Relation(Enum):
    """Which tables count as neighbours."""

    ADD_OR_REMOVE = "one user added or removed, with all columns at all parties"
    REPLACE = "one user's values replaced by any others"


class Realised(NamedTuple):
    """The whole numbers of a Gaussian release, as they are drawn and clipped.

    Attributes:
        scale: Scale of the noise on every coordinate; the smallest one, where it may differ.
        sensitivity: L2 norm by which a user can move the vector, at that scale.
        coordinates: How many coordinates a user can move.
    """

    scale: int
    sensitivity: int
    coordinates: int


@dataclass(frozen=True, kw_only=True)
class GaussianEvent:
    """Integers plus discrete Gaussian noise; `noise_multiplier` is scale / L2 sensitivity.

    Attributes:
        noise_multiplier: See above.
        slack: How much discrete noise may add to the privacy loss of continuous noise, over all
            coordinates (rule R15, `privacy.gaussian.discrete_slack`); accountants charge for it.
        realised: The whole numbers that the other fields follow from; for a certificate.
    """

    TAG: ClassVar[str] = "GaussianEvent"

    noise_multiplier: float
    slack: float = 0.0
    realised: Realised | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        _validate.positive(noise_multiplier=self.noise_multiplier)
        if not 0 <= self.slack < math.inf:
            raise ParameterError(f"slack must be a finite number >= 0, got {self.slack!r}")


@dataclass(frozen=True, kw_only=True)
class RandomisedResponseEvent:
    """Every user's own report passes an epsilon-local-DP randomiser; covers REPLACE only."""

    TAG: ClassVar[str] = "RandomisedResponseEvent"

    epsilon: float

    def __post_init__(self) -> None:
        _validate.positive(epsilon=self.epsilon)


@dataclass(frozen=True, kw_only=True)
class CellSketchEvent:
    """All parties' registers of a sketch with phantoms in every cell, under one key.

    A user changes the maximum of one cell in each of `repetitions` independent rows: from the law
    of `phantoms` hash values to that of `phantoms` + 1, both floored (docs, "The cell sketch").
    """

    TAG: ClassVar[str] = "CellSketchEvent"

    repetitions: int
    gamma: float
    phantoms: int
    floor: int

    def __post_init__(self) -> None:
        _validate.at_least(1, repetitions=self.repetitions, phantoms=self.phantoms)
        _validate.at_least(0, floor=self.floor)
        _validate.positive(gamma=self.gamma)


@dataclass(frozen=True, kw_only=True)
class ShiftEvent:
    """A count plus integer noise whose law is an exact table; a user moves one count by one.

    `weights[i]` is the integer weight of noise value i; probabilities are weights over their sum.
    """

    TAG: ClassVar[str] = "ShiftEvent"

    weights: tuple[int, ...] = field(metadata=AS_DIGEST)

    def __post_init__(self) -> None:
        if len(self.weights) < 2 or min(self.weights) < 1:
            raise ParameterError("weights must be two or more whole numbers >= 1")

    def __repr__(self) -> str:
        return tagged_text(self)


@dataclass(frozen=True, kw_only=True)
class CountGaussianEvent:
    """One count plus discrete Gaussian noise of this scale; a user moves it by one."""

    TAG: ClassVar[str] = "CountGaussianEvent"

    scale: float

    def __post_init__(self) -> None:
        _validate.positive(scale=self.scale)


@dataclass(frozen=True, kw_only=True)
class RareEvent:
    """Outcomes that show a user, and have at most this probability whatever the rows are.

    The other outcomes of the same release have an event of their own beside this one.
    """

    TAG: ClassVar[str] = "RareEvent"

    probability: float

    def __post_init__(self) -> None:
        _validate.open_unit(probability=self.probability)


@dataclass(frozen=True, kw_only=True)
class ComposedEvent:
    """Several events about the same user, each possibly chosen after seeing the earlier ones."""

    TAG: ClassVar[str] = "ComposedEvent"

    parts: tuple["Event", ...]


def with_slack(event: "Event", times: float) -> "Event":
    """Return an event with more slack, where what is made later may need it."""
    match event:
        case GaussianEvent():
            return replace(event, slack=times * event.slack)
        case ComposedEvent(parts=parts):
            return ComposedEvent(parts=tuple(with_slack(part, times) for part in parts))
    return event


def covers_all(accounted: "tuple[Event, ...]", made: "tuple[Event, ...]") -> bool:
    """Whether the events that were accounted for cover those that are made, one by one."""
    return len(accounted) == len(made) and all(map(covers, accounted, made))


def covers(accounted: "Event", made: "Event") -> bool:
    """Whether an event that was accounted for costs at least as much as one that is made.

    They are equal, or both Gaussian with no less noise and no more slack. A Gaussian law with more
    noise is the same law with noise added, so its loss is dominated.
    """
    match accounted, made:
        case GaussianEvent(), GaussianEvent():
            return (
                made.noise_multiplier >= accounted.noise_multiplier
                and made.slack <= accounted.slack
            )
        case ComposedEvent(parts=before), ComposedEvent(parts=after):
            return covers_all(before, after)
    return accounted == made


Event: TypeAlias = (
    GaussianEvent
    | RandomisedResponseEvent
    | CellSketchEvent
    | ShiftEvent
    | CountGaussianEvent
    | RareEvent
    | ComposedEvent
)
