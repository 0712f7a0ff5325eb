"""Readers of the paper's real data sets: the original downloads, or Parquet copies of them.

Every reader returns the columns that the paper uses, prepared as the paper says and scaled to
[-1, 1]. `docs/data.md` says where the files come from and what is done to them.
"""

import functools
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv
import pyarrow.parquet as pq

from splitmeans._types import FloatArray
from splitmeans.errors import DataError, ParameterError

TAXI_COLUMNS = (
    *("pickup_datetime", "dropoff_datetime", "passenger_count", "trip_duration"),
    *("pickup_longitude", "pickup_latitude", "dropoff_longitude", "dropoff_latitude"),
)
LOAN_COLUMNS = (
    *("AMT_CREDIT", "CNT_FAM_MEMBERS", "ENTRANCES_AVG", "DEF_30_CNT_SOCIAL_CIRCLE"),
    *("APARTMENTS_AVG", "OBS_30_CNT_SOCIAL_CIRCLE", "AMT_GOODS_PRICE", "FLOORSMAX_AVG"),
    *("DEF_60_CNT_SOCIAL_CIRCLE", "LIVINGAREA_AVG", "OBS_60_CNT_SOCIAL_CIRCLE", "CNT_CHILDREN"),
    *("LIVINGAPARTMENTS_AVG", "AMT_ANNUITY", "ELEVATORS_AVG", "COMMONAREA_AVG"),
)
_LETTER_ATTRIBUTES = 16

# Names that a data set's file may have, the first one found is read.
FILES = {
    "letter": ("letter.parquet", "letter-recognition.data"),
    "taxi": ("taxi.parquet", "nyc-taxi-trip-duration.csv", "train.csv"),
    "loan": ("loan.parquet", "application_train.csv"),
}
# How many records the paper takes; of a longer file we read the first ones, as it says for loan.
PAPER_ROWS = {"letter": 20_000, "taxi": 100_000, "loan": 60_000}


@dataclass(frozen=True, kw_only=True)
class DataFile:
    """A file of a data set.

    Attributes:
        data: Name of the data set.
        name: Name of the file.
        rows_read: Rows that were taken from it.
        rows_used: Rows that were left after preparation.
        period: First and last day, where rows have a time.
        digest: SHA-256 of the content.
    """

    data: str
    name: str
    rows_read: int
    rows_used: int
    period: tuple[str, str] | None
    digest: str


def find_file(data: str, data_dir: Path | None) -> Path | None:
    """Return the file of a data set in a folder, None if there is none."""
    if data_dir is None:
        return None
    paths = (data_dir / name for name in FILES[data])
    return next((path for path in paths if path.is_file()), None)


def read_rows(data: str, data_dir: Path | None) -> FloatArray:
    """Read and prepare a data set; a process reads a file once. The array cannot be written."""
    names = " or ".join(FILES[data])
    if data_dir is None:
        raise ParameterError(f"this data set needs --data-dir with {names}; see docs/data.md")
    path = find_file(data, data_dir)
    if path is None:
        raise DataError(f"{data_dir}: has no {names}; docs/data.md says where to get it")
    return _prepared(data, path, path.stat().st_mtime_ns)[0]


def describe_file(data: str, data_dir: Path | None) -> DataFile | None:
    """Return what a data set's file is, None if there is none."""
    path = find_file(data, data_dir)
    if path is None:
        return None
    rows, rows_read, period = _prepared(data, path, path.stat().st_mtime_ns)
    with path.open("rb") as opened:
        digest = hashlib.file_digest(opened, "sha256").hexdigest()
    return DataFile(
        data=data,
        name=path.name,
        rows_read=rows_read,
        rows_used=len(rows),
        period=period,
        digest=digest,
    )


@functools.lru_cache(maxsize=8)
def _prepared(
    data: str, path: Path, _changed: int
) -> tuple[FloatArray, int, tuple[str, str] | None]:
    """Return the prepared rows, how many were read, and their first and last day."""
    try:
        table = _READERS[data](path)
    except (pa.ArrowInvalid, pa.ArrowKeyError, KeyError) as problem:
        raise DataError(f"{path}: is not the {data} file of docs/data.md ({problem})") from problem
    table = table.slice(0, PAPER_ROWS[data])
    rows = _PREPARE[data](table)
    rows.flags.writeable = False
    period = None
    if data == "taxi":
        ends = pc.min_max(table[TAXI_COLUMNS[0]]).as_py()
        period = (f"{ends['min']:%Y-%m-%d}", f"{ends['max']:%Y-%m-%d}")
    return rows, len(table), period


def _read_letter(path: Path) -> pa.Table:
    """Read Parquet, or lines of a letter and 16 whole numbers, with or without a heading."""
    if path.suffix == ".parquet":
        table = pq.read_table(path)
        return table.select([name for name in table.column_names if name != "lettr"])
    names = ["lettr", *(f"x{number}" for number in range(1, _LETTER_ATTRIBUTES + 1))]
    with path.open() as opened:
        # The letter of a row is one character; a heading's first word is longer.
        has_heading = len(opened.readline().split(",")[0].strip()) > 1
    table = pcsv.read_csv(
        path,
        read_options=pcsv.ReadOptions(column_names=names, skip_rows=int(has_heading)),
        convert_options=pcsv.ConvertOptions(column_types=dict.fromkeys(names[1:], pa.int64())),
    )
    return table.drop_columns(["lettr"])


def _read_columns(path: Path, columns: tuple[str, ...]) -> pa.Table:
    """Read named columns from Parquet or from a CSV file with a heading."""
    if path.suffix == ".parquet":
        return pq.read_table(path, columns=list(columns))
    return pcsv.read_csv(
        path, convert_options=pcsv.ConvertOptions(include_columns=list(columns))
    ).select(list(columns))


def _taxi(table: pa.Table) -> FloatArray:
    """Times of the week in seconds; trips outside the city's box or over two hours are dirt."""
    columns = []
    for name in TAXI_COLUMNS:
        column = table[name]
        if pa.types.is_timestamp(column.type):
            day = pc.day_of_week(column).to_numpy()
            clock = 3600 * pc.hour(column).to_numpy() + 60 * pc.minute(column).to_numpy()
            columns.append(86_400 * day + clock + pc.second(column).to_numpy())
        else:
            columns.append(column.to_numpy())
    rows = np.column_stack(columns).astype(np.float64)
    longitude, latitude = rows[:, [4, 6]], rows[:, [5, 7]]
    inside = ((longitude > -74.3) & (longitude < -73.6)).all(axis=1)
    inside &= ((latitude > 40.4) & (latitude < 41.1)).all(axis=1)
    return scaled(rows[inside & (rows[:, 3] <= 7200)])


def _loan(table: pa.Table) -> FloatArray:
    """Missing values at the column's mean; values above the 95 % quantile clipped, as the paper."""
    rows = _numbers(table)
    rows = np.where(np.isnan(rows), np.nanmean(rows, axis=0), rows)
    return scaled(np.minimum(rows, np.quantile(rows, 0.95, axis=0)))


def _letter(table: pa.Table) -> FloatArray:
    return scaled(_numbers(table))


def taxi_rows(path: Path) -> FloatArray:
    """Read and prepare a file with the taxi table's columns."""
    return _taxi(_read_columns(path, TAXI_COLUMNS))


def scaled(rows: FloatArray) -> FloatArray:
    """Return rows with every column's least value at -1 and its largest at 1."""
    low, high = rows.min(axis=0), rows.max(axis=0)
    # A column of one value has no range; it becomes -1.
    span = np.where(high > low, high - low, 1.0)
    return np.asarray(2 * (rows - low) / span - 1)


def _numbers(table: pa.Table) -> FloatArray:
    columns = [column.cast(pa.float64()).to_numpy() for column in table.columns]
    return np.column_stack(columns)


_READERS: dict[str, Callable[[Path], pa.Table]] = {
    "letter": _read_letter,
    "taxi": functools.partial(_read_columns, columns=TAXI_COLUMNS),
    "loan": functools.partial(_read_columns, columns=LOAN_COLUMNS),
}
_PREPARE: dict[str, Callable[[pa.Table], FloatArray]] = {
    "letter": _letter,
    "taxi": _taxi,
    "loan": _loan,
}
