"""Section 3 of `theory/Definitions.v` once more in Python, to run beside encoder and server.

Slow and plain on purpose. Names are those of the Coq file.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

# A tag, and a cell or a label.
Record: TypeAlias = tuple[int, int]
# Tags and labels as sent.
Message: TypeAlias = tuple[list[int], list[int]]


@dataclass(frozen=True, kw_only=True)
class Release:
    """One table of cells: `labels[p][c]` is the label of party p in cell c, None if absent."""

    parties: tuple[int, ...]
    labels: tuple[tuple[int | None, ...], ...]

    @property
    def cells(self) -> int:
        """How many cells exist."""
        return len(self.labels[0])


def drawn(weights: Sequence[int], word: int) -> int:
    """Return the value that a word out of `sum(weights)` words stands for."""
    value, below = 0, weights[0]
    while word >= below:
        value += 1
        below += weights[value]
    return value


def decoys(counts: Sequence[int]) -> list[int]:
    """Return the cells of all decoys: every cell as often as its count says."""
    return [cell for cell, count in enumerate(counts) for _ in range(count)]


def insert(record: Record, records: list[Record]) -> list[Record]:
    """Put a record before the first that it is not after, by tag and then by label."""
    for place, other in enumerate(records):
        if record[0] < other[0] or (record[0] == other[0] and record[1] <= other[1]):
            return [*records[:place], record, *records[place:]]
    return [*records, record]


def sort(records: Sequence[Record]) -> list[Record]:
    """Return the records by tag, equal tags by label."""
    ordered: list[Record] = []
    for record in reversed(records):
        ordered = insert(record, ordered)
    return ordered


def held(release: Release, axis: int, records: Sequence[Record]) -> list[Record]:
    """Return a party's own labels of the records whose cells it is in."""
    own = [(tag, release.labels[axis][cell]) for tag, cell in records]
    return [(tag, label) for tag, label in own if label is not None]


def message(release: Release, axis: int, records: Sequence[Record]) -> Message:
    """Return what a party sends."""
    mine = sort(held(release, axis, records))
    return [tag for tag, _ in mine], [label for _, label in mine]


def messages(release: Release, records: Sequence[Record]) -> list[Message]:
    """Return what all parties of the release send."""
    return [message(release, axis, records) for axis in range(len(release.parties))]


def counted(release: Release, records: Sequence[Record]) -> list[int]:
    """Return the number of records of every cell: H + D."""
    found = [cell for _, cell in records]
    return [found.count(cell) for cell in range(release.cells)]
