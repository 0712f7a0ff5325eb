"""A party's table in Spark, as a run walks it; see `walk/interface.py` for the contract."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import count
from types import TracebackType
from typing import Any

import numpy as np

from splitmeans._types import IntArray, LabelArray
from splitmeans.study import PartySpec
from splitmeans.table.ids.canonical import repeated_ids
from splitmeans.table.options import AS_DEFAULT, SourceOptions
from splitmeans.table.spark.blocks import PIECE_SCHEMA
from splitmeans.table.spark.frozen import freeze_frame
from splitmeans.table.spark.packed import unpack
from splitmeans.table.spark.session import (
    check_pyspark,
    check_workers,
    own_session,
    raise_problem,
    running,
)
from splitmeans.table.spark.spool import make_spool
from splitmeans.table.spark.tasks import add_up, map_rows
from splitmeans.table.spark.users import SparkUsers
from splitmeans.table.spark.walk import SETTINGS, Walk, check_complete

_COUNTED = (
    "(rows are counted through the DataFrame's partitions; to find them, group it by the id column "
    "and keep groups of more than one row)"
)


def open_spark(
    party: PartySpec,
    frame: Any,
    *,
    spool: str,
    spool_is_private: bool = False,
    options: SourceOptions = AS_DEFAULT,
) -> "SparkTable":
    """Check a Spark DataFrame against the study and return it as a table that Spark walks.

    Args:
        party: The party's columns, bounds, and id column, which the DataFrame must have.
        frame: The DataFrame, of the party's own session. It is evaluated once, here.
        spool: Folder that exists and that the driver and all workers share (a path that Spark can
            write to); it gets about 4 bytes a value and the ids' size, and as much again while
            records are sorted.
        spool_is_private: Nobody else can read the folder. Only sessions of Spark Connect ask for
            it: others make a folder in there that its owner alone can look into.
        options: How it is checked. What says where rows wait is left alone: they are in the spool.

    Raises:
        DataError: If the table breaks a rule of the study, or the spool cannot be used.
        EngineError: If pyspark is missing, the workers cannot do the work, or Spark stops.
    """
    check_pyspark()
    session = own_session(frame.sparkSession)
    for name, value in SETTINGS.items():
        session.conf.set(name, value)
    place = make_spool(session, spool, is_private=spool_is_private)
    try:
        n_tasks = check_workers(session)
        frozen = freeze_frame(party, frame, rules=options.rules, spool=place)
        options.progress("read", rows=frozen.n_rows, of=frozen.n_rows)
        walk = Walk(frozen=frozen, n_tasks=n_tasks, progress=options.progress, names=count(1))
        table = SparkTable(party.name, walk)
        problems = list(frozen.problems)
        if frozen.has_ids:
            problems += [
                replace(problem, rule=f"{problem.rule} {_COUNTED}")
                for problem in repeated_ids(table.users, rules=options.rules)
            ]
        options.finish_checks(party.name, problems, frozen.facts)
    except BaseException:
        place.remove()
        raise
    return table


class SparkTable:
    """A table of a party that Spark walks; close it, or use it in a `with` block."""

    def __init__(self, party: str, walk: Walk) -> None:
        """Take the walk over a table that is frozen already; see `open_spark`."""
        self.party = party
        self._walk = walk
        self.names = walk.frozen.facts.names

    def __len__(self) -> int:
        return self._walk.frozen.n_rows

    def __repr__(self) -> str:
        blocks = len(self._walk.frozen.blocks)
        return f"<SparkTable party={self.party!r} rows={len(self)} blocks={blocks}>"

    def __enter__(self) -> "SparkTable":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Remove the frozen rows; the session is the party's own and stays."""
        self._walk.frozen.spool.remove()

    @property
    def rows(self) -> "SparkRows":
        """The rows on the grid."""
        return SparkRows(self._walk)

    @property
    def users(self) -> SparkUsers:
        """The users, all with label 0."""
        return SparkUsers(self._walk, reader=self._walk.frozen.reader)

    def labelled(self, label: Callable[[IntArray], LabelArray]) -> SparkUsers:
        """Return the users with the labels of their rows, which each later job works out anew."""
        return SparkUsers(self._walk, reader=replace(self._walk.frozen.reader, label=label))


class SparkRows:
    """Rows at Spark's workers."""

    def __init__(self, walk: Walk) -> None:
        """Take the walk over a table."""
        self._walk = walk

    def __len__(self) -> int:
        return self._walk.frozen.n_rows

    def total(self, part: Callable[[IntArray], IntArray]) -> IntArray:
        """Return the sum of `part` over all blocks; every task hands over one sum."""
        self._walk.set_batch()
        with running("adding up over the rows"):
            frame = self._walk.frozen.frame("grid")
            found = frame.mapInArrow(partial(add_up, part=part), PIECE_SCHEMA).toArrow()
        for problem in found["problem"].drop_null():
            raise_problem(problem.as_py())
        check_complete(sum(found["place"].to_pylist()), len(self._walk.frozen.blocks))
        parts = [unpack(piece.as_py()) for piece in found["piece"]]
        self._walk.done("cluster")
        return np.asarray(sum(parts[1:], start=parts[0]))

    def gather(self) -> IntArray:
        """Read all rows into the driver's memory."""
        walk = self._walk
        frame = walk.frozen.frame("block", "grid")
        job = frame.mapInArrow(partial(map_rows, reader=walk.frozen.reader), PIECE_SCHEMA)
        blocks = len(walk.frozen.blocks)
        return np.concatenate(
            list(walk.pieces(job, expected=blocks, stage="gather", doing="gathering rows"))
        )
