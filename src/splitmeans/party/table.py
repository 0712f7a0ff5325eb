"""A party's table: read, checked, clipped and quantised before the party joins a run.

Rules R7, R12 and R13. Every check on data happens here, so no
later step fails in a way that the server could see. A row's grid values depend on that row and the
study alone: each operation works element by element, and nothing is fitted to the data.

Errors name the party, the column, the rule and row numbers, never a value.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from splitmeans._types import FloatArray, IntArray, LabelArray
from splitmeans.engine.memory import MemoryRows, MemoryUsers
from splitmeans.errors import DataError
from splitmeans.features import Feature, features_of
from splitmeans.idrules import AS_IS, IdRules
from splitmeans.kernels.quantise import to_grid_column
from splitmeans.party.columns import is_text, name_rows, normalised_text, read_array
from splitmeans.party.ids import canonical_ids
from splitmeans.shares import even_shares
from splitmeans.study import Column, PartySpec

_Flags = npt.NDArray[np.bool_]

_ROWS_AT_ONCE = 8192


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class PartyTable:
    """A party's table in memory; see `engine.walk.Table` for what a run does with it.

    Attributes:
        party: The party's name.
        ids: Canonical ids, one a row.
        raw_rows: Grid integers, shape (n, d); feature j lies within plus or minus its bound.
    """

    party: str
    ids: pa.LargeStringArray
    raw_rows: IntArray

    def __len__(self) -> int:
        return len(self.raw_rows)

    def __repr__(self) -> str:
        rows, columns = self.raw_rows.shape
        return f"<PartyTable party={self.party!r} rows={rows} columns={columns}>"

    @property
    def rows(self) -> MemoryRows:
        """The rows on the grid."""
        return MemoryRows(self.raw_rows)

    @property
    def users(self) -> MemoryUsers:
        """The users, all with label 0."""
        return MemoryUsers(ids=self.ids, labels=np.zeros(len(self), dtype=np.int32))

    def labelled(self, label: Callable[[IntArray], LabelArray]) -> MemoryUsers:
        """Return the users with the labels of their rows."""
        return MemoryUsers(ids=self.ids, labels=self.rows.label(label))


def prepare_table(
    party: PartySpec, data: Any, *, ids: Any = None, rules: IdRules = AS_IS
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

    Raises:
        DataError: If the table breaks a rule of the study.
    """
    where = f"party {party.name!r}"
    stream = as_stream(data, where=where)
    rows, id_values = grid_rows(party, data) if stream is None else _grid_stream(party, stream)
    if len(rows) == 0:
        raise DataError(f"{where}: the table must have at least one row, got none")
    own_ids = id_values if ids is None else ids
    canonical = _find_ids(len(rows), own_ids, where=where, rules=rules)
    return PartyTable(party=party.name, ids=canonical, raw_rows=rows)


def as_stream(data: Any, *, where: str) -> pa.RecordBatchReader | None:
    """Return a reader of what has to be read as a stream; None for what is in memory already.

    Libraries are recognised by what they offer, so none is ever imported.
    """
    if isinstance(data, pa.Table | pa.RecordBatch) or hasattr(data, "iloc"):
        return None
    if not hasattr(data, "__arrow_c_stream__") or hasattr(data, "to_arrow"):  # polars
        return None
    try:
        if isinstance(data, pa.RecordBatchReader):
            return data
        return pa.RecordBatchReader.from_stream(data)
    except (pa.ArrowException, TypeError, ValueError):
        raise DataError(f"{where}: the data must be a table, got one column of it") from None


def study_columns(party: PartySpec, names: list[str]) -> list[int]:
    """Return the places of the columns that the study needs, in the table's order."""
    wanted = {party.id_column, *(column.name for column in party.columns)}
    return [place for place, name in enumerate(names) if name in wanted]


def _grid_stream(party: PartySpec, stream: pa.RecordBatchReader) -> tuple[IntArray, Any]:
    """Put a stream on the grid batch by batch; of the rows themselves memory holds one batch."""
    places = study_columns(party, stream.schema.names)
    empty = pa.Table.from_batches([], stream.schema).select(places)
    # The columns are checked even if no batch comes.
    none, no_ids = grid_rows(party, empty)
    rows, ids = [none], [no_ids]
    start = 0
    for batch in stream:
        part, id_values = grid_rows(party, batch.select(places), first_row=start)
        rows.append(part)
        ids.append(id_values)
        start += len(part)
    whole = None if ids[0] is None else pa.chunked_array(ids[1:], type=ids[0].type)
    return np.concatenate(rows), whole


def grid_rows(party: PartySpec, data: Any, *, first_row: int = 0) -> tuple[IntArray, Any]:
    """Check rows against the study; return them on the grid, shape (n, d), and the ids' column.

    Args:
        party: The party's columns, bounds and rules for missing values.
        data: See `prepare_table`.
        first_row: Row number of the first one in the whole table, for errors.
    """
    where = f"party {party.name!r}"
    columns, id_values = find_columns(party, data, where=where)
    features = features_of(party)
    checked: list[tuple[Column, int, npt.NDArray[Any]]] = []
    place = 0
    for column, values in zip(party.columns, columns, strict=True):
        read = _grid_categories if column.categories else _checked_numbers
        here = f"{where}, column {column.name!r}"
        own = read(column, values, features[place], where=here, first_row=first_row)
        checked.append((column, place, own))
        place += max(1, len(column.levels))
    n = _common_length(checked, where=where)
    rows = np.empty((n, len(features)), dtype=np.int64)
    # A few rows of all columns at a time: the part of the result being written stays in cache.
    for start in range(0, n, _ROWS_AT_ONCE):
        part = slice(start, start + _ROWS_AT_ONCE)
        for column, place, own in checked:
            if column.categories:
                rows[part, place : place + len(column.levels)] = own[part]
            else:
                _fill_numbers(column, own[part], features[place], out=rows[part, place])
    return rows, id_values


def _common_length(checked: list[tuple[Column, int, npt.NDArray[Any]]], *, where: str) -> int:
    first, _, own = checked[0]
    for column, _, other in checked:
        if len(other) != len(own):
            raise DataError(
                f"{where}, column {column.name!r} must have as many rows as column "
                f"{first.name!r}, got {len(other)} and {len(own)}"
            )
    return len(own)


def _find_ids(n: int, values: Any, *, where: str, rules: IdRules) -> pa.LargeStringArray:
    if values is None:
        values, rules = np.arange(n), AS_IS  # row numbers are nobody's ids
    try:
        canonical = canonical_ids(values, rules=rules)
    except DataError as problem:
        raise DataError(f"{where}: {problem}") from None
    if len(canonical) != n:
        raise DataError(f"{where}: ids must have one id for each of {n} rows, got {len(canonical)}")
    return canonical


def find_columns(party: PartySpec, data: Any, *, where: str) -> tuple[list[Any], Any]:
    """Return the values of the party's columns in the study's order, and of its id column."""
    names = [column.name for column in party.columns]
    named = _named_columns(data, where=where)
    if named is None:
        rows = _two_dimensional(data, names, where=where)
        return [rows[:, position] for position in range(len(names))], None
    found = [name for name, _ in named]
    for name in names:
        if name not in found:
            raise DataError(
                f"{where} must have the column {name!r} of the study; the table has no column of "
                "this name (case and spaces count)"
            )
    for name in (*names, party.id_column):
        if found.count(name) > 1:
            raise DataError(f"{where}: the table must have column {name!r} once, not twice or more")
    by_name = dict(named)
    return [by_name[name] for name in names], by_name.get(party.id_column)


def _named_columns(data: Any, *, where: str) -> list[tuple[str, Any]] | None:
    """Return names and columns of a table, or None for a plain array.

    pandas and polars are recognised by what they offer, so neither is ever imported.
    """
    if isinstance(data, Mapping):
        return [(str(name), values) for name, values in data.items()]
    if hasattr(data, "iloc") and hasattr(data, "columns"):
        # pandas, by column: a whole-table conversion fails on columns outside the study.
        return [(str(name), data.iloc[:, place]) for place, name in enumerate(data.columns)]
    if hasattr(data, "to_arrow") and hasattr(data, "columns"):  # polars
        data = data.to_arrow()
    elif (stream := as_stream(data, where=where)) is not None:
        data = stream.read_all()
    if isinstance(data, pa.Table | pa.RecordBatch):
        return list(zip(data.schema.names, data.columns, strict=True))
    return None


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


def _checked_numbers(
    column: Column, values: Any, feature: Feature, *, where: str, first_row: int
) -> FloatArray:
    """Return the column's numbers, NaN where the study allows them to be missing."""
    numbers = read_numbers(values, where=where)
    if column.missing == "error":
        _refuse_missing(np.isnan(numbers), "'midpoint'", where=where, first_row=first_row)
    infinite = np.isinf(numbers)
    if infinite.any():
        raise DataError(
            f"{where} must hold finite numbers; see {name_rows(infinite, first_row=first_row)}; "
            "write a number or leave the value out and set the column's missing rule in the study"
        )
    return numbers


def _fill_numbers(
    column: Column, numbers: npt.NDArray[Any], feature: Feature, *, out: IntArray
) -> None:
    # Only the rules "midpoint" (NaN, the middle) and a number leave anything missing here.
    stand_in = math.nan if isinstance(column.missing, str) else float(column.missing)
    low, high, bound = feature.low, feature.high, feature.bound
    to_grid_column(numbers, low=low, high=high, bound=bound, stand_in=stand_in, out=out)


def read_numbers(values: Any, *, where: str) -> FloatArray:
    """Return numbers as float64 with NaN where missing."""
    if _is_plain_numbers(values):
        return np.ascontiguousarray(values, dtype=np.float64)
    array = read_array(values, what=where)
    kind = array.type
    if pa.types.is_boolean(kind) or pa.types.is_null(kind):
        array = array.cast(pa.int8())
    elif pa.types.is_decimal(kind):
        array = array.cast(pa.float64())
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        raise DataError(
            f"{where} must hold numbers, got {kind}; convert it, or give the column categories "
            "in the study"
        )
    if array.null_count == 0:
        return np.ascontiguousarray(array.to_numpy(zero_copy_only=False), dtype=np.float64)
    # Integers beyond 2^53 are rounded to the nearest float, which Arrow's own cast refuses.
    numbers = array.fill_null(0).to_numpy(zero_copy_only=False).astype(np.float64)
    numbers[np.asarray(array.is_null())] = np.nan
    return np.asarray(numbers)


def _is_plain_numbers(values: Any) -> bool:
    is_array = isinstance(values, np.ndarray) and not np.ma.isMaskedArray(values)
    return is_array and values.ndim == 1 and values.dtype.kind in "fiub"


def _grid_categories(
    column: Column, values: Any, feature: Feature, *, where: str, first_row: int
) -> IntArray:
    """Return one feature for each level, shape (n, levels); all have the same bound."""
    text = _read_categories(values, where=where, first_row=first_row)
    missing = np.asarray(text.is_null())
    if column.missing == "error":
        ways = "'level' (a level of its own) or 'spread' (an equal share of each category)"
        _refuse_missing(missing, ways, where=where, first_row=first_row)
    listed = normalised_text(pa.array(column.categories, pa.large_string()))
    position = pc.index_in(text, value_set=listed)
    unknown = np.asarray(position.is_null()) & ~missing
    if unknown.any():
        raise DataError(
            f"{where} must hold only categories that the study lists (case and spaces count); see "
            f"{name_rows(unknown, first_row=first_row)}; correct the rows or agree on a longer list"
        )
    # A missing one is at the level behind the listed ones, if the study has that level.
    chosen = position.fill_null(len(column.categories)).to_numpy(zero_copy_only=False)
    is_chosen = chosen[:, np.newaxis] == np.arange(len(column.levels))
    grid = np.where(is_chosen, feature.bound, -feature.bound).astype(np.int64)
    if column.missing == "spread":
        grid[missing] = even_shares(len(column.levels), bound=feature.bound)
    return grid


def _read_categories(values: Any, *, where: str, first_row: int) -> pa.LargeStringArray:
    array = read_array(values, what=where)
    if pa.types.is_floating(array.type):
        # Whole numbers with gaps arrive as floats from pandas; 2.0 means the category "2".
        numbers = read_numbers(values, where=where)
        missing = np.isnan(numbers)
        whole = np.isfinite(numbers) & (np.rint(numbers) == numbers) & (np.abs(numbers) < 2**53)
        if (~whole & ~missing).any():
            rows = name_rows(~whole & ~missing, first_row=first_row)
            raise DataError(f"{where} must hold text or whole numbers; see {rows}")
        array = pa.array(np.where(missing, 0, numbers).astype(np.int64), mask=missing)
    if not (is_text(array.type) or pa.types.is_integer(array.type) or pa.types.is_null(array.type)):
        raise DataError(f"{where} must hold text or whole numbers, got {array.type}")
    return normalised_text(array)


def _refuse_missing(missing: _Flags, ways: str, *, where: str, first_row: int) -> None:
    if missing.any():
        raise DataError(
            f"{where} must not have missing values; see "
            f"{name_rows(missing, first_row=first_row)}; fill them in, or set missing = {ways} "
            "for this column in the study"
        )
