"""Checks of a party's rows against the study, before the party joins a run (rules R7, R12, R13).

A row's grid values depend on that row and the study alone: each operation works element by element,
and nothing is fitted to the data. A broken rule ends nothing here: the other columns are checked
all the same, so that a party hears of everything at once.
"""

import math
from collections.abc import Mapping
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
from splitmeans.study.features import Feature, features_of_columns
from splitmeans.study.id_rules import AS_IS, IdRules
from splitmeans.study.parties import SKIP
from splitmeans.study.raw_layout import raw_places
from splitmeans.table.checks.category_columns import level_codes
from splitmeans.table.checks.facts import BoundFacts, TableFacts, bound_facts
from splitmeans.table.checks.names import name_problems
from splitmeans.table.checks.number_columns import check_numbers
from splitmeans.table.checks.open_columns import hash_categories
from splitmeans.table.checks.plain_arrays import grid_of_array
from splitmeans.table.checks.problems import Problem, refuse
from splitmeans.table.frames import named_columns
from splitmeans.table.ids.canonical import check_ids
from splitmeans.table.ids.facts import IdFacts, id_facts

_ROWS_AT_ONCE = 8192


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


def grid_rows(
    party: PartySpec, data: Any, *, first_row: int = 0
) -> tuple[IntArray, Any, tuple[BoundFacts, ...]]:
    """Check rows against the study.

    Returns:
        Coded rows, shape (n, columns), the ids' column, and how columns fit their bounds.

    Args:
        party: The party's columns, bounds and rules for missing values.
        data: See `prepare_table`.
        first_row: Row number of the first one in the whole table, for errors.
    """
    columns, id_values, problems = _find_columns(party, data, with_names=True)
    found = _grid(party, columns, first_row=first_row, n_ids=None)
    refuse([*problems, *found.problems], party=party.name)
    return found.rows, id_values, found.bounds


def check_rows(
    party: PartySpec,
    data: Any,
    *,
    ids: Any = None,
    first_row: int = 0,
    rules: IdRules = AS_IS,
    with_names: bool = True,
) -> CheckedRows:
    """Check rows and ids against the study, and go on where something is wrong.

    Args:
        party: The party's columns, bounds and rules for missing values.
        data: See `prepare_table`.
        ids: The users' ids; None takes those of the table.
        first_row: Row number of the first one in the whole table, for problems.
        rules: The study's rules for ids.
        with_names: Whether to check the names of the columns too.

    Raises:
        DataError: If it is no table at all.
    """
    plain = _plain(party, data)
    if plain is None:
        columns, id_values, problems = _find_columns(party, data, with_names=with_names)
    else:
        columns, id_values, problems = [], None, []
    id_values = id_values if ids is None else ids
    text: pa.LargeStringArray | None = None
    id_problems: list[Problem] = []
    if id_values is not None:
        text, id_problems = check_ids(id_values, first_row=first_row, rules=rules)
    n_ids = None if text is None else len(text)
    found = plain or _grid(party, columns, first_row=first_row, n_ids=n_ids, kept_as=np.int32)
    if id_values is None or id_problems:
        facts = IdFacts(rows=len(found.rows), kind="row numbers", odd={}, n_odd=0)
    else:
        facts = id_facts(id_values)
    return CheckedRows(
        rows=found.rows,
        ids=None if id_problems else text,
        facts=TableFacts(ids=facts, bounds=found.bounds, names=found.names),
        problems=(*problems, *id_problems, *found.problems),
    )


def _plain(party: PartySpec, data: Any) -> "_Grid | None":
    """Return an array of plain numbers on the grid, None if it is no such array."""
    if not isinstance(data, np.ndarray) or data.ndim != 2 or data.shape[1] != len(party.columns):
        return None
    found = grid_of_array(party, data)
    return None if found is None else _Grid(found.rows, found.bounds, {}, [])


class _Grid(NamedTuple):
    rows: Any
    bounds: tuple[BoundFacts, ...]
    names: Mapping[str, tuple[str, ...]]
    problems: list[Problem]


def _grid(
    party: PartySpec,
    columns: list[Any],
    *,
    first_row: int,
    n_ids: int | None,
    kept_as: Any = np.int64,
) -> _Grid:
    """Check columns, None where one is missing, and code their values."""
    places = raw_places(party)
    checked: list[tuple[Column, slice, npt.NDArray[Any]]] = []
    bounds: list[BoundFacts] = []
    names: dict[str, tuple[str, ...]] = {}
    problems: list[Problem] = []
    for column, place, values in zip(party.columns, places, columns, strict=True):
        own: npt.NDArray[Any] | None = None
        wrong: list[Problem] = []
        if column.is_open:
            names[column.name] = ()
        if column.is_open and values is not None:
            own, names[column.name], wrong = hash_categories(column, values, first_row=first_row)
        elif column.categories and values is not None:
            own, wrong = level_codes(column, values, first_row=first_row)
        elif values is not None:
            own, wrong = check_numbers(column, values, first_row=first_row)
        if column.is_settled and not column.categories:
            bounds.append(bound_facts(column, None if wrong else own))
        if own is not None and not wrong:
            checked.append((column, place, own))
        problems += wrong
    n = _common_length(checked, where=f"party {party.name!r}") if checked else (n_ids or 0)
    make = np.empty if len(checked) == len(columns) else np.zeros
    rows = make((n, places[-1].stop if places else 0), dtype=kept_as)
    # A few rows of all columns at a time: the part of the result being written stays in cache.
    for start in range(0, n, _ROWS_AT_ONCE):
        part = slice(start, start + _ROWS_AT_ONCE)
        for column, place, own in checked:
            if not column.is_settled:
                to_halves(own[part], out=rows[part, place])
            elif column.categories:
                rows[part, place.start] = own[part]
            else:
                fill_numbers(column, own[part], out=rows[part, place.start])
    return _Grid(rows=rows, bounds=tuple(bounds), names=names, problems=problems)


def _first(column: Column) -> Feature:
    return features_of_columns((column,))[0]


def _common_length(checked: list[tuple[Column, slice, npt.NDArray[Any]]], *, where: str) -> int:
    first, _, own = checked[0]
    for column, _, other in checked:
        if len(other) != len(own):
            raise DataError(
                f"{where}, column {column.name!r} must have as many rows as column "
                f"{first.name!r}, got {len(other)} and {len(own)}"
            )
    return len(own)


def _find_columns(
    party: PartySpec, data: Any, *, with_names: bool
) -> tuple[list[Any], Any, list[Problem]]:
    """Return the party's columns in the study's order, None for those missing, and its ids."""
    where = f"party {party.name!r}"
    names = [column.name for column in party.columns]
    named = named_columns(data, where=where)
    if named is None:
        return _columns_of(_two_dimensional(data, names, where=where)), None, []
    found = [name for name, _ in named]
    problems = name_problems(party, found, with_ids=False) if with_names else []
    by_name = dict(named)
    return [by_name.get(name) for name in names], by_name.get(party.id_column), problems


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


def _columns_of(rows: Any) -> list[Any]:
    """Return the columns of an array.

    Those of an array of floats that has its rows one after the other are copied, a few rows at a
    time: column by column all of memory would be walked once for each.
    """
    n, d = rows.shape
    if np.ma.isMaskedArray(rows) or rows.dtype != np.float64 or rows.strides[0] < rows.strides[1]:
        return [rows[:, position] for position in range(d)]
    columns = np.empty((d, n))
    for start in range(0, n, _ROWS_AT_ONCE):
        part = slice(start, start + _ROWS_AT_ONCE)
        columns[:, part] = rows[part].T
    return list(columns)


def fill_numbers(column: Column, numbers: npt.NDArray[Any], *, out: IntArray) -> None:
    """Put a column's numbers on the grid of its bounds; NaN is missing."""
    # Only the rules "midpoint" (NaN, the middle), "skip" and a number leave anything missing here.
    stand_in = math.nan if isinstance(column.missing, str) else float(column.missing)
    feature = _first(column)
    low, high, bound = feature.low, feature.high, feature.bound
    to_grid_column(numbers, low=low, high=high, bound=bound, stand_in=stand_in, out=out)
    if column.missing == SKIP:
        out[np.isnan(numbers)] = NO_VALUE
