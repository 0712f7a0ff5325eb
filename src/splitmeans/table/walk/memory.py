"""A table in memory, walked by threads.

Kernels release the interpreter's lock, so threads share the work on one copy of the data.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import reduce
from typing import TypeVar

import numpy as np
import pyarrow as pa

from splitmeans._types import HalfWidthArray, IntArray, LabelArray
from splitmeans.errors import ParameterError
from splitmeans.kernels.counts import sort_records
from splitmeans.kernels.row_numbers import RowNumbers
from splitmeans.kernels.widths import blocks_for
from splitmeans.table.walk.interface import RawRows, Records, UserBlock

T = TypeVar("T")

# Starting a thread costs about as much as this many rows.
_ROWS_A_THREAD = 50_000


@dataclass(frozen=True, eq=False, repr=False)
class MemoryRows:
    """Rows in one array, shape (n, d), on the grid, in 32 or 64 bits."""

    raw_rows: IntArray | HalfWidthArray

    def __post_init__(self) -> None:
        if self.raw_rows.ndim != 2 or self.raw_rows.dtype not in (np.int32, np.int64):
            raise ParameterError(
                f"rows must be int64 (or int32) of shape (n, d), got {self.raw_rows.dtype} of "
                f"shape {self.raw_rows.shape}"
            )

    def __len__(self) -> int:
        return len(self.raw_rows)

    def total(self, part: Callable[[IntArray], IntArray]) -> IntArray:
        """Return the sum of `part` over blocks of rows, one block a thread."""

        def total(start: int, end: int) -> IntArray:
            return added_up(part(block) for block in blocks_for(part, self.raw_rows[start:end]))

        return added_up(_threaded(total, len(self)))

    def gather(self) -> IntArray:
        """Return all rows."""
        return np.asarray(self.raw_rows, dtype=np.int64)

    def label(self, label: Callable[[IntArray], LabelArray]) -> LabelArray:
        """Return `label` of all rows, shape (n,)."""
        labels = np.empty(len(self), dtype=np.int32)

        def fill(start: int, end: int) -> None:
            at = start
            for block in blocks_for(label, self.raw_rows[start:end]):
                labels[at : at + len(block)] = label(block)
                at += len(block)

        _threaded(fill, len(self))
        return labels


def added_up(totals: Iterable[IntArray]) -> IntArray:
    """Return the sum of one array or more."""
    return reduce(np.add, totals)


def as_rows(raw_rows: "IntArray | RawRows") -> RawRows:
    """Return rows that can be walked; an array is taken as rows in memory."""
    return MemoryRows(raw_rows) if isinstance(raw_rows, np.ndarray) else raw_rows


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class MemoryUsers:
    """Users in memory: canonical ids, an Arrow string array, and labels, shape (n,).

    In a simulation ids may be row numbers.
    """

    ids: pa.Array | RowNumbers
    labels: LabelArray

    def __post_init__(self) -> None:
        if self.labels.dtype != np.int32 or self.labels.shape != (len(self.ids),):
            raise ParameterError(
                f"labels must be 32-bit integers of shape ({len(self.ids)},), one for each user, "
                f"got {self.labels.dtype} {self.labels.shape}"
            )

    def __len__(self) -> int:
        return len(self.ids)

    def each(self, task: Callable[[UserBlock], T]) -> Iterator[T]:
        """Yield `task` of one block a thread, in row order."""
        yield from _threaded(lambda start, end: task(self._block(start, end)), len(self))

    def relabelled(self, change: Callable[[LabelArray], LabelArray]) -> "MemoryUsers":
        """Return the users with changed labels."""
        return MemoryUsers(ids=self.ids, labels=change(self.labels))

    def in_tag_order(
        self,
        records_of: Callable[[UserBlock], Records],
        *,
        finish: Callable[[Records], T],
        extra: Records | None = None,
    ) -> Iterator[T]:
        """Yield `finish` of all records, sorted, as one piece."""
        parts = list(self.each(records_of))
        yield finish(sort_records(parts if extra is None else [*parts, extra]))

    def _block(self, start: int, end: int) -> UserBlock:
        return UserBlock(
            start=start, ids=self.ids.slice(start, end - start), labels=self.labels[start:end]
        )


def _threaded(task: Callable[[int, int], T], n: int) -> list[T]:
    """Return `task(start, end)` of equal ranges that cover 0 to n, one a thread."""
    workers = max(1, min(os.cpu_count() or 1, n // _ROWS_A_THREAD))
    edges = [n * worker // workers for worker in range(workers + 1)]
    if workers == 1:
        return [task(0, n)]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(task, edges[:-1], edges[1:]))
