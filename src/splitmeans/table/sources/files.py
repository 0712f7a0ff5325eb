"""Files as batches: parquet, csv and Arrow, one or many, on this machine or through fsspec."""

import contextlib
import glob
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from splitmeans.errors import DataError
from splitmeans.study import PartySpec
from splitmeans.table.batches import Batches, check_names, guarded
from splitmeans.table.checks.names import name_problems, study_columns
from splitmeans.table.sources.csv_files import read_csv
from splitmeans.table.sources.file_list import Files, Opened
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
def read_files(files: Files, party: PartySpec) -> Iterator[Batches]:
    """Open files as one stream of batches.

    The first file says which columns there are; the others must have the study's.
    """
    explain = _Explain(where=files.where, kind=_KINDS.get(files.suffix, "an Arrow file"))
    read = _READERS[files.suffix]

    def stream() -> Generator[pa.RecordBatch, None, None]:
        for path in files.paths:
            with read(files, path, party) as (found, batches):
                if path != files.paths[0]:
                    check_names(party, found, where=files.one(path), what="file")
                yield from batches

    total: int | None = None
    try:
        with read(files, files.paths[0], party) as (listed, _):
            names = tuple(listed)
        if files.open is _open_local and files.suffix == ".parquet":
            total = sum(pq.read_metadata(path).num_rows for path in files.paths)
    except DataError:
        raise
    except Exception as problem:  # whatever a store's driver raises
        raise explain(problem) from None
    with contextlib.closing(stream()) as batches:
        yield Batches(
            where=files.where,
            names=names,
            total=total,
            stream=guarded(batches, party, explain=explain),
            problems=tuple(name_problems(party, names, what="file", with_ids=True)),
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


@contextlib.contextmanager
def _parquet(files: Files, path: str, party: PartySpec) -> Iterator[Opened]:
    with files.open(path) as source, pq.ParquetFile(source) as file:
        names = file.schema_arrow.names
        wanted = [names[place] for place in study_columns(party, names)]
        yield names, file.iter_batches(_BATCH_ROWS, columns=wanted, use_threads=False)


@contextlib.contextmanager
def _arrow(files: Files, path: str, party: PartySpec) -> Iterator[Opened]:
    with files.open(path) as source:
        # Only the one of Arrow's two formats with a table of contents has this mark.
        is_file = source.read(6) == b"ARROW1"
        source.seek(0)
        with (pa.ipc.open_file if is_file else pa.ipc.open_stream)(source) as reader:
            batches = map(reader.get_batch, range(reader.num_record_batches)) if is_file else reader
            yield reader.schema.names, batches


_READERS: dict[
    str, Callable[[Files, str, PartySpec], contextlib.AbstractContextManager[Opened]]
] = {
    ".parquet": _parquet,
    ".csv": read_csv,
    ".arrow": _arrow,
    ".feather": _arrow,
    ".arrows": _arrow,
    ".ipc": _arrow,
}
