"""A query's rows as batches: PostgreSQL and SQLite by ADBC, DuckDB by its own library.

The query is the party's own. Everything a driver says may quote a value, the query or the address,
so none of it is shown: errors say in our words what went wrong.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc

from splitmeans.errors import DataError
from splitmeans.study import PartySpec
from splitmeans.table.batches import Batches, guarded
from splitmeans.table.checks.names import name_problems
from splitmeans.table.columns import is_text
from splitmeans.table.sources.database_errors import (
    explain_duckdb,
    explain_postgresql,
    explain_sqlite,
)
from splitmeans.table.sources.place import Place

# SQLite's columns have no types; the driver takes them from the values of the first batch.
_SQLITE_ROWS = 2**16
_POSTGRESQL_BYTES = 4 * 2**20
# How it writes a floating-point number in a column that has text as well.
_ROUNDED = r"\A-?[0-9]\.[0-9]{6}e[+-][0-9]+\z"


@contextlib.contextmanager
def read_query(place: Place, query: str, party: PartySpec) -> Iterator[Batches]:
    """Run a query and open its rows as batches; the connection lasts as long as the context.

    Raises:
        DataError: If the database cannot be reached, refuses the login or the query, or the result
            lacks a column of the study; also later, from the stream, if the connection is lost.
    """
    connect, explain = _DATABASES[place.kind]

    def in_words(problem: Exception) -> DataError:
        return DataError(f"{place.shown}: {explain(problem)}")

    with contextlib.ExitStack() as opened:
        try:
            reader = connect(place, query, opened)
        except DataError:
            raise
        except Exception as problem:  # whatever a driver raises
            raise in_words(problem) from None
        names = tuple(reader.schema.names)
        problems = name_problems(party, names, what="query's result", with_ids=True)
        numbers = {column.name for column in party.columns if not column.is_categorical}
        batches = _plain(reader, numbers)
        if place.kind == "sqlite":
            batches = _without_rounded(batches, numbers, where=place.shown)
        stream = guarded(batches, party, explain=in_words)
        yield Batches(
            where=place.shown, names=names, total=None, stream=stream, problems=tuple(problems)
        )


def _postgresql(place: Place, query: str, opened: contextlib.ExitStack) -> pa.RecordBatchReader:
    driver = _driver("adbc_driver_postgresql.dbapi", place)
    connection = opened.enter_context(contextlib.closing(driver.connect(place.target)))
    cursor = opened.enter_context(contextlib.closing(connection.cursor()))
    # One query, one snapshot; and nothing that could change the party's data by mistake.
    cursor.execute("SET TRANSACTION READ ONLY")
    cursor.adbc_statement.set_options(
        **{"adbc.postgresql.batch_size_hint_bytes": str(_POSTGRESQL_BYTES)}
    )
    cursor.execute(query)
    return cursor.fetch_record_batch()


def _sqlite(place: Place, query: str, opened: contextlib.ExitStack) -> pa.RecordBatchReader:
    _check_file(place)
    driver = _driver("adbc_driver_sqlite.dbapi", place)
    uri = f"file:{quote(str(Path(place.target).absolute()))}?mode=ro"
    connection = opened.enter_context(contextlib.closing(driver.connect(uri)))
    cursor = opened.enter_context(contextlib.closing(connection.cursor()))
    cursor.adbc_statement.set_options(**{"adbc.sqlite.query.batch_rows": str(_SQLITE_ROWS)})
    cursor.execute(query)
    return cursor.fetch_record_batch()


def _duckdb(place: Place, query: str, opened: contextlib.ExitStack) -> pa.RecordBatchReader:
    driver = _driver("duckdb", place)
    if place.target:
        _check_file(place)
    connection = driver.connect(place.target or ":memory:", read_only=bool(place.target))
    opened.enter_context(contextlib.closing(connection))
    result = connection.sql(query)
    if result is None:
        raise DataError(f"{place.shown}: the query must give rows, as a SELECT does")
    # As a stream: other ways to fetch a result hold all of it in memory first.
    return pa.RecordBatchReader.from_stream(result)


def _check_file(place: Place) -> None:
    if not Path(place.target).is_file():
        raise DataError(f"{place.shown}: there is no such file")


def _driver(module: str, place: Place) -> ModuleType:
    # Imported where it is used: an extra, and most parties have files.
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError:
        raise DataError(
            f"{place.shown}: databases need more packages: pip install 'splitmeans[sql]'"
        ) from None


def _plain(batches: Iterable[pa.RecordBatch], numbers: set[str]) -> Iterator[pa.RecordBatch]:
    """Yield batches with PostgreSQL's numeric columns, which come as text, as numbers."""
    for batch in batches:
        columns = [
            _plain_column(column, as_number=name in numbers)
            for name, column in zip(batch.schema.names, batch.columns, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _without_rounded(
    batches: Iterable[pa.RecordBatch], numbers: set[str], *, where: str
) -> Iterator[pa.RecordBatch]:
    """Refuse ids and categories that are numbers with a decimal point in some rows, text in others.

    The number 2.0 is the category "2" in a column of numbers, and "2.000000e+00" beside text: one
    row would change what all others are (rule R7).
    """
    for batch in batches:
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            if name in numbers or not is_text(column.type):
                continue
            if pc.any(pc.match_substring_regex(column, pattern=_ROUNDED)).as_py():
                raise DataError(
                    f"{where}: column {name!r} must not have text beside numbers with a decimal "
                    f"point; write one kind in the query, as cast({name} as text)"
                )
        yield batch


def _plain_column(column: pa.Array, *, as_number: bool) -> pa.Array:
    # By name: the type itself is only in newer versions of Arrow, whose older ones give its text.
    if getattr(column.type, "extension_name", "") != "arrow.opaque":
        return column
    text = column.storage
    if not as_number or column.type.type_name != "numeric":
        return text
    return pc.cast(text, pa.float64())


_Connect = Callable[[Place, str, contextlib.ExitStack], pa.RecordBatchReader]
_DATABASES: dict[str, tuple[_Connect, Callable[[Any], str]]] = {
    "postgresql": (_postgresql, explain_postgresql),
    "sqlite": (_sqlite, explain_sqlite),
    "duckdb": (_duckdb, explain_duckdb),
}
