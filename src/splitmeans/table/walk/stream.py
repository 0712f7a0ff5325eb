"""A party's table from a stream of record batches: files, a query, a data frame.

Nobody knows how long a stream is. Its batches wait in memory until it ends or there are too many of
them; then they, and all that follow, are stored as blocks (`blocks.py`). Memory holds the batches
that wait and a block or two for each worker, however long the stream is.

In a run others can see how long a party takes, and a table on disk takes longer. So there the
study's expected users decide where the table goes, not its rows (rule R12).
"""

import contextlib
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain

import pyarrow as pa

from splitmeans.errors import DataError
from splitmeans.study import PartySpec
from splitmeans.table.batches import Batches, joined
from splitmeans.table.checks.problems import refuse
from splitmeans.table.checks.rows import check_parts
from splitmeans.table.options import AS_DEFAULT, SourceOptions
from splitmeans.table.prepare import table_in_memory
from splitmeans.table.walk.blocks import store_table
from splitmeans.table.walk.interface import Table

# Below both a table takes less memory than walking it on disk would. Starting processes takes
# longer than walking fewer rows in one.
ROWS_IN_MEMORY = 2_000_000
BYTES_IN_MEMORY = 32 * 2**20

# Of a block: enough for a worker to be busy. Checking it needs about four times its size.
BLOCK_ROWS = 2**18
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
    """Return how large a table may be in memory; see `SourceOptions.expected_users`."""
    if expected_users is None:
        return Room(rows=ROWS_IN_MEMORY, size=BYTES_IN_MEMORY)
    numbers = sum(not column.is_categorical for column in party.columns)
    categories = len(party.columns) - numbers
    width = _ID_BYTES + _NUMBER_BYTES * numbers + _CATEGORY_BYTES * categories
    if expected_users > ROWS_IN_MEMORY or expected_users * width > BYTES_IN_MEMORY:
        return Room(rows=0, size=0)
    return Room(rows=_HEADROOM * ROWS_IN_MEMORY, size=_HEADROOM * BYTES_IN_MEMORY)


def open_stream(
    party: PartySpec, batches: Batches, options: SourceOptions = AS_DEFAULT
) -> contextlib.AbstractContextManager[Table]:
    """Read all batches, check them against the study, and return the table.

    Where names of columns are wrong, a small table is checked all the same; of a large one no
    row is read.

    Raises:
        DataError: If the rows break a rule of the study; the stream's own errors pass unchanged.
    """
    stream, where = iter(batches.stream), batches.where
    waiting: deque[pa.RecordBatch] = deque()
    is_small = _fits(room_for(party, expected_users=options.expected_users), stream, waiting)
    if not is_small or not waiting:
        refuse(batches.problems, party=party.name, where=where)
    if not waiting:
        raise DataError(f"{where}: the table must have at least one row, got none")
    parts = joined(chain(_drained(waiting), stream), rows=BLOCK_ROWS, size=_BLOCK_BYTES)
    if is_small:
        try:
            checked = check_parts(party, parts, rules=options.rules)
        except DataError as problem:
            raise DataError(f"{where}: {problem}") from None
        named = replace(checked, problems=(*batches.problems, *checked.problems))
        return contextlib.nullcontext(table_in_memory(party, named, options, where=where))
    rows = batches.total if options.expected_users is None else options.expected_users
    if options.workers is None and (rows or 0) <= ROWS_IN_MEMORY:
        options = replace(options, workers=1)
    return store_table(party, parts, options, where=where, total=batches.total)


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
