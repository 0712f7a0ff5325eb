"""Every message of the protocol, one frozen type each.

Nothing here computes. A message's `repr` shows its kind and sizes only: contents are long, and on
their way between parties some are secret.
"""

import typing
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from splitmeans._types import IntArray, RegisterArray
from splitmeans.wire.tags import tag_of
from splitmeans.wire.ways import kinds_with, staged_kind


class _Quiet:
    """Shared `repr`: type name and array shapes, never values."""

    def __repr__(self) -> str:
        shapes = [
            f"{name}{list(value.shape)}"
            for name, value in vars(self).items()
            if isinstance(value, np.ndarray)
        ]
        return f"<{type(self).__name__} {' '.join(shapes)}".rstrip() + ">"


def _array(dtype: str) -> Any:
    """An array field; its element type and byte order are part of the wire format."""
    return field(metadata={"dtype": np.dtype(dtype)})


def _optional_array(dtype: str) -> Any:
    """An array field of one dimension that bytes leave out where it is empty."""
    kind = np.dtype(dtype)
    metadata = {"dtype": kind, "optional": True}
    return field(default_factory=lambda: np.zeros(0, dtype=kind), metadata=metadata)


# ---- membership messages: what a party tells the server about which user is in which cluster ----


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class CellSketchMessage(_Quiet):
    """Registers of the cell sketches, one block of M rows per group of the party.

    Shape (groups x M, k'); the blocks are in the order of the plan's groups.
    """

    TAG: ClassVar[str] = "CellSketchMessage"

    registers: RegisterArray = _array("<u2")


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class DecoyMessage(_Quiet):
    """Records of users among decoys, sorted by tag within each group of the party.

    Attributes:
        lengths: Records of each group, in the order of the plan's groups, shape (groups,).
        lows: The low 16 bits of all tags, shape (records,).
        bitmaps: Their high bits as a bitmap of each group, which begins a new byte
            (`membership/decoy/tag_lists.py`).
        labels: The party's cluster of each record, packed to the bits that k' needs, each group
            beginning a new byte.
    """

    TAG: ClassVar[str] = "DecoyMessage"

    lengths: IntArray = _array("<i8")
    lows: npt.NDArray[np.uint16] = _array("<u2")
    bitmaps: npt.NDArray[np.uint8] = _array("|u1")
    labels: npt.NDArray[np.uint8] = _array("|u1")


def no_records() -> DecoyMessage:
    """Return the message of a party without any table."""
    return DecoyMessage(
        lengths=np.zeros(0, dtype=np.int64),
        lows=np.zeros(0, dtype=np.uint16),
        bitmaps=np.zeros(0, dtype=np.uint8),
        labels=np.zeros(0, dtype=np.uint8),
    )


MembershipMessage: TypeAlias = CellSketchMessage | DecoyMessage

# ---- everyone to everyone, before anything else ----


@dataclass(frozen=True, kw_only=True, repr=False)
class Hello(_Quiet):
    """The sender's key of this run, to which everything else in the run is sealed.

    Itself it is sealed to the receiver's identity, and holds nothing secret. It is the first that
    anybody hears from anybody, so it says which protocol the sender speaks.

    Attributes:
        protocol: The sender's protocol, one byte.
        sealing: The public half of the key (`wire.sealing`), 1216 bytes.
    """

    TAG: ClassVar[str] = "Hello"

    protocol: bytes
    sealing: bytes


# ---- party to party; the server only carries them ----


@dataclass(frozen=True, kw_only=True, repr=False)
class KeyContribution(_Quiet):
    """A party's fresh random share of the run key.

    Attributes:
        secret: 32 random bytes, the same to all parties. Secret.
    """

    TAG: ClassVar[str] = "KeyContribution"

    secret: bytes


@dataclass(frozen=True, kw_only=True, repr=False)
class Confirmation(_Quiet):
    """What parties compare before anything is released; each names its sender.

    Attributes:
        key_check: Keyed digest of study, run and plan: the sender has the same, and the same key.
        shared_check: Keyed digest of what all parties derive from the key, decoys among it.
    """

    TAG: ClassVar[str] = "Confirmation"

    key_check: bytes
    shared_check: bytes


@dataclass(frozen=True, kw_only=True, repr=False)
class PlanConfirmation(_Quiet):
    """Keyed digest of the plan that follows from a stage; names its sender.

    Attributes:
        stage: Number of the stage, from 1.
        plan_check: The digest.
    """

    TAG: ClassVar[str] = "PlanConfirmation"

    stage: int
    plan_check: bytes


# ---- party to server ----


@dataclass(frozen=True, kw_only=True, repr=False)
class Ready(_Quiet):
    """The party holds the run key and the same plan as all others."""

    TAG: ClassVar[str] = "Ready"

    study_hash: str


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class StageRelease(_Quiet):
    """What a party releases in a stage, before its `PartyRelease`; the other parties get it too.

    Attributes:
        stage: Number of the stage, from 1.
        values: Noisy whole numbers, as many as the plan says, shape (values,).
    """

    TAG: ClassVar[str] = "StageRelease"

    stage: int
    values: IntArray = _array("<i8")


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class PartyRelease(_Quiet):
    """The one message that a party's columns cost.

    Attributes:
        centres: Local centres, shape (k', d).
        points: Synthetic points that lie as the party's rows do, coded: a grid integer or a level
            for each column, shape (points, columns); none in a study of counts alone.
        membership: Which user is in which local cluster.
        column_edges: Where tables of columns are counted, the edges of the bins of all columns of
            numbers, flat (`membership/decoy/column_labels.py`).
        columns: Records of the tables of columns that the party has a part in, if there are any.
    """

    TAG: ClassVar[str] = "PartyRelease"

    centres: IntArray = _array("<i8")
    points: npt.NDArray[np.int32] = _array("<i4")
    membership: MembershipMessage
    column_edges: IntArray = _optional_array("<i8")
    columns: DecoyMessage | None = field(default=None, metadata={"optional": True})


# ---- server to party ----


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class RunPlan(_Quiet):
    """What became public after the study was agreed.

    Attributes:
        n_local_clusters: The k' of each party, shape (S,).
        released: All values of all stages, in the plan's order, flat.
        fingerprint: Hash of all noise parameters, so that participants notice if they computed
            different ones.
        statement: Hash of the privacy facts that the server will sign; empty in a simulation.
    """

    TAG: ClassVar[str] = "RunPlan"

    n_local_clusters: IntArray = _array("<i8")
    released: IntArray = _array("<i8")
    fingerprint: str
    statement: str


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class PublishedResult(_Quiet):
    """The weighted grid of combined local centres, and the segments found on it.

    Attributes:
        fingerprint: Of the plan that was run.
        local_centres: The parties' released centres one after another, in grid integers, flat.
        labels: The local cluster of each node at each party, shape (nodes, S).
        weights: Estimated users of each node, shape (nodes,).
        nodes: Where the nodes are, as codes (`result/node_codes.py`), shape (nodes, all columns);
            none where every node is at its local centres.
        centres: The segments in distance units, shape (k, all features), the largest first. Only
            segments with users: fewer than the study asks for, or none, where no more were found.
        sizes: Their estimated users, shape (k,).
        published_at: Date and time in UTC.
        signature: The server's, over what `signed_result` says; empty in a simulation.
        presence: Where presence is counted, how many users are at which parties of each group of
            the plan (`synopsis/presence_counts.py`); else empty.
    """

    TAG: ClassVar[str] = "PublishedResult"

    fingerprint: str
    local_centres: IntArray = _array("<i8")
    labels: npt.NDArray[np.uint8] = _array("|u1")
    weights: npt.NDArray[np.float64] = _array("<f8")
    nodes: npt.NDArray[np.int32] = _array("<i4")
    centres: npt.NDArray[np.float64] = _array("<f8")
    sizes: npt.NDArray[np.float64] = _array("<f8")
    published_at: str
    signature: bytes
    presence: IntArray = _optional_array("<i8")


Message: TypeAlias = (
    Hello
    | KeyContribution
    | Confirmation
    | PlanConfirmation
    | Ready
    | StageRelease
    | PartyRelease
    | RunPlan
    | PublishedResult
)


def kind_of(message: Message) -> str:
    """Return what a slot calls a message: its tag, and the number of its stage if it has one."""
    kind = type(message)
    if isinstance(message, StageRelease | PlanConfirmation):
        return staged(kind, message.stage)
    return tag_of(kind)


def staged(kind: type[Message], stage: int) -> str:
    """Return what a slot calls a message of a stage."""
    return staged_kind(tag_of(kind), stage)


def kinds_of(types: Iterable[type[Message]]) -> tuple[str, ...]:
    """Return everything that slots can call messages of some types."""
    return kinds_with(map(tag_of, types))


ALL_KINDS = kinds_of(typing.get_args(Message))
