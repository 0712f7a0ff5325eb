"""A party's table in memory: read, checked, clipped and quantised before the party joins a run.

Every check on data happens before (`row_checks.py`), so no later step fails in a way that the
server could see (rule R12). Errors name the party, the column, the rule and row numbers, never a
value.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa

from splitmeans._types import HalfWidthArray, IntArray, LabelArray
from splitmeans.errors import DataError
from splitmeans.kernels.row_numbers import RowNumbers
from splitmeans.study import PartySpec
from splitmeans.study.coding import Coding, coding_of
from splitmeans.study.id_rules import AS_IS, IdRules
from splitmeans.study.raw_layout import is_settled
from splitmeans.table.checks.facts import TableFacts, finish_checks, ignore_facts
from splitmeans.table.checks.names import name_problems, study_columns
from splitmeans.table.checks.problems import Problem
from splitmeans.table.checks.rows import CheckedRows, check_rows
from splitmeans.table.frames import as_stream
from splitmeans.table.ids.canonical import check_ids, repeated_ids
from splitmeans.table.walk.memory import MemoryRows, MemoryUsers


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class PartyTable:
    """A party's table in memory; see `engine.walk.Table` for what a run does with it.

    Attributes:
        party: The party's name.
        ids: Canonical ids, one a row; or that they are row numbers, in a simulation.
        raw_rows: Coded rows, shape (n, columns), 32 bits each; see `study/coding.py`. Columns of
            which the run learns bounds or categories are not coded yet (`study/raw_layout.py`).
        names: The categories in columns of which the run learns them, by column.
        coding: How rows are coded; None if they are numbers that every row has, or not coded yet.
    """

    party: str
    ids: pa.LargeStringArray | RowNumbers
    raw_rows: IntArray | HalfWidthArray
    names: Mapping[str, Sequence[str]] = field(default_factory=dict)
    coding: Coding | None = None

    def __len__(self) -> int:
        return len(self.raw_rows)

    def __repr__(self) -> str:
        rows, columns = self.raw_rows.shape
        return f"<PartyTable party={self.party!r} rows={rows} columns={columns}>"

    @property
    def features(self) -> IntArray:
        """The features of the rows, shape (n, d), `NO_VALUE` where a row has none."""
        return self.features_of(slice(None))

    def features_of(self, rows: slice | IntArray) -> IntArray:
        """Return the same of some of the rows."""
        codes = np.asarray(self.raw_rows[rows], dtype=np.int64)
        return codes if self.coding is None else self.coding.features(codes)

    @property
    def rows(self) -> MemoryRows:
        """The coded rows."""
        return MemoryRows(self.raw_rows)

    @property
    def users(self) -> MemoryUsers:
        """The users, all with label 0."""
        return MemoryUsers(ids=self.ids, labels=np.zeros(len(self), dtype=np.int32))

    def labelled(self, label: Callable[[IntArray], LabelArray]) -> MemoryUsers:
        """Return the users with the labels of their rows."""
        return MemoryUsers(ids=self.ids, labels=self.rows.label(label))


def prepare_table(
    party: PartySpec,
    data: Any,
    *,
    ids: Any = None,
    rules: IdRules = AS_IS,
    where: str | None = None,
    names: Sequence[Problem] | None = None,
    notice: Callable[[TableFacts], None] = ignore_facts,
    allow_clipping: bool = True,
    simulated: bool = False,
) -> PartyTable:
    """Check a table against the study and return it on the integer grid.

    Args:
        party: The party's columns, bounds and rules for missing values.
        data: A mapping of names to arrays, a pandas or polars DataFrame, an Arrow table or reader,
            a DuckDB relation or anything else with an Arrow C stream, each with columns found by
            name and further columns left alone; or a 2-D array with the study's columns in the
            study's order. A stream is read once, batch by batch.
        ids: The users' ids. Without them, `party.id_column` of a table with names, and if there is
            none, row numbers from 0.
        rules: The study's rules for ids (`Study.id_rules`).
        where: How errors name the source.
        names: What is wrong with the names of its columns; None finds it out.
        notice: Told how the table looks; see `finish_checks`.
        allow_clipping: Take it also if more than half of a column's values lie outside the bounds.
        simulated: All parties are in this process: row numbers are not made into text.

    Raises:
        DataError: If the table breaks rules of the study; all of them are named.
    """
    checked = _checked_table(
        party, data, ids=ids, rules=rules, with_names=names is None, where=where
    )
    own_ids, problems = checked.ids, [*(names or ()), *checked.problems]
    if len(checked.rows) == 0 and not problems:
        problems.append(Problem(rule="the table must have at least one row, got none"))
    if own_ids is None:
        numbers = RowNumbers(start=0, end=len(checked.rows))
        own_ids = numbers if simulated else numbers.text()
    else:
        if len(own_ids) != len(checked.rows) and not problems:
            n = len(checked.rows)
            rule = f"ids must have one id for each of {n} rows, got {len(own_ids)}"
            problems.append(Problem(rule=rule))
        if len(own_ids):
            users = MemoryUsers(ids=own_ids, labels=np.zeros(len(own_ids), dtype=np.int32))
            problems += repeated_ids(users, rules=rules)
    finish_checks(
        party.name,
        problems,
        checked.facts,
        where=where,
        notice=notice,
        allow_clipping=allow_clipping,
    )
    return PartyTable(
        party=party.name,
        ids=own_ids,
        raw_rows=checked.rows,
        names=checked.facts.names,
        coding=coding_of(party) if is_settled(party) else None,
    )


def _checked_table(
    party: PartySpec,
    data: Any,
    *,
    ids: Any,
    rules: IdRules,
    with_names: bool,
    where: str | None,
) -> CheckedRows:
    try:
        stream = as_stream(data, where=f"party {party.name!r}")
        if stream is None:
            return check_rows(party, data, ids=ids, rules=rules, with_names=with_names)
        return _check_stream(party, stream, ids=ids, rules=rules, with_names=with_names)
    except DataError as problem:
        if where is None:
            raise
        raise DataError(f"{where}: {problem}") from None


def _check_stream(
    party: PartySpec, stream: pa.RecordBatchReader, *, ids: Any, rules: IdRules, with_names: bool
) -> CheckedRows:
    """Check a stream batch by batch; of the rows themselves memory holds one batch."""
    names = stream.schema.names
    # Ids that are given replace the table's own, whatever those look like.
    places = [
        place
        for place in study_columns(party, names)
        if ids is None or names[place] != party.id_column
    ]
    empty = pa.Table.from_batches([], stream.schema).select(places)
    # The columns are checked even if no batch comes.
    parts = [check_rows(party, empty, rules=rules, with_names=False)]
    start = 0
    for batch in stream:
        chosen = batch.select(places)
        parts.append(check_rows(party, chosen, first_row=start, rules=rules, with_names=False))
        start += batch.num_rows
    text = _joined_ids(parts)
    problems = name_problems(party, names, with_ids=False) if with_names else []
    problems += [problem for part in parts for problem in part.problems]
    facts = reduce(TableFacts.and_more, (part.facts for part in parts[1:]), parts[0].facts)
    if ids is not None:
        text, wrong = check_ids(ids, rules=rules)
        text, problems = None if wrong else text, [*problems, *wrong]
    rows = np.concatenate([part.rows for part in parts])
    return CheckedRows(rows=rows, ids=text, facts=facts, problems=tuple(problems))


def _joined_ids(parts: list[CheckedRows]) -> pa.LargeStringArray | None:
    texts = [part.ids for part in parts]
    if any(text is None for text in texts):
        return None
    return pa.chunked_array(texts, type=pa.large_string()).combine_chunks()
