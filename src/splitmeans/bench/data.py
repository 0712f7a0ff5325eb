"""The data sets of the paper, scaled to [-1, 1], with the paper's division of columns.

Mixed Gaussian data is drawn by the documented recipe. The real ones come from files in a folder
that the user names (`--data-dir`): `letter.parquet`, `taxi.parquet`, `loan.parquet`, with the
column names of the original downloads. `docs/data.md` says where to get them.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from splitmeans._types import FloatArray, IntArray, LabelArray
from splitmeans.datasets import mixed_gaussian, split_columns
from splitmeans.errors import DataError, ParameterError

DATA_SETS = ("mixed-gaussian", "letter", "taxi", "loan")

_TAXI = (
    "pickup_datetime",
    "dropoff_datetime",
    "passenger_count",
    "trip_duration",
    "pickup_longitude",
    "pickup_latitude",
    "dropoff_longitude",
    "dropoff_latitude",
)
# The paper's appendix: columns with high correlation at different parties.
_TAXI_SPLITS = {2: ((0, 4, 5, 2), (1, 6, 7, 3)), 4: ((6, 4), (2, 1), (5, 7), (0, 3))}
_LETTER_SPLITS = {
    2: ((1, 3, 6, 7, 9, 12, 14, 15), (2, 4, 5, 8, 10, 11, 13, 16)),
    4: ((1, 6, 9, 14), (2, 5, 10, 16), (3, 7, 12, 15), (4, 8, 11, 13)),
}
_LOAN = (
    "AMT_CREDIT",
    "CNT_FAM_MEMBERS",
    "ENTRANCES_AVG",
    "DEF_30_CNT_SOCIAL_CIRCLE",
    "APARTMENTS_AVG",
    "OBS_30_CNT_SOCIAL_CIRCLE",
    "AMT_GOODS_PRICE",
    "FLOORSMAX_AVG",
    "DEF_60_CNT_SOCIAL_CIRCLE",
    "LIVINGAREA_AVG",
    "OBS_60_CNT_SOCIAL_CIRCLE",
    "CNT_CHILDREN",
    "LIVINGAPARTMENTS_AVG",
    "AMT_ANNUITY",
    "ELEVATORS_AVG",
    "COMMONAREA_AVG",
)


@dataclass(frozen=True, kw_only=True)
class BenchData:
    """Pooled rows in [-1, 1], true classes where there are any, and who holds which columns."""

    rows: FloatArray
    labels: LabelArray | None
    party_columns: tuple[IntArray, ...]


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How mixed Gaussian data is drawn; the defaults are the paper's."""

    n: int = 20_000
    n_columns: int = 8
    n_clusters: int = 5
    std: float = 0.1


def load(
    name: str, *, n_parties: int, seed: int, recipe: Recipe, data_dir: Path | None
) -> BenchData:
    """Draw or read a data set. The seed decides drawn data and random splits."""
    rng = np.random.default_rng([seed, n_parties])
    labels = None
    match name:
        case "mixed-gaussian":
            drawn = mixed_gaussian(
                n=recipe.n,
                n_columns=recipe.n_columns,
                n_clusters=recipe.n_clusters,
                std=recipe.std,
                random_state=seed,
            )
            rows, labels = drawn.rows, drawn.labels
            columns = split_columns(rows, n_parties, rng=rng)
        case "letter":
            table = _read(data_dir, "letter.parquet")
            rows = _scaled(_numbers(table.drop_columns(["lettr"])))
            # The paper counts attributes from 1.
            split = _named_split("letter", _LETTER_SPLITS, n_parties)
            columns = [np.array(part) - 1 for part in split]
        case "taxi":
            rows = _taxi(_read(data_dir, "taxi.parquet"))
            columns = [np.array(p) for p in _named_split("taxi", _TAXI_SPLITS, n_parties)]
        case "loan":
            rows = _loan(_read(data_dir, "loan.parquet"))
            columns = split_columns(rows, n_parties, rng=rng)
        case _:
            raise ParameterError(f"data must be one of {', '.join(DATA_SETS)}, got {name!r}")
    return BenchData(rows=rows, labels=labels, party_columns=tuple(columns))


def _taxi(table: pa.Table) -> FloatArray:
    """Times of the week in seconds; trips outside the city's box or over two hours are dirt."""
    columns = []
    for name in _TAXI:
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
    return _scaled(rows[inside & (rows[:, 3] <= 7200)])


def _loan(table: pa.Table) -> FloatArray:
    """Missing values at the column's mean; values above the 95 % quantile clipped, as the paper."""
    rows = _numbers(table.select(list(_LOAN)))
    rows = np.where(np.isnan(rows), np.nanmean(rows, axis=0), rows)
    return _scaled(np.minimum(rows, np.quantile(rows, 0.95, axis=0)))


def _scaled(rows: FloatArray) -> FloatArray:
    low, high = rows.min(axis=0), rows.max(axis=0)
    return np.asarray(2 * (rows - low) / (high - low) - 1)


def _numbers(table: pa.Table) -> FloatArray:
    columns = [column.cast(pa.float64()).to_numpy() for column in table.columns]
    return np.column_stack(columns)


def _named_split(
    name: str, splits: dict[int, tuple[tuple[int, ...], ...]], n_parties: int
) -> tuple[tuple[int, ...], ...]:
    if n_parties not in splits:
        raise ParameterError(f"the paper splits {name} for 2 and 4 parties, not for {n_parties}")
    return splits[n_parties]


def _read(data_dir: Path | None, file: str) -> pa.Table:
    if data_dir is None:
        raise ParameterError(f"this data set needs --data-dir with {file}; see docs/data.md")
    path = data_dir / file
    if not path.is_file():
        raise DataError(f"{path}: no such file; docs/data.md says where to get it")
    return pq.read_table(path)
