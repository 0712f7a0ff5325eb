"""A party's table in parquet files, read in row groups by worker processes.

Opening it reads the files once: row groups are checked and quantised by the workers and stored as
blocks (`blocks.py`). Everything later walks the blocks.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from splitmeans.errors import DataError
from splitmeans.study import PartySpec
from splitmeans.study.id_rules import AS_IS, IdRules
from splitmeans.table.batches import check_names
from splitmeans.table.checks.facts import TableFacts, ignore_facts
from splitmeans.table.walk.blocks import CheckedBlock, joined, open_blocks, store_block
from splitmeans.table.walk.stored import Progress, StoredTable, silent
from splitmeans.table.walk.workers import Workers

# Rows of a block: a few dozen megabytes with a dozen columns, and enough for a worker to be busy.
BLOCK_ROWS = 2**18


def open_parquet(
    party: PartySpec,
    path: str | Path | Sequence[Path],
    *,
    rules: IdRules = AS_IS,
    notice: Callable[[TableFacts], None] = ignore_facts,
    allow_clipping: bool = False,
    workers: int | None = None,
    spool: str | Path | None = None,
    progress: Progress = silent,
    where: str | None = None,
) -> StoredTable:
    """Check parquet files against the study and return them as a table that is walked on disk.

    Args:
        party: The party's columns, bounds, and id column, which every file must have.
        path: The parquet file, or several that are one table in this order.
        rules: The study's rules for ids (`Study.id_rules`).
        notice: Told how the table looks; see `finish_checks`.
        allow_clipping: The same.
        workers: Number of processes; None takes one for each processor, 1 this process alone.
        spool: Folder for the blocks, about 4 bytes a value and twice the ids' size; None takes the
            system's folder for temporary files. It must not be kept in memory.
        progress: Called after every block.
        where: How errors about the whole table name it; its path by default.

    Raises:
        DataError: If a file cannot be read or breaks a rule of the study.
    """
    paths = [Path(path)] if isinstance(path, str | Path) else list(path)
    spans: list[_Span] = []
    for one in paths:
        start = spans[-1].start + spans[-1].n_rows if spans else 0
        spans += _row_group_spans(party, one, first_row=start)

    def store(folder: Path, pool: Workers) -> Iterator[CheckedBlock]:
        total = sum(span.n_rows for span in spans)
        task = partial(_store_span, party=party, folder=folder, rules=rules)
        for span, stored in zip(spans, pool.map(task, spans), strict=True):
            progress("read", rows=span.n_rows, of=total)
            yield from stored

    return open_blocks(
        party,
        store,
        where=where or ", ".join(str(one) for one in paths),
        rules=rules,
        notice=notice,
        allow_clipping=allow_clipping,
        workers=workers,
        spool=spool,
        progress=progress,
    )


@dataclass(frozen=True, kw_only=True)
class _Span:
    """Some consecutive row groups of a file; `start` counts rows over all files."""

    path: Path
    groups: tuple[int, ...]
    start: int
    n_rows: int


def _row_group_spans(party: PartySpec, path: Path, *, first_row: int) -> list[_Span]:
    """Join small row groups, so that a task has about a block's rows or one row group."""
    try:
        with pq.ParquetFile(path) as file:
            names = file.schema_arrow.names
            sizes = [
                file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)
            ]
    except (OSError, pa.ArrowException) as problem:
        raise DataError(f"{path}: cannot be read as a parquet file") from problem
    check_names(party, names, where=str(path), what="file")
    spans: list[_Span] = []
    start = first_row
    waiting: list[int] = []
    rows = 0
    for group, size in enumerate(sizes):
        waiting.append(group)
        rows += size
        if rows >= BLOCK_ROWS or group == len(sizes) - 1:
            spans.append(_Span(path=path, groups=tuple(waiting), start=start, n_rows=rows))
            start, waiting, rows = start + rows, [], 0
    return [span for span in spans if span.n_rows]


def _store_span(
    span: _Span, *, party: PartySpec, folder: Path, rules: IdRules
) -> list[CheckedBlock]:
    """Check the rows of some row groups and store them as blocks; what a worker does."""
    columns = [party.id_column, *(column.name for column in party.columns)]
    stored: list[CheckedBlock] = []
    start = span.start
    try:
        with pq.ParquetFile(span.path) as file:
            batches = file.iter_batches(
                batch_size=BLOCK_ROWS,
                row_groups=list(span.groups),
                columns=columns,
                use_threads=False,
            )
            for table in joined(batches, rows=BLOCK_ROWS):
                checked = store_block(
                    party, table, start=start, folder=folder, where=str(span.path), rules=rules
                )
                stored.append(checked)
                start += checked.block.n_rows
    except (pa.ArrowException, OSError):
        # Without the cause: Arrow may quote a value.
        raise DataError(f"{span.path}: row groups {span.groups} cannot be read") from None
    return stored
