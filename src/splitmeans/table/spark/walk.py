"""How jobs over the frozen blocks are run, and their results read by the driver.

Results may be as long as the message of a party, and a Spark job hands all its results over at
once. So a job writes them as a set of parquet parts, and the driver reads the parts in order.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

import pyarrow as pa

from splitmeans.errors import EngineError
from splitmeans.table.options import Progress
from splitmeans.table.spark.blocks import PIECE_SCHEMA
from splitmeans.table.spark.frozen import Frozen
from splitmeans.table.spark.packed import unpack
from splitmeans.table.spark.session import raise_problem, running, small_table

# Bytes of results that are read at a time, about.
AT_ONCE = 2**26
_BLOCKS_AT_ONCE = "4"
SETTINGS = {
    # Rows are blocks of megabytes: a few of them at a time, in partitions of a few dozen.
    "spark.sql.parquet.columnarReaderBatchSize": _BLOCKS_AT_ONCE,
    "spark.sql.files.maxPartitionBytes": str(2**25),
    "spark.sql.adaptive.enabled": "false",
    # Whatever a cluster is set to: a lost part of the spool is an error.
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.files.ignoreCorruptFiles": "false",
    # Nothing in the place of a set of parts removes all of them.
    "spark.sql.sources.partitionOverwriteMode": "static",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Walk:
    """How the blocks of a table are walked.

    `n_tasks` is how many tasks Spark runs at the same time; progress is called after every job.
    """

    frozen: Frozen
    n_tasks: int
    progress: Progress
    names: "count[int]"

    def new_name(self) -> str:
        """Return a name that nothing in the spool has."""
        return f"part-{next(self.names)}"

    def done(self, stage: str) -> None:
        """Report that a job over all rows is done."""
        self.progress(stage, rows=self.frozen.n_rows, of=self.frozen.n_rows)

    def set_batch(self) -> None:
        """Let workers be given a few blocks at a time; Spark looks at this when a job starts."""
        session = self.frozen.spool.session
        session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", _BLOCKS_AT_ONCE)

    def pieces(self, frame: Any, *, expected: int, stage: str, doing: str) -> Iterator[Any]:
        """Run a job whose rows are `expected` pieces, and yield what they hold, in order."""
        self.set_batch()
        spool, name, n = self.frozen.spool, self.new_name(), self.frozen.n_rows
        try:
            with running(doing):
                spool.write(frame, name, by="part")
                stored = spool.read(name, schema=PIECE_SCHEMA)
                index = small_table(stored.select("part", "size", "problem"))
            self.done(stage)
            for problem in index["problem"].drop_null():
                raise_problem(problem.as_py())
            check_complete(len(index), expected)
            total = max(1, sum(index["size"].to_pylist()))
            done = fetched = 0
            for first, last, size in _ranges(index):
                with running(f"reading what {doing} made"):
                    chosen = stored.where(f"part between {first} and {last}")
                    rows = small_table(chosen.select("part", "place", "piece"))
                order = rows.sort_by([("part", "ascending"), ("place", "ascending")])
                del rows
                for piece in order["piece"]:
                    yield unpack(piece.as_py())
                done += size
                self.progress("fetch", rows=round(done / total * n) - fetched, of=n)
                fetched = round(done / total * n)
        finally:
            spool.remove(name)


def check_complete(found: int, expected: int) -> None:
    """Refuse results in which something is missing or twice; sums would be silently wrong."""
    if found != expected:
        raise EngineError(
            f"Spark walked {found} of {expected} parts of the table; was the spool folder changed "
            "meanwhile?"
        )


def _ranges(index: pa.Table) -> Iterator[tuple[int, int, int]]:
    """Yield first and last of consecutive parts that are read together, and their bytes."""
    sizes = index.group_by("part").aggregate([("size", "sum")]).sort_by("part")
    first, last, bytes_waiting = -1, -1, 0
    for part, size in zip(sizes["part"].to_pylist(), sizes["size_sum"].to_pylist(), strict=True):
        if first >= 0 and bytes_waiting + size > AT_ONCE:
            yield first, last, bytes_waiting
            first, bytes_waiting = -1, 0
        first = part if first < 0 else first
        last, bytes_waiting = part, bytes_waiting + size
    if first >= 0:
        yield first, last, bytes_waiting
