"""What a walked table offers: exact sums over rows, results by block, records in tag order.

Algorithms say what to do with one block of rows or users; the table decides where its blocks are,
in what order they are worked on and by how many workers. None of that can show in a result: sums
are of integers, maxima are maxima, and records are put in the order of their tags. So every engine
gives the same bits.

Functions that are handed over are module-level ones (or `functools.partial` of them), because
workers may be other processes.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy.typing as npt
import pyarrow as pa

from splitmeans._types import IntArray, LabelArray, WordArray

T = TypeVar("T")

# Tags, and what goes with each, both of shape (n,).
Records: TypeAlias = tuple[WordArray, npt.NDArray[Any]]


class RawRows(Protocol):
    """A party's rows on the grid, n of them with d columns."""

    def __len__(self) -> int: ...

    def total(self, part: Callable[[IntArray], IntArray]) -> IntArray:
        """Return the sum of `part(block)` over all blocks of rows, each of shape (b, d), int64.

        Functions that are marked as taking rows in 32 bits (`kernels/widths.py`) may get those.
        """
        ...

    def gather(self) -> IntArray:
        """Return all rows at once, for algorithms that cannot do with less."""
        ...


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class UserBlock:
    """Some consecutive users of a party.

    Ids are canonical; labels, shape (b,), are all 0 where none are known.
    """

    start: int
    ids: pa.LargeStringArray
    labels: LabelArray


class Users(Protocol):
    """A party's users with their labels."""

    def __len__(self) -> int: ...

    def each(self, task: Callable[[UserBlock], T]) -> Iterator[T]:
        """Yield `task(block)` for all blocks, in row order."""
        ...

    def relabelled(self, change: Callable[[LabelArray], LabelArray]) -> "Users":
        """Return the users with changed labels; `change` is called in row order, here."""
        ...

    def in_tag_order(
        self,
        records_of: Callable[[UserBlock], Records],
        *,
        finish: Callable[[Records], T],
        extra: Records | None = None,
    ) -> Iterator[T]:
        """Sort the records of all blocks, and `extra` ones, by their tags.

        Yields `finish(piece)` for consecutive pieces of the sorted list, in ascending order. Tags
        must be pseudorandom; equal ones are in the same piece, in the order of their values.
        """
        ...


class Table(Protocol):
    """What a party holds during a run."""

    @property
    def party(self) -> str:
        """The party's name."""
        ...

    @property
    def names(self) -> Mapping[str, Sequence[str]]:
        """The categories in columns of which the run learns them, by column."""
        ...

    @property
    def rows(self) -> RawRows:
        """The rows on the grid."""
        ...

    @property
    def users(self) -> Users:
        """The users, without labels."""
        ...

    def __len__(self) -> int: ...

    def labelled(self, label: Callable[[IntArray], LabelArray]) -> Users:
        """Return the users with labels, `label(block)` of each block of rows."""
        ...
