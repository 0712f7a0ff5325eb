"""A party's table in memory: read, checked, clipped and quantised before the party joins a run.

Every check on data happens before (`checks/rows.py`), so no later step fails in a way that the
server could see (rule R12). Errors name the party, the column, the rule and row numbers, never a
value.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from splitmeans._types import HalfWidthArray, IntArray, LabelArray
from splitmeans.kernels.row_numbers import RowNumbers
from splitmeans.study import PartySpec
from splitmeans.study.coding import Coding, coding_of
from splitmeans.study.id_rules import AS_IS, IdRules
from splitmeans.study.raw_layout import is_settled
from splitmeans.table.checks.facts import TableFacts, ignore_facts
from splitmeans.table.checks.names import name_problems, study_columns
from splitmeans.table.checks.problems import Problem
from splitmeans.table.checks.rows import CheckedRows, check_parts, check_rows
from splitmeans.table.frames import as_stream
from splitmeans.table.ids.canonical import check_ids, repeated_ids
from splitmeans.table.options import SourceOptions
from splitmeans.table.walk.memory import MemoryRows, MemoryUsers


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class PartyTable:
    """A party's table in memory; see `table.walk.interface.Table` for what a run does with it.

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
        notice: Called with the table's facts, once its values have passed all checks.
        allow_clipping: Take it also if more than half of a column's values lie outside the bounds.
        simulated: All parties are in this process: row numbers are not made into text.

    Raises:
        DataError: If the table breaks rules of the study; all of them are named.
    """
    stream = as_stream(data, where=f"party {party.name!r}")
    if stream is None:
        checked = check_rows(party, data, ids=ids, rules=rules)
    else:
        checked = _check_stream(party, stream, ids=ids, rules=rules)
    options = SourceOptions(rules=rules, notice=notice, allow_clipping=allow_clipping)
    return table_in_memory(party, checked, options, simulated=simulated)


def table_in_memory(
    party: PartySpec,
    checked: CheckedRows,
    options: SourceOptions,
    *,
    where: str | None = None,
    simulated: bool = False,
) -> PartyTable:
    """Compare the ids of checked rows and return them as a table; see `prepare_table`.

    `where` is how errors name the source.
    """
    ids, problems, n = checked.ids, list(checked.problems), len(checked.rows)
    if n == 0 and not problems:
        problems.append(Problem(rule="the table must have at least one row, got none"))
    if ids is None:
        numbers = RowNumbers(start=0, end=n)
        ids = numbers if simulated else numbers.text()
    else:
        if len(ids) != n and not problems:
            rule = f"ids must have one id for each of {n} rows, got {len(ids)}"
            problems.append(Problem(rule=rule))
        if len(ids):
            users = MemoryUsers(ids=ids, labels=np.zeros(len(ids), dtype=np.int32))
            problems += repeated_ids(users, rules=options.rules)
    options.finish_checks(party.name, problems, checked.facts, where=where)
    return PartyTable(
        party=party.name,
        ids=ids,
        raw_rows=checked.rows,
        names=checked.facts.names,
        coding=coding_of(party) if is_settled(party) else None,
    )


def _check_stream(
    party: PartySpec, stream: pa.RecordBatchReader, *, ids: Any, rules: IdRules
) -> CheckedRows:
    """Check a stream batch by batch; of the rows themselves memory holds one batch."""
    names = stream.schema.names
    # Ids that are given replace the table's own, whatever those look like.
    places = [
        place
        for place in study_columns(party, names)
        if ids is None or names[place] != party.id_column
    ]
    # The columns are checked even if no batch comes.
    empty = pa.Table.from_batches([], stream.schema).select(places)
    parts = chain([empty], (batch.select(places) for batch in stream))
    checked = check_parts(party, parts, rules=rules)
    text, problems = checked.ids, [*name_problems(party, names, with_ids=False), *checked.problems]
    if ids is not None:
        text, wrong = check_ids(ids, rules=rules)
        text, problems = None if wrong else text, [*problems, *wrong]
    return replace(checked, ids=text, problems=tuple(problems))
