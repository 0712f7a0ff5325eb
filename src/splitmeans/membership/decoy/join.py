"""Join the parties' records on their tags and count cells, a piece of the tags at a time.

Records are in the order of their tags, so a range of tags is a piece of every party's list, and
the counts of all pieces add up to those of the whole. Memory holds one piece; the lists themselves
may lie on disk (`wire/on_disk.py`). Where user sets are equal there are no tags: a piece is a range
of positions.

A piece ends before the first record that one of the parties has too many of. So no piece has more
than its share, whatever tags a party sends.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from splitmeans._types import IntArray, WordArray
from splitmeans.errors import ProtocolError
from splitmeans.kernels.counts import ascending, count_in_order, count_joined
from splitmeans.kernels.packing import ByteArray
from splitmeans.membership.decoy.layout import (
    Group,
    cell_shape,
    check_groups,
    packed_size,
    unpack_part,
)
from splitmeans.wire.messages import DecoyMessage

# Records of a party in a piece: 17 bytes each and a copy, for each party of the group.
PIECE_RECORDS = 2**18

# From which record of each party to which.
_Piece = list[tuple[int, int]]


def join_counts(
    messages: Sequence[DecoyMessage],
    *,
    groups: Sequence[Group],
    n_local_clusters: tuple[int, ...],
    equal_sets: bool,
    presence: bool = False,
    piece_records: int = PIECE_RECORDS,
) -> dict[Group, IntArray]:
    """Return the records H + D in every cell of every group, "absent" labels included.

    Not for publication: parties know D.

    Args:
        messages: What each party sent.
        groups: The parties that share records, as positions.
        n_local_clusters: k' of every party.
        equal_sets: Whether records have no tags, and the same position at every party.
        presence: Whether the group of all parties is a presence table.
        piece_records: Most records of a party that are joined at a time.

    Raises:
        ProtocolError: If a message is not one that a party following the protocol can send.
    """
    chosen = check_groups(groups, n_local_clusters=n_local_clusters)
    if len(messages) != len(n_local_clusters):
        raise ProtocolError(f"expected {len(n_local_clusters)} messages, got {len(messages)}")
    widths = {
        group: (1,) * len(group) if presence and len(group) == len(messages) else n_local_clusters
        for group in chosen
    }
    lengths = [
        _check_sizes(
            message,
            party,
            widths={group: widths[group][party] for group in chosen if party in group},
            equal_sets=equal_sets,
        )
        for party, message in enumerate(messages)
    ]
    if equal_sets:
        _check_equal_lengths(chosen, lengths)
    records = [
        _records(
            message,
            party=party,
            lengths=lengths[party],
            widths={group: widths[group][party] for group in lengths[party]},
            equal_sets=equal_sets,
        )
        for party, message in enumerate(messages)
    ]
    tables: dict[Group, IntArray] = {}
    for group in chosen:
        shape = cell_shape(group, n_local_clusters=widths[group], equal_sets=equal_sets)
        tables[group] = np.zeros(shape, dtype=np.int64)
        lists = [records[party][group] for party in group]
        for piece in _pieces(lists, equal_sets=equal_sets, most=piece_records):
            labels = [own.labels(*span) for own, span in zip(lists, piece, strict=True)]
            if equal_sets:
                count_in_order(labels, shape=shape, counts=tables[group])
                continue
            tags = [own.tags[slice(*span)] for own, span in zip(lists, piece, strict=True)]
            count_joined(tags, labels, shape=shape, counts=tables[group])
    return tables


@dataclass(frozen=True, kw_only=True, eq=False)
class _Records:
    """The records of one party in one group, where they lie in its message."""

    party: int
    tags: WordArray
    packed: ByteArray
    n_clusters: int
    length: int

    def labels(self, start: int, end: int) -> ByteArray:
        try:
            return unpack_part(
                self.packed, start, end, n_labels=self.length, n_clusters=self.n_clusters
            )
        except ProtocolError as problem:
            raise ProtocolError(f"records of party {self.party}: {problem}") from problem

    def check_order(self, start: int, end: int) -> None:
        """Refuse tags that do not ascend, from the one before the piece to the one after it."""
        if not ascending(self.tags[max(0, start - 1) : end + 1]):
            raise ProtocolError(f"tags of party {self.party} must ascend and not repeat")


def _pieces(lists: Sequence[_Records], *, equal_sets: bool, most: int) -> Iterator[_Piece]:
    """Yield pieces that cover all records, each with at most `most` of every party."""
    starts = [0] * len(lists)
    while any(start < own.length for start, own in zip(starts, lists, strict=True)):
        ends = [min(start + most, own.length) for start, own in zip(starts, lists, strict=True)]
        if not equal_sets:
            ends = _cut(lists, starts, ends)
        yield list(zip(starts, ends, strict=True))
        starts = ends


def _cut(lists: Sequence[_Records], starts: list[int], ends: list[int]) -> list[int]:
    """Return where the piece ends at each party: before the first tag that is beyond one's end.

    The party whose tag that is keeps its end, so every piece has records.
    """
    for own, start, end in zip(lists, starts, ends, strict=True):
        own.check_order(start, end)
    beyond = [
        tuple(own.tags[end].tolist())
        for own, end in zip(lists, ends, strict=True)
        if end < own.length
    ]
    if not beyond:
        return ends
    return [
        start + _below(own.tags[start:end], min(beyond))
        for own, start, end in zip(lists, starts, ends, strict=True)
    ]


def _below(tags: WordArray, tag: tuple[int, ...]) -> int:
    """Return how many of ascending tags are below this one."""
    first, second = (np.uint64(word) for word in tag)
    words = np.ascontiguousarray(tags[:, 0])
    low, high = (int(np.searchsorted(words, first, side=side)) for side in ("left", "right"))
    rest = np.ascontiguousarray(tags[low:high, 1])
    return low + int(np.searchsorted(rest, second, side="left"))


def _records(
    message: DecoyMessage,
    *,
    party: int,
    lengths: Mapping[Group, int],
    widths: Mapping[Group, int],
    equal_sets: bool,
) -> dict[Group, _Records]:
    """Return where the records of each group of a party are."""
    records: dict[Group, _Records] = {}
    first_tag = first_byte = 0
    for group, length in lengths.items():
        size = packed_size(length, n_clusters=widths[group])
        n_tags = 0 if equal_sets else length
        records[group] = _Records(
            party=party,
            tags=message.tags[first_tag : first_tag + n_tags],
            packed=message.labels[first_byte : first_byte + size],
            n_clusters=widths[group],
            length=length,
        )
        first_tag += n_tags
        first_byte += size
    return records


def _check_equal_lengths(groups: Sequence[Group], lengths: Sequence[Mapping[Group, int]]) -> None:
    for group in groups:
        found = [lengths[party][group] for party in group]
        if len(set(found)) > 1:
            raise ProtocolError(
                f"parties of group {group!r} must send equally many records when user sets are "
                f"equal, got {found}"
            )


def _check_sizes(
    message: DecoyMessage,
    party: int,
    *,
    widths: Mapping[Group, int],
    equal_sets: bool,
) -> dict[Group, int]:
    """Return how many records each group of a party has; tags and labels have just that size."""
    lengths, tags, labels = message.lengths, message.tags, message.labels
    if lengths.dtype != np.int64 or lengths.shape != (len(widths),) or (lengths < 0).any():
        raise ProtocolError(f"party {party} must send {len(widths)} lengths that are not negative")
    sizes = [int(length) for length in lengths]  # Python numbers: the sum cannot overflow
    n_tags = 0 if equal_sets else sum(sizes)
    if tags.dtype != np.uint64 or tags.shape != (n_tags, 2):
        raise ProtocolError(f"party {party} must send {n_tags} tags of 128 bits")
    n_bytes = sum(
        packed_size(length, n_clusters=width)
        for length, width in zip(sizes, widths.values(), strict=True)
    )
    if labels.dtype != np.uint8 or labels.shape != (n_bytes,):
        raise ProtocolError(f"party {party} must send {n_bytes} bytes of packed labels")
    return dict(zip(widths, sizes, strict=True))
