"""Where a party's table comes from: files, object stores, databases, tables in memory.

Every source ends in a table that has been checked against the study. What is small enough is read
into memory; the rest is walked on disk, and never whole in memory at any time.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from splitmeans.errors import DataError
from splitmeans.study import PartySpec
from splitmeans.table.batches import Batches, guarded
from splitmeans.table.checks.names import name_problems, study_columns
from splitmeans.table.checks.number_columns import texts_of_kinds
from splitmeans.table.checks.problems import refuse
from splitmeans.table.columns import read_array
from splitmeans.table.frames import as_stream, is_pandas
from splitmeans.table.options import AS_DEFAULT, SourceOptions
from splitmeans.table.sources.databases import read_query
from splitmeans.table.sources.files import find_files, read_files
from splitmeans.table.sources.place import find_place
from splitmeans.table.walk.interface import Table
from splitmeans.table.walk.stream import open_stream

_SLICE_ROWS = 2**16


def open_source(
    party: PartySpec,
    data: Any,
    *,
    query: str | None = None,
    options: SourceOptions = AS_DEFAULT,
) -> contextlib.AbstractContextManager[Table]:
    """Check a source against the study and open it as a table.

    `data` is a path or URL (`docs/guides/data-sources.md` has all kinds), a pandas or polars
    DataFrame, or anything with an Arrow C stream, which is read once. Of a database the result of
    `query` is the table.

    Raises:
        DataError: If the source cannot be read or breaks a rule of the study.
    """
    with _read(party, data, query=query) as batches:
        columns = [batches.names[place] for place in study_columns(party, batches.names)]
        if not columns or len(set(columns)) < len(columns):
            refuse(batches.problems, party=party.name, where=batches.where)
        return open_stream(party, batches, options)


@contextlib.contextmanager
def read_batches(party: PartySpec, data: Any, *, query: str | None = None) -> Iterator[Batches]:
    """Open a source as a stream of batches that hold the study's columns, as they are stored."""
    with _read(party, data, query=query) as batches:
        refuse(batches.problems, party=party.name, where=batches.where)
        yield batches


def _read(
    party: PartySpec, data: Any, *, query: str | None
) -> contextlib.AbstractContextManager[Batches]:
    if not isinstance(data, str | Path):
        return contextlib.nullcontext(_from_memory(party, data))
    place = find_place(data)
    if place.is_database:
        if not query or not query.strip():
            raise DataError(f"{place.shown}: a database needs a query for the study's columns")
        return read_query(place, query, party)
    if query is not None:
        raise DataError(
            f"{place.shown}: a query is for databases; files are read as they are (DuckDB queries "
            "files: duckdb:// with \"select ... from 'file.parquet'\")"
        )
    return read_files(find_files(place), party)


def _from_memory(party: PartySpec, data: Any) -> Batches:
    """Open a table of another library; rows in memory are handed on in slices."""
    where = f"the table of party {party.name!r}"
    total: int | None = None
    batches: Iterator[pa.RecordBatch]
    if is_pandas(data):
        names, total = [str(name) for name in data.columns], len(data)
        batches = _slices(data, study_columns(party, names), party)
    elif isinstance(data, pa.Table | pa.RecordBatch):
        names, total = data.schema.names, data.num_rows
        table = pa.Table.from_batches([data]) if isinstance(data, pa.RecordBatch) else data
        batches = iter(table.to_batches(max_chunksize=_SLICE_ROWS))
    elif (stream := as_stream(data, where=where)) is not None:
        names, batches = stream.schema.names, iter(stream)
    else:
        raise DataError(
            f"{where} must be a path, a URL, a data frame or an Arrow table, got "
            f"{type(data).__name__}"
        )

    def explain(problem: Exception) -> DataError:
        return DataError(f"{where}: cannot be read ({type(problem).__name__})")

    return Batches(
        where=where,
        names=tuple(names),
        total=total,
        stream=guarded(batches, party, explain=explain),
        problems=tuple(name_problems(party, names, with_ids=True)),
    )


def _slices(frame: Any, places: list[int], party: PartySpec) -> Iterator[pa.RecordBatch]:
    """Yield a pandas DataFrame's columns as Arrow, some rows at a time."""
    numbers = {column.name for column in party.columns if not column.is_categorical}
    for start in range(0, len(frame), _SLICE_ROWS):
        part = frame.iloc[start : start + _SLICE_ROWS, places]
        names = [str(name) for name in part.columns]
        try:
            yield pa.RecordBatch.from_pandas(part, preserve_index=False)
        except (pa.ArrowException, TypeError, ValueError):
            columns = [
                _array_of(part.iloc[:, place], name, is_number=name in numbers)
                for place, name in enumerate(names)
            ]
            yield pa.RecordBatch.from_arrays(columns, names=names)


def _array_of(column: Any, name: str, *, is_number: bool) -> pa.Array:
    """Return a column; numbers with values of several kinds as text of each kind.

    What is no text stands for its kind alone there: enough to refuse it, and nothing else. Ids and
    categories that have numbers beside text are refused.
    """
    try:
        return read_array(column, what=f"column {name!r}")
    except DataError:
        texts = texts_of_kinds(column) if is_number else None
        if texts is None:
            raise
        return texts
