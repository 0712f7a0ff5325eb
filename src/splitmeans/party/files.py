"""Files as batches: parquet, csv and Arrow, one or many, on this machine or through fsspec."""

import contextlib
import glob
import re
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from splitmeans.errors import DataError
from splitmeans.party.batches import Batches, check_names, guarded
from splitmeans.party.place import STORE, Place
from splitmeans.study import PartySpec

_BATCH_ROWS = 2**16
# A block of a csv file is what the types of its columns are guessed from.
_CSV_BLOCKS = pyarrow.csv.ReadOptions(block_size=4 * 2**20)

# Enough for the header of any table that a study can have columns for.
_HEADER_BYTES = 2**20

_KINDS = {".parquet": "a parquet file", ".csv": "a csv file"}


@dataclass(frozen=True, kw_only=True)
class Files:
    """The files of a table, in the order of their names, all of one kind.

    Attributes:
        where: How errors name them together.
        suffix: What their names end in.
        paths: Where they are.
        open: Opens one of them for reading.
    """

    where: str
    suffix: str
    paths: tuple[str, ...]
    open: Callable[[str], Any]


def find_files(place: Place) -> Files:
    """Return the files that a path, folder or pattern names."""
    paths, opener = _stored(place) if place.kind == STORE else _local(place)
    suffixes = {Path(path).suffix.lower() for path in paths}
    if len(suffixes) > 1 or not suffixes <= set(_READERS):
        raise DataError(
            f"{place.shown}: the data must be a file that ends in {', '.join(_READERS)}, or "
            "several of one kind"
        )
    return Files(where=place.shown, suffix=suffixes.pop(), paths=tuple(paths), open=opener)


@contextlib.contextmanager
def read_files(files: Files, party: PartySpec) -> Iterator[Batches]:
    """Open files as one stream of batches, after checking the columns of the first."""
    explain = _Explain(where=files.where, kind=_KINDS.get(files.suffix, "an Arrow file"))
    try:
        names, batches = _READERS[files.suffix](files, party)
    except DataError:
        raise
    except Exception as problem:  # whatever a store's driver raises
        raise explain(problem) from None
    stream = guarded(batches, party, explain=explain)
    with contextlib.closing(batches):
        yield Batches(where=files.where, names=names, total=None, stream=stream)


@dataclass(frozen=True, kw_only=True)
class _Explain:
    """Says what is wrong with a file, without quoting what a library said."""

    where: str
    kind: str

    def __call__(self, problem: Exception) -> DataError:
        if isinstance(problem, OSError) and problem.strerror:
            return DataError(f"{self.where}: {problem.strerror}")
        return DataError(f"{self.where}: cannot be read as {self.kind}")


# ---- where files are ----


def _local(place: Place) -> tuple[list[str], Callable[[str], Any]]:
    path = Path(place.target)
    if path.is_dir():
        found = [
            str(child) for child in path.rglob("*") if child.is_file() and _is_data(path, child)
        ]
    elif path.exists():
        return [str(path)], _open_local
    else:
        found = [name for name in glob.glob(place.target, recursive=True) if Path(name).is_file()]
    if not found:
        raise DataError(f"{place.shown}: there is no such file")
    return sorted(found), _open_local


def _is_data(folder: Path, child: Path) -> bool:
    """Leave out what writers leave beside their data: _SUCCESS, .part.crc, _temporary/..."""
    return not any(part.startswith(("_", ".")) for part in child.relative_to(folder).parts)


def _open_local(path: str) -> Any:
    return pa.OSFile(path, "rb")


def _stored(place: Place) -> tuple[list[str], Callable[[str], Any]]:
    # Imported where it is used: it and its drivers are extras and take time to load.
    try:
        import fsspec
    except ImportError:
        raise DataError(
            f"{place.shown}: needs fsspec and the store's driver: pip install 'splitmeans[storage]'"
        ) from None
    try:
        system, path = fsspec.core.url_to_fs(place.target)
        if any(mark in path for mark in "*["):
            found = [name for name in system.glob(path) if system.isfile(name)]
        elif system.isdir(path):
            found = [
                name
                for name in system.find(path)
                if not any(part.startswith(("_", ".")) for part in Path(name).parts)
            ]
        else:
            found = [path] if system.exists(path) else []
    except ImportError:
        raise DataError(
            f"{place.shown}: the driver for this kind of store is not installed; fsspec's list of "
            "stores names it, such as s3fs for s3:// and gcsfs for gs://"
        ) from None
    except ValueError:
        raise DataError(f"{place.shown}: fsspec knows no store of this kind") from None
    except Exception as problem:  # drivers quote URLs and credentials
        raise DataError(
            f"{place.shown}: the store cannot be read ({type(problem).__name__}); check its "
            "address and the credentials in the environment"
        ) from None
    if not found:
        raise DataError(f"{place.shown}: there is no such file")
    return sorted(found), lambda name: pa.PythonFile(system.open(name, "rb"), mode="r")


# ---- kinds of files ----

_Stream = Generator[pa.RecordBatch, None, None]
_Opened = tuple[tuple[str, ...], _Stream]


def _read_parquet(files: Files, party: PartySpec) -> _Opened:
    def batches() -> _Stream:
        for path in files.paths:
            with files.open(path) as source, pq.ParquetFile(source) as file:
                found = file.schema_arrow.names
                check_names(party, found, where=_one(files, path), what="file")
                wanted = {party.id_column, *(column.name for column in party.columns)}
                yield from file.iter_batches(
                    batch_size=_BATCH_ROWS, columns=[name for name in found if name in wanted]
                )

    with files.open(files.paths[0]) as source:
        names = tuple(pq.read_schema(source).names)
    check_names(party, names, where=_one(files, files.paths[0]), what="file")
    return names, batches()


def _read_csv(files: Files, party: PartySpec) -> _Opened:
    def batches() -> _Stream:
        for path in files.paths:
            schema = _csv_schema(files, path)
            check_names(party, schema.names, where=_one(files, path), what="file")
            options = pyarrow.csv.ConvertOptions(
                column_types=_csv_types(party, schema),
                include_columns=[party.id_column, *(column.name for column in party.columns)],
            )
            try:
                with files.open(path) as source:
                    yield from pyarrow.csv.open_csv(
                        source, read_options=_CSV_BLOCKS, convert_options=options
                    )
            except pa.ArrowInvalid as problem:
                raise _csv_problem(problem, schema, where=_one(files, path)) from None

    names = tuple(_csv_schema(files, files.paths[0]).names)
    check_names(party, names, where=_one(files, files.paths[0]), what="file")
    return names, batches()


def _csv_schema(files: Files, path: str) -> pa.Schema:
    where = _one(files, path)
    problem: DataError | None = None
    schema = pa.schema([])
    try:
        with (
            files.open(path) as source,
            pyarrow.csv.open_csv(source, read_options=_CSV_BLOCKS) as reader,
        ):
            schema = reader.schema
    except pa.ArrowInvalid as raised:
        problem = _csv_problem(raised, schema, where=where)
    if len(schema.names) < 2:  # none: a line with decimal commas has more values than the header
        _refuse_other_separators(files, path)
    if problem is not None:
        raise problem
    return schema


def _refuse_other_separators(files: Files, path: str) -> None:
    """Say so if the header has another separator and no comma, as some spreadsheets write."""
    with files.open(path) as source:
        header = (source.read(_HEADER_BYTES).splitlines() or [b""])[0]
    for mark, name in ((b";", "semicolons"), (b"\t", "tabs")):
        if mark in header and b"," not in header:
            raise DataError(
                f"{_one(files, path)}: the values must be separated by commas, and the file seems "
                f"to be separated by {name}; save it with commas and decimal points, or read it by "
                "a DuckDB query (--data duckdb:// with read_csv, see the guide on data sources)"
            )


def _csv_problem(problem: pa.ArrowInvalid, schema: pa.Schema, *, where: str) -> DataError:
    """Name the column, or the kind of fault; Arrow's own words quote the value."""
    if "invalid UTF8" in str(problem):
        return DataError(f"{where}: has text that is not in UTF-8; save the file in UTF-8")
    column = re.match(r"In CSV column #(\d+)", str(problem))
    if column and int(column[1]) < len(schema.names):
        return DataError(
            f"{where}: column {schema.names[int(column[1])]!r} has a value that is no number, or "
            "of another kind than those before it; write numbers as 1234.5, without units or "
            "separators, and leave missing values empty"
        )
    if re.match(r"CSV parse error: (Row #\d+: )?Expected \d+ columns", str(problem)):
        return DataError(f"{where}: a line has more or fewer values than there are columns")
    return DataError(f"{where}: cannot be read as a csv file")


def _csv_types(party: PartySpec, guessed: pa.Schema) -> dict[str, pa.DataType]:
    """Fix the types of a csv file's columns, so that no later block has another guess.

    Ids and categories stay text: read as numbers, "007" and "7" would be the same. Numbers are
    floats, unless the beginning of the file has none; then the table's checks say so.
    """
    types = {party.id_column: pa.string()}
    for column in party.columns:
        kind = guessed.field(column.name).type
        if column.categories:
            types[column.name] = kind if pa.types.is_floating(kind) else pa.string()
        elif pa.types.is_integer(kind) or pa.types.is_null(kind):
            types[column.name] = pa.float64()
        else:
            types[column.name] = kind
    return types


def _read_arrow(files: Files, party: PartySpec) -> _Opened:
    def batches() -> _Stream:
        for path in files.paths:
            with files.open(path) as source, _arrow_reader(source) as reader:
                check_names(party, reader.schema.names, where=_one(files, path), what="file")
                if isinstance(reader, pa.RecordBatchFileReader):
                    for number in range(reader.num_record_batches):
                        yield reader.get_batch(number)
                else:
                    yield from reader

    with files.open(files.paths[0]) as source, _arrow_reader(source) as reader:
        names = tuple(reader.schema.names)
    check_names(party, names, where=_one(files, files.paths[0]), what="file")
    return names, batches()


def _arrow_reader(source: Any) -> Any:
    """Open either of Arrow's two formats; only the one with a table of contents has this mark."""
    is_file = source.read(6) == b"ARROW1"
    source.seek(0)
    return pa.ipc.open_file(source) if is_file else pa.ipc.open_stream(source)


def _one(files: Files, path: str) -> str:
    """Name one file in errors."""
    return files.where if len(files.paths) == 1 else f"{files.where} ({Path(path).name})"


_READERS: dict[str, Callable[[Files, PartySpec], _Opened]] = {
    ".parquet": _read_parquet,
    ".csv": _read_csv,
    ".arrow": _read_arrow,
    ".feather": _read_arrow,
    ".arrows": _read_arrow,
    ".ipc": _read_arrow,
}
