"""Where a party's table comes from: parquet, csv or Arrow files.

Every source ends in a table that has been checked against the study. A parquet file with many rows
is walked on disk; what is small enough is read into memory.
"""

import contextlib
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from splitmeans.engine.rowgroups import open_parquet
from splitmeans.engine.stored import Progress
from splitmeans.engine.walk import Table
from splitmeans.errors import DataError
from splitmeans.party.table import prepare_table
from splitmeans.study import PartySpec

# Below this a table takes less memory than the worker processes would.
_ROWS_IN_MEMORY = 2_000_000

_READERS: dict[str, Callable[[Path, list[str]], pa.Table]] = {}


def open_source(
    party: PartySpec,
    path: str | Path,
    *,
    workers: int | None = None,
    spool: Path | None = None,
    progress: Progress,
) -> contextlib.AbstractContextManager[Table]:
    """Check a file against the study and open it as a table.

    Args:
        party: The party's columns, bounds and id column.
        path: A file that ends in .parquet, .csv, .arrow or .feather.
        workers: Processes for a large parquet file; see `open_parquet`.
        spool: Folder for a large parquet file's blocks.
        progress: Called as a large parquet file is walked.

    Raises:
        DataError: If the file cannot be read or breaks a rule of the study.
    """
    place = Path(path)
    kind = place.suffix.lower()
    if kind not in _READERS:
        raise DataError(f"{place}: the data must be a file that ends in {', '.join(_READERS)}")
    if not place.is_file():
        raise DataError(f"{place}: there is no such file")
    if kind == ".parquet" and _parquet_rows(place) > _ROWS_IN_MEMORY:
        return open_parquet(party, place, workers=workers, spool=spool, progress=progress)
    names = [party.id_column, *(column.name for column in party.columns)]
    try:
        table = _READERS[kind](place, names)
        found = table.column_names
        # A file may hold places beyond the end of its text, or text that is none; nothing below
        # looks at that again.
        table.validate(full=True)
    except OSError as problem:
        reason = problem.strerror or "the file cannot be read"
        raise DataError(f"{place}: {reason}") from None
    except (pa.ArrowException, KeyError, TypeError, ValueError):
        # Without the cause: Arrow may quote a value.
        raise DataError(f"{place}: cannot be read as a {kind[1:]} file") from None
    if party.id_column not in found:
        raise DataError(
            f"{place}: party {party.name!r} must have the id column {party.id_column!r} of the "
            "study; the file has no column of this name (case and spaces count)"
        )
    try:
        return contextlib.nullcontext(prepare_table(party, table))
    except DataError as problem:
        raise DataError(f"{place}: {problem}") from None


def _parquet_rows(path: Path) -> int:
    try:
        return int(pq.read_metadata(path).num_rows)
    except (OSError, pa.ArrowException, ValueError):
        raise DataError(f"{path}: cannot be read as a parquet file") from None


def _read_parquet(path: Path, names: list[str]) -> pa.Table:
    with pq.ParquetFile(path) as file:
        wanted = [name for name in file.schema_arrow.names if name in names]
        return file.read(columns=wanted)


def _read_csv(path: Path, names: list[str]) -> pa.Table:
    # Ids stay text: read as numbers, "007" and "7" would be the same user.
    types = {names[0]: pa.string()}
    return pyarrow.csv.read_csv(
        path, convert_options=pyarrow.csv.ConvertOptions(column_types=types)
    )


def _read_arrow(path: Path, names: list[str]) -> pa.Table:
    with pa.OSFile(str(path), "rb") as file:
        table = pa.ipc.open_file(file).read_all()
    return table.select([i for i, name in enumerate(table.column_names) if name in names])


_READERS |= {
    ".parquet": _read_parquet,
    ".csv": _read_csv,
    ".arrow": _read_arrow,
    ".feather": _read_arrow,
}
