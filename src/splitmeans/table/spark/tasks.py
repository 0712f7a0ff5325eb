"""What Spark's Python workers do with blocks of rows.

A broken rule is no failure of a task, which Spark would try three times more and log. It travels as
text in the column `problem` and is raised on the driver.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any

import pyarrow as pa

from splitmeans._types import IntArray
from splitmeans.errors import DataError, SplitmeansError
from splitmeans.kernels.counts import in_buckets, sort_records
from splitmeans.study import PartySpec
from splitmeans.study.id_rules import IdRules
from splitmeans.table.batches import joined
from splitmeans.table.checks.rows import check_rows
from splitmeans.table.spark.blocks import (
    BLOCK_SCHEMA,
    BLOCKS_A_PART,
    CHUNK_SCHEMA,
    GRID_TYPE,
    PIECE_SCHEMA,
    PLACES,
    Batches,
    Row,
    UserReader,
    each_row,
    grid_of,
    one_row,
    pack_ids,
    piece_row,
)
from splitmeans.table.spark.packed import pack, unpack
from splitmeans.table.walk.interface import Records, UserBlock


def freeze(
    batches: Batches, *, party: PartySpec, names: list[str], rules: IdRules, block_rows: int
) -> Iterator[pa.RecordBatch]:
    """Check the rows of one partition and return them as blocks.

    The columns are in the order of `names`; Spark's own may not be unique where case is ignored.
    """
    from pyspark import TaskContext

    partition = TaskContext.get().partitionId()
    block, first = partition * PLACES, 0
    try:
        for table in joined(batches, rows=block_rows):
            named = table.rename_columns(names)
            checked = check_rows(party, named, first_row=first, rules=rules, with_names=False)
            facts = json.dumps(
                {
                    "facts": asdict(checked.facts),
                    "problems": [asdict(problem) for problem in checked.problems],
                    "has_ids": checked.ids is not None,
                }
            )
            grid = pack(checked.rows.astype(GRID_TYPE))
            ids = None if checked.ids is None else pack_ids(checked.ids)
            yield one_row(BLOCK_SCHEMA, block, first, len(named), grid, ids, facts, None)
            block, first = block + 1, first + len(named)
    except (SplitmeansError, pa.ArrowException) as problem:
        if isinstance(problem, pa.ArrowException):  # Arrow may quote a value
            problem = DataError(f"rows from number {first} on cannot be read")
        yield one_row(BLOCK_SCHEMA, block, first, 0, None, None, None, _described(problem))


def add_up(batches: Batches, *, part: Callable[[IntArray], IntArray]) -> Iterator[pa.RecordBatch]:
    """Return the sum of `part` over the blocks of one task, and in `place` how many they are."""
    result: Any = None
    blocks = 0
    try:
        for row in each_row(batches):
            own = part(grid_of(row))
            result = own if result is None else result + own
            blocks += 1
        if result is not None:
            yield piece_row(0, blocks, result)
    except SplitmeansError as problem:
        yield one_row(PIECE_SCHEMA, 0, 0, 0, None, _described(problem))


def map_users(
    batches: Batches, *, task: Callable[[UserBlock], Any], reader: UserReader
) -> Iterator[pa.RecordBatch]:
    """Return `task` of the users of every block."""
    for row in each_row(batches):
        serial = reader.serial(row["block"])
        try:
            yield piece_row(serial // BLOCKS_A_PART, serial, task(reader.read(row)))
        except SplitmeansError as problem:
            yield one_row(PIECE_SCHEMA, 0, serial, 0, None, _described(problem))


def map_rows(batches: Batches, *, reader: UserReader) -> Iterator[pa.RecordBatch]:
    """Return the rows of every block."""
    for row in each_row(batches):
        serial = reader.serial(row["block"])
        yield piece_row(serial // BLOCKS_A_PART, serial, grid_of(row))


def cut_records(
    batches: Batches,
    *,
    records_of: Callable[[UserBlock], Records],
    reader: UserReader,
    bits: int,
) -> Iterator[pa.RecordBatch]:
    """Return the records of every block, cut into buckets by the leading bits of their tags."""
    for row in each_row(batches):
        block = row["block"]
        try:
            records = records_of(reader.read(row))
        except SplitmeansError as problem:
            yield one_row(CHUNK_SCHEMA, 0, block, None, _described(problem))
            continue
        # One block has a chunk in every bucket, so that a bucket without records is there too.
        yield from chunks(records, block=block, bits=bits, also_empty=reader.serial(block) == 0)


def chunks(
    records: Records, *, block: int, bits: int, also_empty: bool = False
) -> Iterator[pa.RecordBatch]:
    """Cut records into buckets."""
    (tags, values), starts = in_buckets(records, bits=bits)
    for bucket, (start, end) in enumerate(pairwise(starts.tolist())):
        if end > start or also_empty:
            piece = pack((tags[start:end], values[start:end]))
            yield one_row(CHUNK_SCHEMA, bucket, block, piece, None)


def merge_chunks(
    batches: Batches, *, finish: Callable[[Records], Any], bits: int
) -> Iterator[pa.RecordBatch]:
    """Sort the records of every bucket and return `finish` of them.

    Chunks come by bucket, and within it in the order of rows: that is how records with equal tags
    are to stay.
    """
    for bucket, members in groupby(each_row(batches), key=itemgetter("bucket")):
        try:
            parts = [_records_of(row) for row in members]
            yield piece_row(bucket, 0, finish(sort_records(parts, skip_bits=bits)))
        except _Described as problem:
            yield one_row(PIECE_SCHEMA, bucket, 0, 0, None, str(problem))
        except SplitmeansError as problem:
            yield one_row(PIECE_SCHEMA, bucket, 0, 0, None, _described(problem))


class _Described(Exception):
    """A problem of an earlier step."""


def _records_of(row: Row) -> Records:
    if row["problem"] is not None:
        raise _Described(row["problem"])
    tags, values = unpack(row["piece"])
    return tags, values


def _described(problem: Exception) -> str:
    return f"{type(problem).__name__}: {problem}"
