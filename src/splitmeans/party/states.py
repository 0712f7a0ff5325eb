"""The states that a party goes through in a run; `node.py` takes it from one to the next."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from splitmeans._types import IntArray
from splitmeans.party.session import Session
from splitmeans.plan.stages import ReleasedValues
from splitmeans.table.walk.interface import Table
from splitmeans.wire.messages import Confirmation, PublishedResult


@dataclass(frozen=True, kw_only=True, repr=False)
class Joined:
    """Waits for the other parties' key contributions.

    `users` is the party's `users_digest`. Contributions of others are there as far as they came.
    """

    TAG: ClassVar[str] = "Joined"

    session: Session
    table: Table
    users: bytes
    contributions: Mapping[str, bytes]


@dataclass(frozen=True, kw_only=True, repr=False)
class Keyed:
    """Holds the run key; waits for the other parties' confirmations.

    `awaited` has for each of them the words that show that it has the same key.
    """

    TAG: ClassVar[str] = "Keyed"

    session: Session
    table: Table
    run_key: bytes
    users: bytes
    awaited: Mapping[str, Confirmation]


@dataclass(frozen=True, kw_only=True, repr=False)
class Surveying:
    """All parties hold the same key and plan; waits for the values of the current stage.

    `released` has the values of the stages before, `values` those of the current stage by party, as
    far as they are here.
    """

    TAG: ClassVar[str] = "Surveying"

    session: Session
    table: Table
    run_key: bytes
    users: bytes
    released: ReleasedValues
    values: Mapping[str, tuple[int, ...]]


@dataclass(frozen=True, kw_only=True, repr=False)
class Agreeing:
    """Knows all values of a stage; waits until all parties have confirmed the plan that follows."""

    TAG: ClassVar[str] = "Agreeing"

    session: Session
    table: Table
    run_key: bytes
    users: bytes
    released: ReleasedValues
    confirmed: frozenset[str]


@dataclass(frozen=True, kw_only=True, repr=False)
class Prepared:
    """All parties agree on everything; waits for the server's plan, which must be the same."""

    TAG: ClassVar[str] = "Prepared"

    session: Session
    table: Table
    run_key: bytes
    users: bytes
    released: ReleasedValues


@dataclass(frozen=True, kw_only=True, repr=False)
class Released:
    """Has sent its last message; rows and key are gone from the state."""

    TAG: ClassVar[str] = "Released"

    session: Session
    released: ReleasedValues
    centres: IntArray


@dataclass(frozen=True, kw_only=True, repr=False)
class Finished:
    """Holds the published result."""

    TAG: ClassVar[str] = "Finished"

    session: Session
    released: ReleasedValues
    result: PublishedResult


WithTable: TypeAlias = Joined | Keyed | Surveying | Agreeing | Prepared
PartyState: TypeAlias = WithTable | Released | Finished
