"""A party's table from a stream of record batches: a query, a csv file, a data frame.

Nobody knows how long a stream is. Its batches wait in memory until it ends or there are too many of
them; then they, and all that follow, are stored as blocks (`blocks.py`) in this process. Memory
holds the batches that wait and one block, however long the stream is.

In a run others can see how long a party takes, and a table on disk takes longer. So there the
study's expected users decide where the table goes, not its rows (rule R12).
"""

import contextlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import pyarrow as pa

from splitmeans.errors import DataError
from splitmeans.study import PartySpec
from splitmeans.study.id_rules import AS_IS, IdRules
from splitmeans.table.checks.facts import TableFacts, ignore_facts
from splitmeans.table.checks.problems import Problem, refuse
from splitmeans.table.columns import is_text
from splitmeans.table.prepare import prepare_table
from splitmeans.table.walk.blocks import CheckedBlock, joined, open_blocks, store_block
from splitmeans.table.walk.interface import Table
from splitmeans.table.walk.stored import Progress, silent
from splitmeans.table.walk.workers import Workers

# Below both a table takes less memory than walking it on disk would.
ROWS_IN_MEMORY = 2_000_000
BYTES_IN_MEMORY = 32 * 2**20

# A block is read, checked and quantised in this process: about four times its size is needed.
_BLOCK_ROWS = 2**18
_BLOCK_BYTES = 16 * 2**20


# How far beyond that a table may be whose study expects less, before it goes to disk after all.
_HEADROOM = 4
_ID_BYTES = _CATEGORY_BYTES = 16
_NUMBER_BYTES = 8


@dataclass(frozen=True, kw_only=True)
class Room:
    """How much of a table may wait in memory: rows, and bytes of its batches."""

    rows: int
    size: int


def room_for(party: PartySpec, *, expected_users: int | None) -> Room:
    """Return how large a table may be in memory, from public quantities where they are known.

    Args:
        party: The party's columns.
        expected_users: What the study expects. None, for tables that are not for a run, lets the
            table's own size decide.
    """
    if expected_users is None:
        return Room(rows=ROWS_IN_MEMORY, size=BYTES_IN_MEMORY)
    numbers = sum(not column.is_categorical for column in party.columns)
    categories = len(party.columns) - numbers
    width = _ID_BYTES + _NUMBER_BYTES * numbers + _CATEGORY_BYTES * categories
    if expected_users > ROWS_IN_MEMORY or expected_users * width > BYTES_IN_MEMORY:
        return Room(rows=0, size=0)
    return Room(rows=_HEADROOM * ROWS_IN_MEMORY, size=_HEADROOM * BYTES_IN_MEMORY)


def open_stream(
    party: PartySpec,
    batches: Iterable[pa.RecordBatch],
    *,
    where: str,
    total: int | None = None,
    problems: Sequence[Problem] = (),
    expected_users: int | None = None,
    rules: IdRules = AS_IS,
    notice: Callable[[TableFacts], None] = ignore_facts,
    allow_clipping: bool = False,
    workers: int | None = None,
    spool: str | Path | None = None,
    progress: Progress = silent,
) -> contextlib.AbstractContextManager[Table]:
    """Read all batches, check them against the study, and return the table.

    Args:
        party: The party's columns, bounds, and id column, which the batches must have.
        batches: The rows; what else they have is left alone.
        where: How errors name the source.
        total: How many rows there are, if known, for the progress.
        problems: What is wrong with the names of its columns. A small table is checked all the
            same, of a large one no row is read.
        expected_users: What the study expects; see `room_for`.
        rules: The study's rules for ids (`Study.id_rules`).
        notice: Told how the table looks; see `finish_checks`.
        allow_clipping: The same.
        workers: Number of processes that walk a large table later.
        spool: Folder for the blocks of a large table; see `rowgroups.open_parquet`.
        progress: Called after every block.

    Raises:
        DataError: If the rows break a rule of the study; the stream's own errors pass unchanged.
    """
    stream = iter(batches)
    waiting: deque[pa.RecordBatch] = deque()
    if _fits(room_for(party, expected_users=expected_users), stream, waiting):
        if not waiting:
            refuse(problems, party=party.name, where=where)
            raise DataError(f"{where}: the table must have at least one row, got none")
        return contextlib.nullcontext(
            prepare_table(
                party,
                _one_table(party, waiting, where=where),
                rules=rules,
                where=where,
                names=problems,
                notice=notice,
                allow_clipping=allow_clipping,
            )
        )
    refuse(problems, party=party.name, where=where)
    rest = chain(_drained(waiting), stream)

    def store(folder: Path, pool: Workers) -> Iterator[CheckedBlock]:
        start = 0
        for part in joined(rest, rows=_BLOCK_ROWS, size=_BLOCK_BYTES):
            checked = store_block(party, part, start=start, folder=folder, where=where, rules=rules)
            start += checked.block.n_rows
            progress("read", rows=checked.block.n_rows, of=total)
            yield checked

    return open_blocks(
        party,
        store,
        where=where,
        rules=rules,
        notice=notice,
        allow_clipping=allow_clipping,
        workers=workers,
        spool=spool,
        progress=progress,
    )


def _fits(room: Room, stream: Iterator[pa.RecordBatch], waiting: deque[pa.RecordBatch]) -> bool:
    """Read batches into `waiting` until there are too many, or all; return whether it is all."""
    rows = size = 0
    for batch in stream:
        if not batch.num_rows:
            continue
        waiting.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
        if rows > room.rows or size > room.size:
            return False
    return True


def _drained(waiting: deque[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    while waiting:
        yield waiting.popleft()


def _one_table(party: PartySpec, waiting: deque[pa.RecordBatch], *, where: str) -> pa.Table:
    parts = [pa.Table.from_batches([batch]) for batch in waiting]
    try:
        # Types may differ from batch to batch where a source has no schema.
        return pa.concat_tables(_text_where_mixed(party, parts), promote_options="permissive")
    except pa.ArrowException:
        raise DataError(
            f"{where}: a column has values of different kinds; convert it to text or to numbers"
        ) from None


def _text_where_mixed(party: PartySpec, parts: list[pa.Table]) -> list[pa.Table]:
    """Write the numbers of a column as text if other parts of it are text.

    The checks then say which rows are wrong. Ids are left alone: as text they might pass.
    """
    for column in party.columns:
        places = [part.schema.get_field_index(column.name) for part in parts]
        if min(places) < 0:
            continue
        kinds = [part.schema.field(place).type for part, place in zip(parts, places, strict=True)]
        if len({is_text(kind) for kind in kinds if not pa.types.is_null(kind)}) == 2:
            parts = [
                part.set_column(place, column.name, part.column(place).cast(pa.large_string()))
                for part, place in zip(parts, places, strict=True)
            ]
    return parts
