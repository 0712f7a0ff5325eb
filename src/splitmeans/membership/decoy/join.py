"""Join the parties' records on their tags and count cells, a range of tags at a time.

Records are in the order of their tags, so a range of tags is a piece of every party's list, and
the counts of all pieces add up to those of the whole. Memory holds one piece; the lists themselves
may lie on disk (`wire/on_disk.py`).

Whatever parties send, each tag adds at most one, to one cell: a tag that a party has more than once
is not counted, at any party. So what a party changes about one tag of its own moves two cells of a
table at most, which is what the noise added before publication is for.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from splitmeans._types import IntArray
from splitmeans.errors import ProtocolError
from splitmeans.kernels.counts import count_joined
from splitmeans.kernels.packing import ByteArray
from splitmeans.membership.decoy.layout import (
    Group,
    cell_shape,
    check_groups,
    packed_size,
    unpack_part,
)
from splitmeans.membership.decoy.tag_lists import LowArray, bitmap_size, tag_pieces
from splitmeans.wire.messages import DecoyMessage

# Most records of a party in a piece: 9 bytes each and a copy, for each party of the group. Tags
# are uniform, so a piece that should have half as many never has more.
PIECE_RECORDS = 2**18


def join_counts(
    messages: Sequence[DecoyMessage],
    *,
    groups: Sequence[Group],
    n_local_clusters: tuple[int, ...],
    high_bits: int,
    presence: bool = False,
    piece_records: int = PIECE_RECORDS,
) -> dict[Group, IntArray]:
    """Return the records H + D in every cell of every group, "absent" labels included.

    Not for publication: parties know D.

    Args:
        messages: What each party sent.
        groups: The parties that share records, as positions.
        n_local_clusters: k' of every party.
        high_bits: How long tags are (`tag_lists.py`).
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
    records = [
        _records(
            message,
            party,
            widths={group: widths[group][party] for group in chosen if party in group},
            high_bits=high_bits,
        )
        for party, message in enumerate(messages)
    ]
    tables: dict[Group, IntArray] = {}
    for group in chosen:
        lists = [records[party][group] for party in group]
        longest = max(len(own.lows) for own in lists)
        pieces = 1
        while longest > pieces * piece_records // 2 and pieces < 2**high_bits:
            pieces *= 2
        tables[group] = np.zeros(cell_shape(group, n_local_clusters=widths[group]), dtype=np.int64)
        read = (own.pieces(pieces, most=piece_records) for own in lists)
        for piece in zip(*read, strict=True):
            count_joined(
                [tags for tags, _ in piece],
                [labels for _, labels in piece],
                shape=tables[group].shape,
                counts=tables[group],
            )
    return tables


@dataclass(frozen=True, kw_only=True, eq=False)
class _Records:
    """The records of one party in one group, where they lie in its message."""

    party: int
    lows: LowArray
    bitmap: ByteArray
    packed: ByteArray
    n_clusters: int
    high_bits: int

    def pieces(self, n_pieces: int, *, most: int) -> Iterator[tuple[np.ndarray, ByteArray]]:
        """Yield tags and labels of equal ranges of tags."""
        start = 0
        try:
            for tags in tag_pieces(
                self.lows, self.bitmap, high_bits=self.high_bits, n_pieces=n_pieces, most=most
            ):
                end = start + len(tags)
                yield (
                    tags,
                    unpack_part(
                        self.packed, start, end, n_labels=len(self.lows), n_clusters=self.n_clusters
                    ),
                )
                start = end
        except ProtocolError as problem:
            raise ProtocolError(f"records of party {self.party}: {problem}") from problem


def _records(
    message: DecoyMessage, party: int, *, widths: Mapping[Group, int], high_bits: int
) -> dict[Group, _Records]:
    """Return where the records of each group of a party are; the message has just these."""
    lengths = message.lengths
    if lengths.dtype != np.int64 or lengths.shape != (len(widths),) or (lengths < 0).any():
        raise ProtocolError(f"party {party} must send {len(widths)} lengths that are not negative")
    records: dict[Group, _Records] = {}
    tag = mark = label = 0  # where each group begins
    for length, (group, width) in zip(lengths.tolist(), widths.items(), strict=True):
        # Python numbers: no sum can overflow.
        next_tag = tag + length
        next_mark = mark + bitmap_size(length, high_bits=high_bits)
        next_label = label + packed_size(length, n_clusters=width)
        records[group] = _Records(
            party=party,
            lows=message.lows[tag:next_tag],
            bitmap=message.bitmaps[mark:next_mark],
            packed=message.labels[label:next_label],
            n_clusters=width,
            high_bits=high_bits,
        )
        tag, mark, label = next_tag, next_mark, next_label
    for name, array, dtype, size in (
        ("low bits of tags", message.lows, np.uint16, tag),
        ("bytes of bitmaps", message.bitmaps, np.uint8, mark),
        ("bytes of packed labels", message.labels, np.uint8, label),
    ):
        if array.dtype != dtype or array.shape != (size,):
            raise ProtocolError(f"party {party} must send {size} {name}")
    return records
