"""A party's table in blocks on disk, walked by worker processes.

Memory holds one block a worker and the message that is being made, however long the table is;
results are those of the table in memory.
"""

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Protocol, TypeVar

import numpy as np

from splitmeans._types import IntArray, LabelArray, WordArray
from splitmeans.table.walk.interface import Records, UserBlock
from splitmeans.table.walk.runs import Run, bucket_bits, read_bucket, write_run
from splitmeans.table.walk.spool import StoredBlock
from splitmeans.table.walk.spool_folder import SpoolFolder
from splitmeans.table.walk.words import SortedWords, range_differs, write_words
from splitmeans.table.walk.workers import Workers

T = TypeVar("T")


class Progress(Protocol):
    """Told what is being done and how far it is."""

    def __call__(self, stage: str, *, rows: int, of: int | None) -> None:
        """`rows` more of `of` rows (None: nobody knows how many) are done in this stage."""
        ...


def silent(stage: str, *, rows: int, of: int | None) -> None:
    """Show nothing."""


class StoredTable:
    """A table of a party that is walked on disk; close it, or use it in a `with` block."""

    def __init__(
        self,
        party: str,
        blocks: list[StoredBlock],
        *,
        spool: SpoolFolder,
        workers: Workers,
        progress: Progress,
        names: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """Take blocks that are stored already; see `blocks.open_blocks`."""
        self.party = party
        self.names = names or {}
        self._blocks = blocks
        self._spool = spool
        self._walk = _Walk(workers=workers, progress=progress, labellings=count(1))

    def __len__(self) -> int:
        return sum(block.n_rows for block in self._blocks)

    def __repr__(self) -> str:
        return f"<StoredTable party={self.party!r} rows={len(self)} blocks={len(self._blocks)}>"

    def __enter__(self) -> "StoredTable":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the workers and remove the stored blocks."""
        self._walk.workers.close()
        self._spool.close()

    @property
    def rows(self) -> "StoredRows":
        """The rows on the grid."""
        return StoredRows(self._blocks, walk=self._walk)

    @property
    def users(self) -> "StoredUsers":
        """The users, all with label 0."""
        return StoredUsers(self._blocks, walk=self._walk)

    def labelled(self, label: Callable[[IntArray], LabelArray]) -> "StoredUsers":
        """Return the users with the labels of their rows."""
        name = self._walk.new_labelling()
        blocks = [replace(block, labelling=name) for block in self._blocks]
        for _ in self._walk.over(blocks, partial(_store_labels, label=label), stage="label"):
            pass
        return StoredUsers(blocks, walk=self._walk)


@dataclass(frozen=True, kw_only=True)
class _Walk:
    """How the blocks of a table are walked."""

    workers: Workers
    progress: Progress
    labellings: "count[int]"

    def new_labelling(self) -> str:
        return f"labels-{next(self.labellings)}"

    def over(
        self, blocks: list[StoredBlock], task: Callable[[StoredBlock], T], *, stage: str
    ) -> Iterator[T]:
        total = sum(block.n_rows for block in blocks)
        for block, result in zip(blocks, self.workers.map(task, blocks), strict=True):
            self.progress(stage, rows=block.n_rows, of=total)
            yield result


class StoredRows:
    """Rows on disk."""

    def __init__(self, blocks: list[StoredBlock], *, walk: _Walk) -> None:
        """Take the blocks of a table."""
        self._blocks, self._walk = blocks, walk

    def __len__(self) -> int:
        return sum(block.n_rows for block in self._blocks)

    def total(self, part: Callable[[IntArray], IntArray]) -> IntArray:
        """Return the sum of `part` over all blocks."""
        parts = self._walk.over(self._blocks, partial(_part_of, part=part), stage="cluster")
        result = next(parts)
        for other in parts:
            result = result + other
        return result

    def gather(self) -> IntArray:
        """Read all rows into memory, for algorithms that cannot do with less."""
        return np.concatenate([block.rows() for block in self._blocks])


class StoredUsers:
    """Users on disk."""

    def __init__(self, blocks: list[StoredBlock], *, walk: _Walk) -> None:
        """Take the blocks of a table."""
        self._blocks, self._walk = blocks, walk

    def __len__(self) -> int:
        return sum(block.n_rows for block in self._blocks)

    def each(self, task: Callable[[UserBlock], T]) -> Iterator[T]:
        """Yield `task` of every block, in row order."""
        yield from self._walk.over(self._blocks, partial(_users_of, task=task), stage="encode")

    def relabelled(self, change: Callable[[LabelArray], LabelArray]) -> "StoredUsers":
        """Return the users with changed labels."""
        name = self._walk.new_labelling()
        blocks = [replace(block, labelling=name) for block in self._blocks]
        for before, after in zip(self._blocks, blocks, strict=True):
            after.write_labels(change(before.labels()))
        return StoredUsers(blocks, walk=self._walk)

    def all_differ(self, words_of: Callable[[UserBlock], WordArray]) -> bool:
        """Return whether no two users have the same word."""
        bits = bucket_bits(len(self))
        with tempfile.TemporaryDirectory(dir=self._blocks[0].folder) as name:
            make = partial(_words_of, words_of=words_of, folder=Path(name), bits=bits)
            lists = list(self._walk.over(self._blocks, make, stage="compare"))
            task = partial(range_differs, lists)
            return all(list(self._walk.workers.map(task, range(2**bits))))

    def in_tag_order(
        self,
        records_of: Callable[[UserBlock], Records],
        *,
        finish: Callable[[Records], T],
        extra: Records | None = None,
    ) -> Iterator[T]:
        """Yield `finish` of the sorted records, bucket by bucket."""
        bits = bucket_bits(len(self) + (0 if extra is None else len(extra[0])))
        with tempfile.TemporaryDirectory(dir=self._blocks[0].folder) as name:
            folder = Path(name)
            make = partial(_run_of, records_of=records_of, folder=folder, bits=bits)
            runs = list(self._walk.over(self._blocks, make, stage="sort"))
            if extra is not None:
                runs.append(write_run(folder / "extra", extra, bits=bits))
            task = partial(_bucket_of, runs=runs, bits=bits, finish=finish)
            yield from self._walk.workers.map(task, range(2**bits))


# ---- what workers do ----


def _part_of(block: StoredBlock, *, part: Callable[[IntArray], IntArray]) -> IntArray:
    parts = block.each_part(part)
    return np.asarray(sum(parts[1:], start=parts[0]))


def _users_of(block: StoredBlock, *, task: Callable[[UserBlock], T]) -> T:
    return task(block.users())


def _store_labels(block: StoredBlock, *, label: Callable[[IntArray], LabelArray]) -> None:
    block.write_labels(np.concatenate(block.each_part(label)))


def _run_of(
    block: StoredBlock,
    *,
    records_of: Callable[[UserBlock], Records],
    folder: Path,
    bits: int,
) -> Run:
    return write_run(folder / block.name, records_of(block.users()), bits=bits)


def _words_of(
    block: StoredBlock,
    *,
    words_of: Callable[[UserBlock], WordArray],
    folder: Path,
    bits: int,
) -> SortedWords:
    return write_words(folder / block.name, words_of(block.users()), bits=bits)


def _bucket_of(bucket: int, *, runs: list[Run], bits: int, finish: Callable[[Records], T]) -> T:
    return finish(read_bucket(runs, bucket, bits=bits))
