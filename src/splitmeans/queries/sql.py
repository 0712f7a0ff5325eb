"""SQL over a result, by DuckDB, with intervals from the replicates.

A query runs on the published rows and once more on each replicate: other weights, other values of
the numbers that it names, and other segments of rows near a border if it names those. Columns of
its answer that follow the weights are figures and get an interval; the others say what a row is
about (a category, a bin), and answers are matched by them.

DuckDB runs in memory, without files, network, extensions or settings that a query could change: it
sees the two tables and nothing else. Post-processing of published values, so it costs no privacy.
"""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from splitmeans._types import FloatArray
from splitmeans.errors import ParameterError
from splitmeans.queries.rows import Rows, replicate_segments, rows_of, segment_table
from splitmeans.result.intervals import why_none
from splitmeans.result.result import Result
from splitmeans.synopsis.column_places import ColumnPlace
from splitmeans.synopsis.replicates.replicates import Replicates, half_width

# Of a row that is in fewer replicates than this nothing is known.
_LEAST_FOUND = 0.9
_MOST_ROWS = 10_000
# A limit at the end says which rows are shown, not what they are about.
_LIMIT = re.compile(r"\s+LIMIT\s+\d+(\s+OFFSET\s+\d+)?\s*$", re.IGNORECASE)
# The column, not the table `segments`; all columns are asked for by a star.
_SEGMENT = re.compile(r"\bsegment\b|\*", re.IGNORECASE)
_SETTINGS = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
    "memory_limit": "1GB",
    "threads": "1",
}
_MACRO = "CREATE MACRO wmean(x, w) AS sum(w * x) / sum(w)"


@dataclass(frozen=True, kw_only=True, eq=False)
class SqlAnswer:
    """What a query found.

    Attributes:
        columns: Names of its columns.
        rows: Its rows, in its order.
        figures: Which columns follow the weights.
        low: For each row and figure the lower end of the 95 % interval, None where there is none.
        high: The upper ends.
        note: What to know, empty if nothing.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    figures: tuple[int, ...]
    low: tuple[tuple[float | None, ...], ...]
    high: tuple[tuple[float | None, ...], ...]
    note: str

    @property
    def all_columns(self) -> tuple[str, ...]:
        """The columns, each figure followed by the ends of its interval."""
        found: list[str] = []
        for at, name in enumerate(self.columns):
            found += [name, f"{name} low", f"{name} high"] if at in self.figures else [name]
        return tuple(found)

    def all_rows(self) -> list[tuple[Any, ...]]:
        """The rows, with the ends of intervals in their places."""
        found = []
        for row, low, high in zip(self.rows, self.low, self.high, strict=True):
            cells: list[Any] = []
            for at, value in enumerate(row):
                cells.append(value)
                if at in self.figures:
                    which = self.figures.index(at)
                    cells += [low[which], high[which]]
            found.append(tuple(cells))
        return found


def ask_sql(result: Result, query: str) -> SqlAnswer:
    """Run a query on the tables `synopsis` and `segments` of a result.

    Raises:
        ParameterError: If DuckDB is not installed, or the query is no single SELECT that runs.
    """
    connection = _connection()
    try:
        _check(connection, query)
        return _Asked(result, query, connection).answer()
    finally:
        connection.close()


def answer_frame(answer: SqlAnswer) -> Any:
    """Return an answer as a data frame; its note is in `attrs`."""
    try:
        import pandas as pd
    except ImportError as problem:
        raise ParameterError("ask needs pandas: pip install 'splitmeans[pandas]'") from problem

    frame = pd.DataFrame(answer.all_rows(), columns=list(answer.all_columns))
    frame.attrs["note"] = answer.note
    return frame


class _Asked:
    def __init__(self, result: Result, query: str, connection: Any) -> None:
        self.query, self.connection = query.strip().rstrip(";"), connection
        self.synopsis = result.synopsis
        self.published = rows_of(result, self.synopsis)
        lower = query.casefold()
        self.named: tuple[ColumnPlace, ...] = tuple(
            place for place in self.published.places if place.column.casefold() in lower
        )
        self.result = result
        if "segments" in lower:
            connection.register("segments", segment_table(result))

    def answer(self) -> SqlAnswer:
        columns, rows = self._run(self.published, self.synopsis.weights)
        figures = self._figures(rows, n_columns=len(columns))
        nothing: tuple[tuple[float | None, ...], ...] = tuple((None,) * len(figures) for _ in rows)
        note = ""
        low = high = nothing
        keys = [_key(row, figures) for row in rows]
        if "weight" not in self.query.casefold():
            if "synopsis" in self.query.casefold():
                note = "the query does not use weight: it counts pseudo-users, not users"
        elif not figures:
            note = "no column follows the weights, so none has an interval"
        elif len(set(keys)) < len(keys):
            note = "rows cannot be told apart but by their figures, so these have no intervals"
        elif self.synopsis.replicates is None:
            note = why_none(self.result)
        else:
            low, high = self._intervals(rows, keys, figures)
            if rows and all(end is None for row in low for end in row):
                note = "no row is there in nine of ten replicates, so none has an interval"
        return SqlAnswer(columns=columns, rows=rows, figures=figures, low=low, high=high, note=note)

    def _run(
        self,
        rows: Rows,
        weights: FloatArray,
        moved: dict[str, FloatArray] | None = None,
        segments: Any = None,
        query: str | None = None,
    ) -> tuple[tuple[str, ...], tuple[tuple[Any, ...], ...]]:
        self.connection.register("synopsis", rows.table(weights, moved, segments))
        # A line of its own for the bracket: the query may end in a comment.
        limited = f"SELECT * FROM ({query or self.query}\n) LIMIT {_MOST_ROWS + 1}"
        try:
            found = self.connection.execute(limited)
            fetched = found.fetchall()
            columns = tuple(item[0] for item in found.description)
        except Exception as problem:
            raise ParameterError(_told(problem, self.published.places)) from problem
        finally:
            self.connection.unregister("synopsis")
        if len(fetched) > _MOST_ROWS:
            raise ParameterError(
                f"the answer has more than {_MOST_ROWS:,} rows: group them, or add a LIMIT; "
                "synopsis.parquet has all rows"
            )
        return columns, tuple(fetched)

    def _figures(self, rows: Sequence[tuple[Any, ...]], *, n_columns: int) -> tuple[int, ...]:
        """Return the columns of numbers that change if weights do."""
        factors = np.random.default_rng(1).uniform(0.5, 1.5, len(self.synopsis.weights))
        _, other = self._run(self.published, self.synopsis.weights * factors)
        found = []
        for at in range(n_columns):
            here, there = _numbers(rows, at), _numbers(other, at)
            if here is not None and there is not None and not _alike(here, there):
                found.append(at)
        return tuple(found)

    def _intervals(
        self, rows: Sequence[tuple[Any, ...]], keys: list[Any], figures: tuple[int, ...]
    ) -> tuple[tuple[tuple[float | None, ...], ...], tuple[tuple[float | None, ...], ...]]:
        replicates = self.synopsis.replicates
        assert replicates is not None
        everyone = rows_of(self.result, replicates.synopsis)
        names = [place.name for place in self.named]
        weights = replicates.weights(names)
        numbers = {
            place.name: replicates.values(place.name) for place in self.named if not place.levels
        }
        letters, query = self._letters(replicates), self._without_limit()
        place_of = {key: at for at, key in enumerate(keys)}
        errors = np.full((replicates.n, len(rows), len(figures)), math.nan)
        for draw in range(replicates.n):
            moved = {name: np.ascontiguousarray(own[:, draw]) for name, own in numbers.items()}
            _, again = self._run(everyone, weights[:, draw], moved, letters(draw), query)
            for row in again:
                at = place_of.get(_key(row, figures))
                if at is not None:
                    errors[draw, at] = [
                        _difference(row[column], rows[at][column]) for column in figures
                    ]
        counts = self._are_counts(rows, figures)
        low, high = [], []
        for at, row in enumerate(rows):
            ends = [
                _ends(row[column], errors[:, at, which], least=0.0 if counts[which] else -math.inf)
                for which, column in enumerate(figures)
            ]
            low.append(tuple(one[0] for one in ends))
            high.append(tuple(one[1] for one in ends))
        return tuple(low), tuple(high)

    def _without_limit(self) -> str:
        """Return the query for replicates: which rows are the first may be others there."""
        found = _LIMIT.sub("", self.query)
        try:
            self._run(self.published, self.synopsis.weights, query=found)
        except ParameterError:  # there are too many of them
            return self.query
        return found

    def _letters(self, replicates: Replicates) -> Callable[[int], Any]:
        """Return what has the letters of all rows in a replicate, if the query asks for them."""
        if not _SEGMENT.search(self.query) or self.result.published.k == 0:
            return lambda draw: None
        names = pa.array(self.result.published.letters, pa.string())
        found = replicate_segments(self.result, replicates)
        return lambda draw: names.take(pa.array(found[:, draw]))

    def _are_counts(self, rows: Sequence[tuple[Any, ...]], figures: tuple[int, ...]) -> list[bool]:
        """Say which figures double with the weights and cannot be negative."""
        if any(place.low < 0 for place in self.named):
            return [False] * len(figures)
        _, other = self._run(self.published, 2 * self.synopsis.weights)
        found = []
        for at in figures:
            here, there = _numbers(rows, at), _numbers(other, at)
            doubled = here is not None and there is not None and _alike(2 * here, there)
            found.append(bool(doubled and here is not None and np.all(here >= 0)))
        return found


def _connection() -> Any:
    try:
        import duckdb
    except ImportError as problem:
        raise ParameterError(
            "SQL needs DuckDB, which is not installed: pip install 'splitmeans[sql]'"
        ) from problem
    connection = duckdb.connect(":memory:", config=_SETTINGS)
    connection.execute(_MACRO)
    connection.execute("SET lock_configuration = true")
    return connection


def _check(connection: Any, query: str) -> None:
    """Refuse what is not one SELECT."""
    import duckdb

    try:
        statements = connection.extract_statements(query)
    except duckdb.Error as problem:
        raise ParameterError(f"the query cannot be read: {problem}") from problem
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise ParameterError("the query must be one SELECT, over the tables synopsis and segments")


def _told(problem: Exception, places: Sequence[ColumnPlace]) -> str:
    columns = ", ".join(f'"{place.name}"' for place in places)
    return (
        f"the query does not run: {problem}\n"
        f"The table synopsis has the columns weight, segment, {columns}; names are written in "
        "double quotes"
    )


def _key(row: tuple[Any, ...], figures: tuple[int, ...]) -> tuple[Any, ...]:
    """Return what a row is about; repr, because a cell may be a list."""
    return tuple(
        f"{value:.9g}" if isinstance(value, float) else repr(value)
        for at, value in enumerate(row)
        if at not in figures
    )


def _is_number(value: Any) -> bool:
    return value is None or (hasattr(value, "__float__") and not isinstance(value, bool | str))


def _numbers(rows: Sequence[tuple[Any, ...]], at: int) -> FloatArray | None:
    """Return the numbers of a column in order, None if it has others."""
    values = [row[at] for row in rows]
    if not values or all(value is None for value in values):
        return None
    if not all(_is_number(value) for value in values):
        return None
    return np.sort([math.nan if value is None else float(value) for value in values])


def _alike(first: FloatArray, second: FloatArray) -> bool:
    return first.shape == second.shape and np.allclose(first, second, rtol=1e-9, equal_nan=True)


def _difference(value: Any, published: Any) -> float:
    return math.nan if value is None or published is None else float(value) - float(published)


def _ends(value: Any, errors: FloatArray, *, least: float) -> tuple[float | None, float | None]:
    found = errors[np.isfinite(errors)]
    if value is None or len(found) < _LEAST_FOUND * len(errors):
        return None, None
    half = float(half_width(found))
    return max(float(value) - half, least), float(value) + half
