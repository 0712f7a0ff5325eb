"""Where a party's table comes from: files, object stores, databases, tables in memory.

Every source ends in a table that has been checked against the study. What is small enough is read
into memory; the rest is walked on disk, and never whole in memory at any time.
"""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from splitmeans.errors import DataError
from splitmeans.study import PartySpec
from splitmeans.study.id_rules import AS_IS, IdRules
from splitmeans.table.batches import Batches, guarded
from splitmeans.table.checks.facts import TableFacts, ignore_facts
from splitmeans.table.checks.names import name_problems, study_columns
from splitmeans.table.checks.number_columns import texts_of_kinds
from splitmeans.table.checks.problems import refuse
from splitmeans.table.columns import read_array
from splitmeans.table.frames import as_stream, is_pandas, without_polars
from splitmeans.table.sources.csv_files import TextAmongNumbers
from splitmeans.table.sources.databases import read_query
from splitmeans.table.sources.file_list import Files
from splitmeans.table.sources.files import find_files, read_files
from splitmeans.table.sources.place import FILE, find_place
from splitmeans.table.walk.interface import Table
from splitmeans.table.walk.rowgroups import open_parquet
from splitmeans.table.walk.stored import Progress, silent
from splitmeans.table.walk.stream import ROWS_IN_MEMORY, open_stream, room_for
from splitmeans.table.walk.workers import available_processors

_SLICE_ROWS = 2**16


def open_source(
    party: PartySpec,
    data: Any,
    *,
    query: str | None = None,
    rules: IdRules = AS_IS,
    expected_users: int | None = None,
    notice: Callable[[TableFacts], None] = ignore_facts,
    allow_clipping: bool = False,
    workers: int | None = None,
    spool: Path | None = None,
    progress: Progress = silent,
) -> contextlib.AbstractContextManager[Table]:
    """Check a source against the study and open it as a table.

    Args:
        party: The party's columns, bounds and id column.
        data: A path or URL (`docs/guides/data-sources.md` has all kinds), a pandas or polars
            DataFrame, or anything with an Arrow C stream. A stream is read once.
        query: For a database, the query whose result is the table.
        rules: The study's rules for ids (`Study.id_rules`).
        expected_users: What the study expects. With it, as in a run, this public number decides
            whether the table is in memory or on disk, and by how many processes it is walked, as
            long as the table is not several times larger; without it the table's size does.
        notice: Told how the table looks, once its values have passed all checks.
        allow_clipping: Take the table also if more than half of a column's values lie outside the
            study's bounds, where they become the bound.
        workers: Processes for a large table; see `open_parquet`.
        spool: Folder for a large table's blocks.
        progress: Called as a large table is walked.

    Raises:
        DataError: If the source cannot be read or breaks a rule of the study.
    """
    options: dict[str, Any] = {
        "rules": rules,
        "notice": notice,
        "allow_clipping": allow_clipping,
        "workers": workers,
        "spool": spool,
        "progress": progress,
    }
    files = local_parquet(data)
    rows = 0 if files is None else _parquet_rows(files)
    many = rows > ROWS_IN_MEMORY
    if expected_users is not None:
        # Headroom first: a table that is far larger than agreed is better late than never.
        room = room_for(party, expected_users=expected_users)
        many = expected_users > ROWS_IN_MEMORY or 0 < room.rows < rows
        if workers is None:
            options["workers"] = available_processors() if many else 1
    if files is not None and many:
        paths = [Path(path) for path in files.paths]
        return open_parquet(party, paths, where=files.where, **options)
    options["expected_users"] = expected_users
    with contextlib.suppress(TextAmongNumbers):
        return _open_batches(party, _read(party, data, query=query), **options)
    # Once more, to say of all columns what was found where.
    return _open_batches(party, _read(party, data, query=query, as_text=True), **options)


def _open_batches(
    party: PartySpec, opened: contextlib.AbstractContextManager[Batches], **options: Any
) -> contextlib.AbstractContextManager[Table]:
    with opened as batches:
        columns = [batches.names[place] for place in study_columns(party, batches.names)]
        if not columns or len(set(columns)) < len(columns):
            refuse(batches.problems, party=party.name, where=batches.where)
        return open_stream(
            party,
            batches.stream,
            where=batches.where,
            total=batches.total,
            problems=batches.problems,
            **options,
        )


@contextlib.contextmanager
def read_batches(party: PartySpec, data: Any, *, query: str | None = None) -> Iterator[Batches]:
    """Open a source as a stream of batches that hold the study's columns, as they are stored."""
    with _read(party, data, query=query) as batches:
        refuse(batches.problems, party=party.name, where=batches.where)
        yield batches


@contextlib.contextmanager
def _read(
    party: PartySpec, data: Any, *, query: str | None, as_text: bool = False
) -> Iterator[Batches]:
    if not isinstance(data, str | Path):
        yield _from_memory(party, data)
        return
    place = find_place(data)
    if place.is_database:
        if not query or not query.strip():
            raise DataError(f"{place.shown}: a database needs a query for the study's columns")
        with read_query(place, query, party) as batches:
            yield batches
        return
    if query is not None:
        raise DataError(
            f"{place.shown}: a query is for databases; files are read as they are (DuckDB queries "
            "files: duckdb:// with \"select ... from 'file.parquet'\")"
        )
    with read_files(find_files(place), party, as_text=as_text) as batches:
        yield batches


def local_parquet(data: Any) -> Files | None:
    """Return the parquet files on this machine that a source is, None for any other source."""
    if not isinstance(data, str | Path):
        return None
    place = find_place(data)
    if place.kind != FILE:
        return None
    files = find_files(place)
    return files if files.suffix == ".parquet" else None


def _parquet_rows(files: Files) -> int:
    rows = 0
    for path in files.paths:
        try:
            rows += int(pq.read_metadata(path).num_rows)
        except (OSError, pa.ArrowException, ValueError):
            raise DataError(f"{path}: cannot be read as a parquet file") from None
    return rows


def _from_memory(party: PartySpec, data: Any) -> Batches:
    """Open a table of another library; rows in memory are handed on in slices."""
    where = f"the table of party {party.name!r}"
    data = without_polars(data)
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
    problems = name_problems(party, names, with_ids=True)

    def explain(problem: Exception) -> DataError:
        return DataError(f"{where}: cannot be read ({type(problem).__name__})")

    stream_of_study = guarded(batches, party, explain=explain)
    return Batches(
        where=where,
        names=tuple(names),
        total=total,
        stream=stream_of_study,
        problems=tuple(problems),
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
                _as_arrow(part.iloc[:, place]) if name in numbers else _of_one_kind(part, place)
                for place, name in enumerate(names)
            ]
            yield pa.RecordBatch.from_arrays(columns, names=names)


def _of_one_kind(frame: Any, place: int) -> pa.Array:
    """Return a column of ids or categories; refuse one that has numbers beside text."""
    name = str(frame.columns[place])
    return read_array(frame.iloc[:, place], what=f"column {name!r}")


def _as_arrow(column: Any) -> pa.Array:
    """Return a column of numbers; one with values of several kinds as text of each kind.

    What is no text stands for its kind alone there: enough to refuse it, and nothing else.
    """
    try:
        return pa.array(column, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError):
        texts = texts_of_kinds(column)
        if texts is None:
            raise
        return texts
