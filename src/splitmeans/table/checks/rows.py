"""Checks of a party's rows against the study, before the party joins a run (rules R7, R12, R13).

A row's grid values depend on that row and the study alone: each operation works element by element,
and nothing is fitted to the data. A broken rule ends nothing here: the other columns are checked
all the same, so that one error lists every problem in the table.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from splitmeans._types import NO_VALUE, HalfWidthArray, IntArray
from splitmeans.errors import DataError
from splitmeans.kernels.halves import to_halves
from splitmeans.kernels.quantise import to_grid_column
from splitmeans.study import Column, PartySpec
from splitmeans.study.features import features_of_columns
from splitmeans.study.id_rules import AS_IS, IdRules
from splitmeans.study.parties import SKIP
from splitmeans.study.raw_layout import raw_places
from splitmeans.table.checks.category_columns import read_levels
from splitmeans.table.checks.facts import TableFacts, bound_facts, facts_of_parts
from splitmeans.table.checks.names import name_problems
from splitmeans.table.checks.number_columns import read_numbers
from splitmeans.table.checks.open_columns import read_open
from splitmeans.table.checks.problems import Problem
from splitmeans.table.columns import ColumnValues
from splitmeans.table.frames import named_columns
from splitmeans.table.ids.canonical import check_ids
from splitmeans.table.ids.facts import IdFacts, id_facts

_NOT_THERE = ColumnValues(None, [])


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class CheckedRows:
    """Rows of a table after their checks.

    Attributes:
        rows: Coded rows (`study/coding.py`), shape (n, columns), int32, and two halves of each
            number or category of which the run learns bounds or names (`raw_layout`); zeros in
            columns with problems.
        ids: Canonical ids, one a row; None without an id column, or if something is wrong with it.
        facts: How the rows looked; columns with problems have no values there.
        problems: All that is wrong with them.
    """

    rows: HalfWidthArray
    ids: pa.LargeStringArray | None
    facts: TableFacts
    problems: tuple[Problem, ...]


def check_rows(
    party: PartySpec,
    data: Any,
    *,
    ids: Any = None,
    first_row: int = 0,
    rules: IdRules = AS_IS,
    with_names: bool = True,
) -> CheckedRows:
    """Check rows and ids against the study, and list all that is wrong.

    Data and ids are as for `prepare_table`. `first_row` is the number of the first row in the whole
    table, for problems; `with_names` checks the names of the columns too.

    Raises:
        DataError: If it is no table at all.
    """
    found = _find_columns(party, data, with_names=with_names)
    id_values = found.ids if ids is None else ids
    text: pa.LargeStringArray | None = None
    id_problems: list[Problem] = []
    if id_values is not None:
        text, id_problems = check_ids(id_values, first_row=first_row, rules=rules)
    read = [
        _NOT_THERE if values is None else _read(column, values, first_row)
        for column, values in zip(party.columns, found.columns, strict=True)
    ]
    rows = _on_grid(party, read, n_ids=0 if text is None else len(text))
    pairs = list(zip(party.columns, read, strict=True))
    return CheckedRows(
        rows=rows,
        ids=None if id_problems else text,
        facts=TableFacts(
            ids=IdFacts(rows=len(rows), kind="row numbers", odd={}, n_odd=0)
            if id_values is None or id_problems
            else id_facts(id_values),
            bounds=tuple(
                bound_facts(column, own.sound)
                for column, own in pairs
                if column.is_settled and not column.categories
            ),
            names={column.name: own.names for column, own in pairs if column.is_open},
        ),
        problems=(*found.problems, *id_problems, *(one for own in read for one in own.problems)),
    )


def check_parts(party: PartySpec, parts: Iterable[Any], *, rules: IdRules = AS_IS) -> CheckedRows:
    """Check a table part by part, at least one, without the names of its columns."""
    checked: list[CheckedRows] = []
    start = 0
    for part in parts:
        own = check_rows(party, part, first_row=start, rules=rules, with_names=False)
        checked.append(own)
        start += len(own.rows)
    texts = [own.ids for own in checked]
    return CheckedRows(
        rows=np.concatenate([own.rows for own in checked]),
        ids=None
        if any(text is None for text in texts)
        else pa.chunked_array(texts, pa.large_string()).combine_chunks(),
        facts=facts_of_parts([own.facts for own in checked]),
        problems=tuple(problem for own in checked for problem in own.problems),
    )


def _read(column: Column, values: Any, first_row: int) -> ColumnValues:
    if column.is_open:
        return read_open(column, values, first_row=first_row)
    reader = read_levels if column.categories else read_numbers
    return reader(column, values, first_row=first_row)


def _on_grid(party: PartySpec, read: list[ColumnValues], *, n_ids: int) -> HalfWidthArray:
    """Code the values of columns without problems."""
    places = raw_places(party)
    sound = [
        (column, place, own.sound)
        for column, place, own in zip(party.columns, places, read, strict=True)
        if own.sound is not None
    ]
    n = _common_length(party, sound) if sound else n_ids
    rows = np.zeros((n, places[-1].stop if places else 0), dtype=np.int32)
    for column, place, values in sound:
        if not column.is_settled:
            to_halves(values, out=rows[:, place])
        elif column.categories:
            rows[:, place.start] = values
        else:
            fill_numbers(column, values, out=rows[:, place.start])
    return rows


def _common_length(party: PartySpec, sound: list[tuple[Column, slice, npt.NDArray[Any]]]) -> int:
    first, _, own = sound[0]
    for column, _, other in sound:
        if len(other) != len(own):
            raise DataError(
                f"party {party.name!r}, column {column.name!r} must have as many rows as column "
                f"{first.name!r}, got {len(other)} and {len(own)}"
            )
    return len(own)


class _Found(NamedTuple):
    """A party's columns in the study's order, None for those missing, and its ids."""

    columns: list[Any]
    ids: Any
    problems: list[Problem]


def _find_columns(party: PartySpec, data: Any, *, with_names: bool) -> _Found:
    where = f"party {party.name!r}"
    names = [column.name for column in party.columns]
    named = named_columns(data, where=where)
    if named is None:
        return _Found(list(_two_dimensional(data, names, where=where).T), None, [])
    listed = [name for name, _ in named]
    problems = name_problems(party, listed, with_ids=False) if with_names else []
    by_name = dict(named)
    return _Found([by_name.get(name) for name in names], by_name.get(party.id_column), problems)


def _two_dimensional(data: Any, names: list[str], *, where: str) -> Any:
    try:
        rows = data if np.ma.isMaskedArray(data) else np.asarray(data)
        if isinstance(data, list | tuple) and rows.dtype.kind not in "fiub":
            # NumPy would turn the numbers of a list that also holds text into text.
            rows = np.array(data, dtype=object)
    except (TypeError, ValueError):
        raise DataError(f"{where}: the rows must all have {len(names)} values") from None
    if rows.ndim != 2:
        raise DataError(
            f"{where}: the data must be a table or an array with 2 dimensions (rows, columns), got "
            f"{rows.ndim}; a single column is X.reshape(-1, 1)"
        )
    if rows.shape[1] != len(names):
        raise DataError(
            f"{where}: an array must have the study's {len(names)} columns in the study's order "
            f"({', '.join(names)}), got {rows.shape[1]}"
        )
    return rows


def fill_numbers(column: Column, numbers: npt.NDArray[Any], *, out: IntArray) -> None:
    """Put a column's numbers on the grid of its bounds; NaN is missing."""
    # Only the rules "midpoint" (NaN, the middle), "skip" and a number leave anything missing here.
    stand_in = math.nan if isinstance(column.missing, str) else float(column.missing)
    feature = features_of_columns((column,))[0]
    low, high, bound = feature.low, feature.high, feature.bound
    to_grid_column(numbers, low=low, high=high, bound=bound, stand_in=stand_in, out=out)
    if column.missing == SKIP:
        out[np.isnan(numbers)] = NO_VALUE
