"""A party's users in Spark: results by block, and records in the order of their tags."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from splitmeans._types import LabelArray
from splitmeans.table.spark.blocks import CHUNK_SCHEMA, EXTRA_BLOCK, PIECE_SCHEMA, UserReader
from splitmeans.table.spark.packed import pack
from splitmeans.table.spark.session import running
from splitmeans.table.spark.tasks import chunks, cut_records, map_users, merge_chunks
from splitmeans.table.spark.walk import Walk
from splitmeans.table.walk.interface import Records, UserBlock
from splitmeans.table.walk.runs import bucket_bits

T = TypeVar("T")

# Bytes of changed labels that the driver writes at a time.
_LABEL_BYTES = 2**24


class SparkUsers:
    """Users at Spark's workers."""

    def __init__(self, walk: Walk, *, reader: UserReader, labels: str = "") -> None:
        """Take the walk over a table, and the name of stored labels, if there are any."""
        self._walk, self._reader, self._labels = walk, reader, labels

    def __len__(self) -> int:
        return self._walk.frozen.n_rows

    def each(self, task: Callable[[UserBlock], T]) -> Iterator[T]:
        """Yield `task` of every block, in row order."""
        job = self._frame().mapInArrow(
            partial(map_users, task=task, reader=self._reader), PIECE_SCHEMA
        )
        yield from self._walk.pieces(
            job,
            expected=len(self._walk.frozen.blocks),
            stage="encode",
            doing="walking the users",
        )

    def relabelled(self, change: Callable[[LabelArray], LabelArray]) -> "SparkUsers":
        """Return the users with changed labels, which are stored beside the blocks.

        The change draws noise, which comes from one source in row order: the driver.
        """
        name = f"labels-{self._walk.new_name()}"
        waiting: list[tuple[int, bytes]] = []
        for block, labels in zip(self._walk.frozen.blocks, self.each(_small_labels), strict=True):
            changed = change(labels.astype(np.int32))
            waiting.append((block, pack(changed.astype(np.uint8))))
            if sum(len(data) for _, data in waiting) > _LABEL_BYTES:
                self._store_labels(name, waiting)
                waiting = []
        self._store_labels(name, waiting)
        return SparkUsers(self._walk, reader=self._walk.frozen.reader, labels=name)

    def in_tag_order(
        self,
        records_of: Callable[[UserBlock], Records],
        *,
        finish: Callable[[Records], T],
        extra: Records | None = None,
    ) -> Iterator[T]:
        """Yield `finish` of the sorted records, bucket by bucket.

        Workers cut their records by tag, Spark brings each bucket to one worker, which sorts it.
        """
        bits = bucket_bits(len(self) + (0 if extra is None else len(extra[0])))
        cut = partial(cut_records, records_of=records_of, reader=self._reader, bits=bits)
        made = self._frame().mapInArrow(cut, CHUNK_SCHEMA)
        session = self._walk.frozen.spool.session
        if extra is not None:
            own = pa.Table.from_batches(
                list(chunks(extra, block=EXTRA_BLOCK, bits=bits, also_empty=True))
            )
            made = made.unionByName(session.createDataFrame(own, CHUNK_SCHEMA))
        tasks = min(2**bits, 2 * self._walk.n_tasks)
        ordered = made.repartition(tasks, "bucket").sortWithinPartitions("bucket", "block")
        job = ordered.mapInArrow(partial(merge_chunks, finish=finish, bits=bits), PIECE_SCHEMA)
        yield from self._walk.pieces(job, expected=2**bits, stage="sort", doing="sorting records")

    def _frame(self) -> Any:
        """Return what the reader needs of every block."""
        columns = ["block", "first", "rows", "ids"]
        if self._reader.label is not None:
            columns.append("grid")
        frame = self._walk.frozen.frame(*columns)
        if not self._labels:
            return frame
        labels = self._walk.frozen.spool.read(self._labels, schema="block long, labels binary")
        return frame.join(labels, "block")

    def _store_labels(self, name: str, labels: list[tuple[int, bytes]]) -> None:
        spool = self._walk.frozen.spool
        table = pa.table(
            {
                "block": pa.array([block for block, _ in labels], pa.int64()),
                "labels": pa.array([data for _, data in labels], pa.binary()),
            }
        )
        with running("storing labels"):
            spool.write(spool.session.createDataFrame(table), name, append=True)


def _small_labels(block: UserBlock) -> LabelArray:
    """Return labels in a byte each; clusters are below 256 (`plan.MAX_LOCAL_CLUSTERS`)."""
    return np.asarray(block.labels.astype(np.uint8))
