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
from typing import TypeVar

import numpy as np

from splitmeans._types import IntArray, LabelArray
from splitmeans.table.options import Progress
from splitmeans.table.walk.interface import Records, UserBlock
from splitmeans.table.walk.memory import added_up
from splitmeans.table.walk.runs import bucket_bits, read_bucket, write_run
from splitmeans.table.walk.spool import StoredBlock
from splitmeans.table.walk.spool_folder import SpoolFolder
from splitmeans.table.walk.workers import Workers

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class _Walk:
    """How the blocks of a table are walked."""

    workers: Workers
    progress: Progress
    labellings: "count[int]"

    def over(
        self, blocks: list[StoredBlock], task: Callable[[StoredBlock], T], *, stage: str
    ) -> Iterator[T]:
        total = sum(block.n_rows for block in blocks)
        for block, result in zip(blocks, self.workers.map(task, blocks), strict=True):
            self.progress(stage, rows=block.n_rows, of=total)
            yield result

    def relabelled(self, blocks: list[StoredBlock]) -> list[StoredBlock]:
        """Return the blocks with the name of labels that are still to be stored."""
        name = f"labels-{next(self.labellings)}"
        return [replace(block, labelling=name) for block in blocks]


class _Blocks:
    def __init__(self, blocks: list[StoredBlock], walk: _Walk) -> None:
        """Take the blocks of a table."""
        self._blocks, self._walk = blocks, walk

    def __len__(self) -> int:
        return sum(block.n_rows for block in self._blocks)


class StoredRows(_Blocks):
    """Rows on disk."""

    def total(self, part: Callable[[IntArray], IntArray]) -> IntArray:
        """Return the sum of `part` over all blocks."""
        return added_up(
            self._walk.over(self._blocks, partial(_part_of, part=part), stage="cluster")
        )

    def gather(self) -> IntArray:
        """Read all rows into memory, for algorithms that cannot do with less."""
        rows = [block.rows() for block in self._blocks]
        return np.concatenate(rows, dtype=np.int64)


class StoredUsers(_Blocks):
    """Users on disk."""

    def each(self, task: Callable[[UserBlock], T]) -> Iterator[T]:
        """Yield `task` of every block, in row order."""
        yield from self._walk.over(self._blocks, partial(_users_of, task=task), stage="encode")

    def relabelled(self, change: Callable[[LabelArray], LabelArray]) -> "StoredUsers":
        """Return the users with changed labels."""
        blocks = self._walk.relabelled(self._blocks)
        for before, after in zip(self._blocks, blocks, strict=True):
            after.write_labels(change(before.labels()))
        return StoredUsers(blocks, self._walk)

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


class StoredTable(_Blocks):
    """A table of a party that is walked on disk; close it, or use it in a `with` block."""

    def __init__(
        self,
        party: str,
        blocks: list[StoredBlock],
        *,
        names: Mapping[str, Sequence[str]],
        spool: SpoolFolder,
        workers: Workers,
        progress: Progress,
    ) -> None:
        """Take blocks that are stored already; see `blocks.store_table`."""
        super().__init__(blocks, _Walk(workers=workers, progress=progress, labellings=count(1)))
        self.party, self.names, self._spool = party, names, spool

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
    def rows(self) -> StoredRows:
        """The rows on the grid."""
        return StoredRows(self._blocks, self._walk)

    @property
    def users(self) -> StoredUsers:
        """The users, all with label 0."""
        return StoredUsers(self._blocks, self._walk)

    def labelled(self, label: Callable[[IntArray], LabelArray]) -> StoredUsers:
        """Return the users with the labels of their rows."""
        blocks = self._walk.relabelled(self._blocks)
        for _ in self._walk.over(blocks, partial(_store_labels, label=label), stage="label"):
            pass
        return StoredUsers(blocks, self._walk)


# ---- what workers do ----


def _part_of(block: StoredBlock, *, part: Callable[[IntArray], IntArray]) -> IntArray:
    return added_up(block.each_part(part))


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
) -> Path:
    return write_run(folder / block.name, records_of(block.users()), bits=bits)


def _bucket_of(bucket: int, *, runs: list[Path], bits: int, finish: Callable[[Records], T]) -> T:
    return finish(read_bucket(runs, bucket, bits=bits))
