"""Freezing a party's DataFrame: checked, quantised and written once (rule R11).

Whatever feeds the DataFrame may change, or be computed anew with another order of rows, by the next
job. All jobs after this one read the frozen copy, in which every row has a number: its partition's,
and its place in there.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial, reduce
from itertools import accumulate
from typing import Any

import pyarrow as pa

from splitmeans.errors import DataError
from splitmeans.study import PartySpec
from splitmeans.study.id_rules import IdRules
from splitmeans.table.checks.facts import TableFacts, facts_from
from splitmeans.table.checks.names import name_problems
from splitmeans.table.checks.problems import ROWS, Problem, refuse, together
from splitmeans.table.spark.blocks import BLOCK_SCHEMA, UserReader, partition_of
from splitmeans.table.spark.session import raise_problem, running, small_table
from splitmeans.table.spark.spool import Spool
from splitmeans.table.spark.tasks import freeze

# Rows of a block: a few megabytes, of which a worker holds some at a time.
BLOCK_ROWS = 2**16
_BLOCKS = "blocks"


@dataclass(frozen=True, kw_only=True, eq=False)
class Frozen:
    """A frozen table.

    Numbers of blocks are ascending, which is the order of rows. Problems count rows within a
    partition.
    """

    spool: Spool
    blocks: tuple[int, ...]
    reader: UserReader
    n_rows: int
    facts: TableFacts
    problems: tuple[Problem, ...]
    has_ids: bool

    def frame(self, *columns: str) -> Any:
        """Return these columns of all blocks."""
        return self.spool.read(_BLOCKS, schema=BLOCK_SCHEMA).select(*columns)


def freeze_frame(party: PartySpec, frame: Any, *, rules: IdRules, spool: Spool) -> Frozen:
    """Check a DataFrame's rows and write them to the spool.

    Raises:
        DataError: If the rows break a rule of the study.
    """
    from pyspark.sql import Observation
    from pyspark.sql import functions as sql

    names = [party.id_column, *(column.name for column in party.columns)]
    missing = name_problems(party, frame.columns, what="DataFrame", with_ids=True)
    refuse(missing, party=party.name)
    chosen = _select(frame, names)
    check = partial(freeze, party=party, names=names, rules=rules, block_rows=BLOCK_ROWS)
    seen = Observation()
    with running("reading and checking the DataFrame"):
        made = chosen.mapInArrow(check, BLOCK_SCHEMA).observe(seen, sql.count("*").alias("blocks"))
        spool.write(made, _BLOCKS)
        stored = spool.read(_BLOCKS, schema=BLOCK_SCHEMA)
        index = small_table(stored.select("block", "rows", "facts", "problem")).sort_by("block")
    if len(index) < seen.get["blocks"]:
        raise DataError(
            f"spool folder {spool.path}: must be shared by the driver and all workers; the driver "
            "does not see what the workers wrote"
        )
    _refuse_problems(index)
    if len(index) == 0:
        raise DataError(f"party {party.name!r}: the table must have at least one row, got none")
    found = [json.loads(text) for text in index["facts"].to_pylist()]
    return Frozen(
        spool=spool,
        blocks=tuple(index["block"].to_pylist()),
        reader=_reader(index),
        n_rows=sum(index["rows"].to_pylist()),
        facts=reduce(TableFacts.and_more, (facts_from(own["facts"]) for own in found)),
        problems=tuple(_by_partition(index["block"].to_pylist(), found)),
        has_ids=all(own["has_ids"] for own in found),
    )


def _select(frame: Any, names: list[str]) -> Any:
    """Return the named columns, as c0, c1 and so on.

    By place: Spark may ignore the case of names and gives dots in them a meaning.
    """
    places = [frame.columns.index(name) for name in names]
    numbered = frame.toDF(*(f"c{place}" for place in range(len(frame.columns))))
    return numbered.select(*(f"c{place}" for place in places))


def _refuse_problems(index: pa.Table) -> None:
    blocks, problems = index["block"].to_pylist(), index["problem"].to_pylist()
    for block, problem in zip(blocks, problems, strict=True):
        if problem is not None:
            raise_problem(problem, where=f"partition {partition_of(block)} of the DataFrame: ")


def _by_partition(blocks: list[int], found: list[dict[str, Any]]) -> Iterator[Problem]:
    """Yield what is wrong: each rule with the rows of the first partition that breaks it."""
    problems: dict[int, list[Problem]] = {}
    for block, own in zip(blocks, found, strict=True):
        listed = [Problem(**one | {"rows": tuple(one["rows"])}) for one in own["problems"]]
        problems.setdefault(partition_of(block), []).extend(listed)
    rules: dict[tuple[str | None, str], list[tuple[int, Problem]]] = {}
    for partition, listed in problems.items():
        for problem in together(listed):
            rules.setdefault((problem.column, problem.rule), []).append((partition, problem))
    for (partition, first), *others in rules.values():
        more = f" and in {len(others)} more partitions" if others else ""
        place = f"{ROWS} of partition {partition} of the DataFrame{more}"
        yield replace(first, rule=first.rule.replace(ROWS, place))


def _reader(index: pa.Table) -> UserReader:
    """Number rows and blocks through all partitions."""
    partitions = [partition_of(block) for block in index["block"].to_pylist()]
    rows = [0] * (partitions[-1] + 1)
    blocks = [0] * (partitions[-1] + 1)
    for partition, own in zip(partitions, index["rows"].to_pylist(), strict=True):
        rows[partition] += own
        blocks[partition] += 1
    return UserReader(first_rows=tuple(_before(rows)), first_blocks=tuple(_before(blocks)))


def _before(sizes: list[int]) -> Iterator[int]:
    """Yield the sum of all sizes before each."""
    return accumulate(sizes[:-1], initial=0)
