"""Stages: releases that come before a party's main one, because the rest of the plan needs them.

A stage is a release whose law is fixed in the first plan, by parties that the study names, of whole
numbers. What follows (k', say) may depend on the values that were released, never on rows, and all
noise laws are those of the first plan whatever was released (docs/concepts/guarantee.md, "Stages").
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, TypeAlias

from splitmeans._types import NoiseLine
from splitmeans.errors import ParameterError, ProtocolError
from splitmeans.privacy.events import Event
from splitmeans.wire.ways import MAX_SMALL_BYTES

# What was released in a stage, for each of its parties in order; and in all stages so far.
StageValues: TypeAlias = tuple[tuple[int, ...], ...]
ReleasedValues: TypeAlias = tuple[StageValues, ...]

# Of the server's plan beside released values: k' of all parties, hashes, headers.
_PLAN_BYTES = 2048

# No sum on the grid is larger; products of a few such numbers are still exact enough as floats.
MAX_VALUE = 2**53


class StageLaw(Protocol):
    """Public parameters of one party's release in a stage."""

    TAG: ClassVar[str]

    @property
    def length(self) -> int:
        """How many whole numbers are released."""
        ...

    @property
    def event(self) -> Event:
        """What one party's release costs a user who is added or removed."""
        ...

    @property
    def replaced_event(self) -> Event | None:
        """What it costs a user whose values are replaced; None if that changes nothing."""
        ...

    def noise_lines(self) -> Iterable[NoiseLine]:
        """Return the noise of one party's release."""
        ...


@dataclass(frozen=True, kw_only=True)
class PerParty:
    """Laws of a stage in which parties release different things, in the order of its parties."""

    TAG: ClassVar[str] = "PerParty"

    laws: tuple[StageLaw, ...]


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One stage of a plan.

    Attributes:
        name: By which a party finds the code that makes the release (`party/stages.py`).
        what: What is released, for people.
        parties: Who releases it. The study names them, never the server: a server that may pick
            could ask several parties for the price of one.
        law: The law of each party's release, or one for each of them.
    """

    TAG: ClassVar[str] = "Stage"

    name: str
    what: str
    parties: tuple[str, ...]
    law: StageLaw | PerParty

    @property
    def events(self) -> tuple[Event, ...]:
        """What the stage costs a user who is at every party."""
        return tuple(law.event for law in self.laws)

    @property
    def laws(self) -> tuple[StageLaw, ...]:
        """The law of each party's release, in the order of the parties."""
        if isinstance(self.law, PerParty):
            return self.law.laws
        return (self.law,) * len(self.parties)

    def law_of(self, party: str) -> StageLaw:
        """The law of one party's release."""
        return self.laws[self.parties.index(party)]

    def checked(self, party: str, values: Sequence[int]) -> tuple[int, ...]:
        """Return a party's values if they can be a release of this stage.

        Raises:
            ProtocolError: They are not as many as the law says, beyond all bounds, or not what the
                law can release.
        """
        law = self.law_of(party)
        if len(values) != law.length:
            raise ProtocolError(
                f"party {party!r} released {len(values)} values as its {self.what}, the plan says "
                f"{law.length}"
            )
        found = tuple(int(value) for value in values)
        if any(abs(value) > MAX_VALUE for value in found):
            raise ProtocolError(f"party {party!r} released a {self.what} that no table can have")
        check = getattr(law, "check", None)
        if check is not None:
            try:
                check(found)
            except ProtocolError as problem:
                raise ProtocolError(f"party {party!r} released {self.what}: {problem}") from problem
        return found


def stage_of_laws(name: str, what: str, laws: Mapping[str, StageLaw]) -> Stage | None:
    """Return a stage in which each party here has a law of its own, None where none has."""
    if not laws:
        return None
    return Stage(name=name, what=what, parties=tuple(laws), law=PerParty(laws=tuple(laws.values())))


def check_room(stages: Sequence[Stage]) -> None:
    """Refuse stages whose values are more than the server's plan, a small message, can hold.

    Raises:
        ParameterError: It says what to do about it.
    """
    numbers = sum(law.length for stage in stages for law in stage.laws)
    most = (MAX_SMALL_BYTES - _PLAN_BYTES) // 8
    if numbers > most:
        raise ParameterError(
            f"the columns whose bounds or categories the run learns would take {numbers:,} "
            f"numbers in a message that holds {most:,} (5 a column with bounds = 'private', 216 a "
            "column with open categories); give public bounds or categories for some of them"
        )


def flat_values(released: ReleasedValues) -> tuple[int, ...]:
    """Return all released values in order."""
    return tuple(value for stage in released for party in stage for value in party)
