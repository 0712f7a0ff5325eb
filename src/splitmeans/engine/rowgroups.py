"""A party's table in a parquet file, walked in row groups by worker processes.

Opening it reads the file once: row groups are checked and quantised by the workers and stored as
blocks (`spool.py`). Everything later walks the blocks. Memory holds one block a worker and the
message that is being made, however long the table is; results are those of the table in memory.
"""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Protocol, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from splitmeans._types import IntArray, LabelArray
from splitmeans.engine.runs import Run, bucket_bits, read_bucket, write_run
from splitmeans.engine.spool import StoredBlock
from splitmeans.engine.walk import Records, UserBlock
from splitmeans.engine.workers import Workers
from splitmeans.errors import DataError
from splitmeans.kernels.warm_up import warm_up
from splitmeans.party.ids import canonical_text, check_unique
from splitmeans.party.table import grid_rows
from splitmeans.study import PartySpec

T = TypeVar("T")

# Rows of a block: a few dozen megabytes with a dozen columns, and enough for a worker to be busy.
BLOCK_ROWS = 2**18


class Progress(Protocol):
    """Told what is being done and how far it is."""

    def __call__(self, stage: str, *, rows: int, of: int) -> None:
        """`rows` more of `of` rows are done in this stage."""
        ...


def _silent(stage: str, *, rows: int, of: int) -> None:
    pass


class RowGroupTable:
    """A table of a party that is walked on disk; close it, or use it in a `with` block."""

    def __init__(
        self, party: str, blocks: list[StoredBlock], *, workers: Workers, progress: Progress
    ) -> None:
        """Take blocks that are stored already; see `open_parquet`."""
        self.party = party
        self._blocks = blocks
        self._walk = _Walk(workers=workers, progress=progress, labellings=count(1))

    def __len__(self) -> int:
        return sum(block.n_rows for block in self._blocks)

    def __repr__(self) -> str:
        return f"<RowGroupTable party={self.party!r} rows={len(self)} blocks={len(self._blocks)}>"

    def __enter__(self) -> "RowGroupTable":
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
        shutil.rmtree(self._blocks[0].folder, ignore_errors=True)

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


def open_parquet(
    party: PartySpec,
    path: str | Path,
    *,
    workers: int | None = None,
    spool: str | Path | None = None,
    progress: Progress = _silent,
) -> RowGroupTable:
    """Check a parquet file against the study and return it as a table that is walked on disk.

    Args:
        party: The party's columns, bounds, and id column, which the file must have.
        path: The parquet file.
        workers: Number of processes; None takes one for each processor, 1 this process alone.
        spool: Folder for the blocks, about 4 bytes a value and twice the ids' size; None takes the
            system's folder for temporary files. It must not be kept in memory.
        progress: Called after every block.

    Raises:
        DataError: If the file cannot be read or breaks a rule of the study.
    """
    spans = _row_group_spans(party, Path(path))
    try:
        folder = Path(tempfile.mkdtemp(prefix="splitmeans-", dir=spool))
    except OSError as problem:
        raise DataError(f"spool folder {spool}: cannot be used ({problem.strerror})") from problem
    # Here and once: each worker would compile the kernels for itself.
    warm_up()
    pool = Workers(workers)
    try:
        total = sum(span.n_rows for span in spans)
        store = partial(_store_span, party=party, path=Path(path), folder=folder)
        blocks: list[StoredBlock] = []
        for span, stored in zip(spans, pool.map(store, spans), strict=True):
            progress("read", rows=span.n_rows, of=total)
            blocks += stored
        if not blocks:
            raise DataError(f"{path}: the table must have at least one row, got none")
        table = RowGroupTable(party.name, blocks, workers=pool, progress=progress)
        _check_ids(table, path)
    except BaseException:
        pool.close()
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return table


def _check_ids(table: RowGroupTable, path: str | Path) -> None:
    try:
        check_unique(table.users)
    except DataError as problem:
        raise DataError(f"{path}: party {table.party!r}: {problem}") from None


@dataclass(frozen=True, kw_only=True)
class _Span:
    """Some consecutive row groups."""

    groups: tuple[int, ...]
    start: int
    n_rows: int


def _row_group_spans(party: PartySpec, path: Path) -> list[_Span]:
    """Join small row groups, so that a task has about a block's rows or one row group."""
    try:
        with pq.ParquetFile(path) as file:
            names = file.schema_arrow.names
            sizes = [
                file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)
            ]
    except (OSError, pa.ArrowException) as problem:
        raise DataError(f"{path}: cannot be read as a parquet file") from problem
    for name in (party.id_column, *(column.name for column in party.columns)):
        if names.count(name) != 1:
            raise DataError(
                f"{path}: party {party.name!r} must have the column {name!r} of the study once, "
                f"the file has it {names.count(name)} times (case and spaces count)"
            )
    spans: list[_Span] = []
    start = 0
    waiting: list[int] = []
    rows = 0
    for group, size in enumerate(sizes):
        waiting.append(group)
        rows += size
        if rows >= BLOCK_ROWS or group == len(sizes) - 1:
            spans.append(_Span(groups=tuple(waiting), start=start, n_rows=rows))
            start, waiting, rows = start + rows, [], 0
    return [span for span in spans if span.n_rows]


# ---- what workers do ----


def _store_span(span: _Span, *, party: PartySpec, path: Path, folder: Path) -> list[StoredBlock]:
    """Check the rows of some row groups and store them as blocks."""
    columns = [party.id_column, *(column.name for column in party.columns)]
    stored: list[StoredBlock] = []
    start = span.start
    try:
        with pq.ParquetFile(path) as file:
            batches = file.iter_batches(
                batch_size=BLOCK_ROWS,
                row_groups=list(span.groups),
                columns=columns,
                use_threads=False,
            )
            for table in _joined(batches):
                try:
                    rows, ids = grid_rows(party, table, first_row=start)
                    text = canonical_text(ids, first_row=start)
                except DataError as problem:
                    raise DataError(f"{path}: {problem}") from None
                block = StoredBlock(
                    folder=folder,
                    name=f"{start:012d}",
                    start=start,
                    n_rows=len(rows),
                    n_columns=rows.shape[1],
                )
                block.write_rows(rows, text)
                stored.append(block)
                start += len(rows)
    except pa.ArrowException:
        # Without the cause: Arrow may quote a value.
        raise DataError(f"{path}: row groups {span.groups} cannot be read") from None
    except OSError as problem:
        raise DataError(
            f"{path}: cannot be stored in blocks ({problem.strerror}); give a spool folder with "
            "enough room"
        ) from problem
    return stored


def _joined(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Join batches of small row groups to about the rows of a block."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        if rows and rows + batch.num_rows > BLOCK_ROWS:
            yield pa.Table.from_batches(waiting)
            waiting, rows = [], 0
        waiting.append(batch)
        rows += batch.num_rows
    if rows:
        yield pa.Table.from_batches(waiting)


def _part_of(block: StoredBlock, *, part: Callable[[IntArray], IntArray]) -> IntArray:
    return part(block.rows())


def _users_of(block: StoredBlock, *, task: Callable[[UserBlock], T]) -> T:
    return task(block.users())


def _store_labels(block: StoredBlock, *, label: Callable[[IntArray], LabelArray]) -> None:
    block.write_labels(label(block.rows()))


def _run_of(
    block: StoredBlock,
    *,
    records_of: Callable[[UserBlock], Records],
    folder: Path,
    bits: int,
) -> Run:
    return write_run(folder / block.name, records_of(block.users()), bits=bits)


def _bucket_of(bucket: int, *, runs: list[Run], bits: int, finish: Callable[[Records], T]) -> T:
    return finish(read_bucket(runs, bucket, bits=bits))
