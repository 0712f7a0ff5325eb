"""How jobs over the frozen blocks are run."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any

from splitmeans.table.options import Progress
from splitmeans.table.spark.frozen import Frozen
from splitmeans.table.spark.pieces import read_pieces

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

    Attributes:
        frozen: The table.
        n_tasks: How many tasks Spark runs at the same time.
        progress: Called after every job.
        names: Numbers of what is written to the spool.
    """

    frozen: Frozen
    n_tasks: int
    progress: Progress
    names: "count[int]"

    def new_name(self) -> str:
        """Return a name that nothing in the spool has."""
        return f"part-{next(self.names)}"

    def done(self, stage: str) -> None:
        """Say that a job over all rows is done."""
        self.progress(stage, rows=self.frozen.n_rows, of=self.frozen.n_rows)

    def set_batch(self) -> None:
        """Let workers be given a few blocks at a time; Spark looks at this when a job starts."""
        session = self.frozen.spool.session
        session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", _BLOCKS_AT_ONCE)

    def pieces(self, frame: Any, *, expected: int, stage: str, doing: str) -> Iterator[Any]:
        """Yield the results of a job, of which there are `expected` ones, in order."""
        n = self.frozen.n_rows
        fetched = 0

        def fetch(share: float) -> None:
            nonlocal fetched
            self.progress("fetch", rows=round(share * n) - fetched, of=n)
            fetched = round(share * n)

        self.set_batch()
        yield from read_pieces(
            self.frozen.spool,
            frame,
            name=self.new_name(),
            expected=expected,
            doing=doing,
            written=partial(self.done, stage),
            read=fetch,
        )
