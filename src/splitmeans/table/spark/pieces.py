"""Results of workers, read by the driver a few at a time.

They may be as long as the message of a party, and a Spark job hands all its results over at once.
So a job writes them as a set of parquet parts, and the driver reads the parts in order.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from splitmeans import errors
from splitmeans.errors import EngineError, SplitmeansError
from splitmeans.table.spark.blocks import PIECE_SCHEMA
from splitmeans.table.spark.packed import unpack
from splitmeans.table.spark.session import running
from splitmeans.table.spark.spool import Spool

# Bytes that are read at a time, about.
_AT_ONCE = 2**26


def small_table(frame: Any) -> pa.Table:
    """Return a frame of few and short rows."""
    frame.sparkSession.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "10000")
    return frame.toArrow()


def raise_problem(description: str, *, where: str = "") -> None:
    """Raise what a worker described."""
    kind, _, text = description.partition(": ")
    found = getattr(errors, kind, SplitmeansError)
    raise found(f"{where}{text}")


def check_complete(found: int, expected: int) -> None:
    """Refuse results in which something is missing or twice; sums would be silently wrong."""
    if found != expected:
        raise EngineError(
            f"Spark walked {found} of {expected} parts of the table; was the spool folder changed "
            "meanwhile?"
        )


def read_pieces(
    spool: Spool,
    frame: Any,
    *,
    name: str,
    expected: int,
    doing: str,
    written: Callable[[], None],
    read: Callable[[float], None],
) -> Iterator[Any]:
    """Run a job whose rows are pieces, and yield what they hold, in order.

    Args:
        spool: Where they are kept meanwhile.
        frame: Makes the pieces (`PIECE_SCHEMA`).
        name: Of their folder.
        expected: How many there must be.
        doing: What the job does, for errors.
        written: Called when the job is done.
        read: Called with the share of the bytes that has been read, up to 1.
    """
    try:
        with running(doing):
            spool.write(frame, name, by="part")
            stored = spool.read(name, schema=PIECE_SCHEMA)
            index = small_table(stored.select("part", "size", "problem"))
        written()
        problems = index["problem"].drop_null()
        if len(problems):
            raise_problem(problems[0].as_py())
        check_complete(len(index), expected)
        total = max(1, sum(index["size"].to_pylist()))
        done = 0
        for first, last, size in _ranges(index):
            with running(f"reading what {doing} made"):
                chosen = stored.where(f"part between {first} and {last}")
                rows = small_table(chosen.select("part", "place", "piece"))
            order = rows.sort_by([("part", "ascending"), ("place", "ascending")])
            del rows
            for piece in order["piece"]:
                yield unpack(piece.as_py())
            done += size
            read(done / total)
    finally:
        spool.remove(name)


def _ranges(index: pa.Table) -> Iterator[tuple[int, int, int]]:
    """Yield first and last of consecutive parts that are read together, and their bytes."""
    sizes = index.group_by("part").aggregate([("size", "sum")]).sort_by("part")
    first, last, bytes_waiting = -1, -1, 0
    for part, size in zip(sizes["part"].to_pylist(), sizes["size_sum"].to_pylist(), strict=True):
        if first >= 0 and bytes_waiting + size > _AT_ONCE:
            yield first, last, bytes_waiting
            first, bytes_waiting = -1, 0
        first = part if first < 0 else first
        last, bytes_waiting = part, bytes_waiting + size
    if first >= 0:
        yield first, last, bytes_waiting
