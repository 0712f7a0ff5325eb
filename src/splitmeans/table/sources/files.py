"""Files as batches: parquet, csv and Arrow, one or many, on this machine or through fsspec."""

import contextlib
import glob
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from splitmeans.errors import DataError
from splitmeans.study import PartySpec
from splitmeans.table.batches import Batches, guarded
from splitmeans.table.checks.names import name_problems
from splitmeans.table.sources.csv_files import read_csv
from splitmeans.table.sources.file_list import Files, Opened, Stream
from splitmeans.table.sources.place import STORE, Place

_BATCH_ROWS = 2**16
_KINDS = {".parquet": "a parquet file", ".csv": "a csv file"}


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
def read_files(files: Files, party: PartySpec, *, as_text: bool = False) -> Iterator[Batches]:
    """Open files as one stream of batches.

    Args:
        files: The files. The first says which columns there are; the others must have the study's.
        party: The study's columns.
        as_text: Read the numbers of csv files as text, to find what is none.
    """
    explain = _Explain(where=files.where, kind=_KINDS.get(files.suffix, "an Arrow file"))
    try:
        if files.suffix == ".csv":
            names, batches = read_csv(files, party, as_text=as_text)
        else:
            names, batches = _READERS[files.suffix](files, party)
    except DataError:
        raise
    except Exception as problem:  # whatever a store's driver raises
        raise explain(problem) from None
    stream = guarded(batches, party, explain=explain)
    problems = name_problems(party, names, what="file", with_ids=True)
    with contextlib.closing(batches):
        yield Batches(
            where=files.where, names=names, total=None, stream=stream, problems=tuple(problems)
        )


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


def _read_parquet(files: Files, party: PartySpec) -> Opened:
    def batches() -> Stream:
        for path in files.paths:
            with files.open(path) as source, pq.ParquetFile(source) as file:
                found = file.schema_arrow.names
                files.check_other(path, party, found)
                wanted = {party.id_column, *(column.name for column in party.columns)}
                yield from file.iter_batches(
                    batch_size=_BATCH_ROWS, columns=[name for name in found if name in wanted]
                )

    with files.open(files.paths[0]) as source:
        names = tuple(pq.read_schema(source).names)
    return names, batches()


def _read_arrow(files: Files, party: PartySpec) -> Opened:
    def batches() -> Stream:
        for path in files.paths:
            with files.open(path) as source, _arrow_reader(source) as reader:
                files.check_other(path, party, reader.schema.names)
                if isinstance(reader, pa.RecordBatchFileReader):
                    for number in range(reader.num_record_batches):
                        yield reader.get_batch(number)
                else:
                    yield from reader

    with files.open(files.paths[0]) as source, _arrow_reader(source) as reader:
        names = tuple(reader.schema.names)
    return names, batches()


def _arrow_reader(source: Any) -> Any:
    """Open either of Arrow's two formats; only the one with a table of contents has this mark."""
    is_file = source.read(6) == b"ARROW1"
    source.seek(0)
    return pa.ipc.open_file(source) if is_file else pa.ipc.open_stream(source)


_READERS: dict[str, Callable[[Files, PartySpec], Opened]] = {
    ".parquet": _read_parquet,
    ".csv": read_csv,
    ".arrow": _read_arrow,
    ".feather": _read_arrow,
    ".arrows": _read_arrow,
    ".ipc": _read_arrow,
}
