"""A block: some consecutive rows of a party's table in one row of a Spark DataFrame.

Rows on the grid and ids are bytes that Spark carries without looking inside. Results travel in the
same way: bytes in a row that says where they belong.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from splitmeans._types import IntArray, LabelArray
from splitmeans.table.spark.packed import pack, unpack
from splitmeans.table.walk.interface import UserBlock

BLOCK_SCHEMA = (
    "block long, first long, rows long, grid binary, ids binary, facts string, problem string"
)
CHUNK_SCHEMA = "bucket int, block long, piece binary, problem string"
# `part` names a folder of the part set, `place` the order within it.
PIECE_SCHEMA = "part int, place long, size long, piece binary, problem string"

# A block's number is its partition and its place in it: ascending numbers are the order of rows.
PLACES = 2**32
# Blocks whose results lie in one folder of a part set.
BLOCKS_A_PART = 64
# Comes after every block.
EXTRA_BLOCK = 2**62

# Grid integers reach 44 x 2^20 (the largest weight), well within 31 bits.
GRID_TYPE = np.dtype("<i4")

Batches = Iterator[pa.RecordBatch]
Row = dict[str, Any]


def partition_of(block: int) -> int:
    """Return the partition of the party's DataFrame that a block's rows were in."""
    return block // PLACES


@dataclass(frozen=True, kw_only=True)
class UserReader:
    """How the users of a block are read.

    Attributes:
        first_rows: Row number of the first row of every partition.
        first_blocks: The same for blocks.
        label: Labels a block's rows; None if labels are stored, or all 0.
    """

    first_rows: tuple[int, ...]
    first_blocks: tuple[int, ...]
    label: Callable[[IntArray], LabelArray] | None = None

    def read(self, row: Row) -> UserBlock:
        """Return the users of one block."""
        return UserBlock(
            start=self.first_rows[partition_of(row["block"])] + row["first"],
            ids=_unpack_ids(row["ids"]),
            labels=self._labels(row),
        )

    def serial(self, block: int) -> int:
        """Return the place of a block among all blocks."""
        return self.first_blocks[partition_of(block)] + block % PLACES

    def _labels(self, row: Row) -> LabelArray:
        if self.label is not None:
            return self.label(grid_of(row))
        if "labels" in row:
            return np.asarray(unpack(row["labels"]).astype(np.int32))
        return np.zeros(row["rows"], dtype=np.int32)


_ARROW_TYPES = {
    "int": pa.int32(),
    "long": pa.int64(),
    "binary": pa.binary(),
    "string": pa.string(),
}


def one_row(schema: str, *values: Any) -> pa.RecordBatch:
    """Return one row."""
    fields = [field.split(" ") for field in schema.split(", ")]
    arrays = [
        pa.array([value], _ARROW_TYPES[kind])
        for (_, kind), value in zip(fields, values, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, names=[name for name, _ in fields])


def piece_row(part: int, place: int, result: Any) -> pa.RecordBatch:
    """Return a result as a row of a part set."""
    data = pack(result)
    return one_row(PIECE_SCHEMA, part, place, len(data), data, None)


def each_row(batches: Batches) -> Iterator[Row]:
    """Yield every row by itself: there are few, of megabytes each."""
    for batch in batches:
        for place in range(batch.num_rows):
            yield batch.slice(place, 1).to_pylist()[0]


def grid_of(row: Row) -> IntArray:
    """Return the rows of a block, shape (b, d), int64."""
    return np.asarray(unpack(row["grid"]).astype(np.int64))


def pack_ids(ids: pa.LargeStringArray) -> bytes:
    """Return ids as bytes."""
    batch = pa.record_batch({"id": ids})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def _unpack_ids(data: bytes) -> pa.LargeStringArray:
    with pa.ipc.open_stream(data) as reader:
        return reader.read_next_batch().column(0)
