"""Categories that the run learns, against a public list of all of them.

The yardstick is the loss of everyone's rows with one place for every level that there is, over that
of central k-means without privacy on the same points. A run that learns its categories knows only
those above its threshold; what its centres hold of "(other)" is spread evenly over the rest.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from benchmarks.ways import Score
from splitmeans import VerticalKMeans
from splitmeans._types import FloatArray
from splitmeans.errors import ParameterError
from splitmeans.privacy.noise import InsecureSeededNoise
from splitmeans.simulate.baselines import central_kmeans
from splitmeans.simulate.evaluation import normalised_loss
from splitmeans.study.parties import OTHER_LEVEL

WAYS = ("listed", "open")
MADE_UP = "made-up, 200 levels"
_FILES = {"taxi with categories": "taxi", "loan with its counts": "loan"}
_CLUSTERS, _DELTA = 5, 1e-5
_MADE_UP_USERS = 20_000
_START_STREAM = 57_000

# Two levels are as far apart as the two ends of a column of numbers.
_LEVEL = np.sqrt(2.0)


@dataclass(frozen=True, kw_only=True)
class MixedTable:
    """Rows of both parties side by side: number columns with bounds, and columns of categories."""

    frame: pd.DataFrame
    bounds: Mapping[str, tuple[float, float]]
    parties: Mapping[str, tuple[str, ...]]

    @property
    def categories(self) -> dict[str, list[str]]:
        """The levels that there are, of each column of categories in the parties' order."""
        columns = [name for own in self.parties.values() for name in own]
        return {
            name: sorted(self.frame[name].unique()) for name in columns if name not in self.bounds
        }


@dataclass(frozen=True, kw_only=True)
class CategoriesScore(Score):
    """A run with a list of categories or without; nothing is known where it was refused."""

    levels: int
    known_levels: int | None
    other_share: float | None


def names_of(data_dir: Path | None) -> tuple[str, ...]:
    """Return the tables that are there."""
    there = [
        name
        for name, file in _FILES.items()
        if data_dir and (data_dir / f"{file}.parquet").is_file()
    ]
    return (*there, MADE_UP)


def run_one(
    name: str, epsilon: float, way: str, seed: int, data_dir: Path | None
) -> CategoriesScore:
    """Run one table with a list of its categories or without."""
    table = _READERS[name](seed, data_dir)
    users, levels = len(table.frame), table.categories
    model = VerticalKMeans(
        _CLUSTERS,
        epsilon=epsilon,
        delta=min(_DELTA, 0.1 / users),
        bounds=dict(table.bounds),
        categories=levels if way == "listed" else dict.fromkeys(levels, "open"),
        expected_users=users,
        noise=InsecureSeededNoise(seed),
        random_state=_START_STREAM + seed,
        allow_clipping=True,
    )
    ratio = known = other = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model.fit({party: table.frame[list(own)] for party, own in table.parties.items()})
            found = dict(zip(model.synopsis_.feature_names, model.cluster_centers_.T, strict=True))
            ratio = _ratio(table, found, seed)
            known, other = _known(table, found)
        except ParameterError:
            if way != "open":
                raise  # only learned categories are refused for want of users
    return CategoriesScore(
        data=name,
        users=users,
        levels=sum(map(len, levels.values())),
        epsilon=epsilon,
        way=way,
        seed=seed,
        loss_ratio=ratio,
        known_levels=known,
        other_share=other,
    )


def centres_of(table: MixedTable, found: Mapping[str, FloatArray]) -> FloatArray:
    """Return centres with one place for every number and level, in the yardstick's space."""
    places = []
    for party, own in table.parties.items():
        for name in own:
            if name in table.bounds:
                low, high = table.bounds[name]
                places.append((found[f"{party}: {name}"] - low) / (high - low) * 2 - 1)
                continue
            levels = table.categories[name]
            unknown = [level for level in levels if f"{party}: {name}={level}" not in found]
            rest = found.get(f"{party}: {name}={OTHER_LEVEL}", np.zeros(1)) / max(len(unknown), 1)
            places += [_LEVEL * found.get(f"{party}: {name}={level}", rest) for level in levels]
    return np.column_stack(np.broadcast_arrays(*places))


def points_of(table: MixedTable) -> FloatArray:
    """Return everyone's rows in the yardstick's space."""
    places = []
    for own in table.parties.values():
        for name in own:
            values = table.frame[name].to_numpy()
            if name in table.bounds:
                low, high = table.bounds[name]
                places.append(np.clip((values - low) / (high - low) * 2 - 1, -1, 1))
            else:
                places += [_LEVEL * (values == level) for level in table.categories[name]]
    return np.column_stack(places).astype(np.float64)


def _ratio(table: MixedTable, found: Mapping[str, FloatArray], seed: int) -> float:
    points = points_of(table)
    best = normalised_loss(points, central_kmeans(points, _CLUSTERS, random_state=seed))
    return normalised_loss(points, centres_of(table, found)) / best


def _known(table: MixedTable, found: Mapping[str, FloatArray]) -> tuple[int, float]:
    """Return how many levels the run knew, and the share of values whose level it did not."""
    known, unknown_values, values = 0, 0, 0
    for party, own in table.parties.items():
        for name in set(own) & table.categories.keys():
            counts = table.frame[name].value_counts()
            there = [level for level in counts.index if f"{party}: {name}={level}" in found]
            known += len(there)
            values += len(table.frame)
            unknown_values += int(counts.drop(there).sum())
    return known, unknown_values / values


def made_up(seed: int, *, users: int = _MADE_UP_USERS) -> MixedTable:
    """Draw five segments that differ in two numbers, six kinds, and the towns people live in."""
    rng = np.random.default_rng([seed, 200])
    segment = rng.choice(_CLUSTERS, size=users, p=[0.3, 0.25, 0.2, 0.15, 0.1])
    kind = np.where(rng.random(users) < 0.7, segment, rng.integers(6, size=users))
    # Towns by a power law, of which each segment prefers another fifth.
    ranks = rng.zipf(1.3, size=users) % 40
    town = np.where(rng.random(users) < 0.6, 40 * segment, 40 * rng.integers(5, size=users)) + ranks
    frame = pd.DataFrame(
        {
            "income": np.clip(1000 + 700 * segment + 300 * rng.normal(size=users), 0, 6000),
            "kind": [f"kind {number}" for number in kind],
            "visits": np.clip(10 + 8 * ((segment * 2) % 5) + 4 * rng.normal(size=users), 0, 60),
            "town": [f"town {number:03d}" for number in town],
        }
    )
    return MixedTable(
        frame=frame,
        bounds={"income": (0, 6000), "visits": (0, 60)},
        parties={"bank": ("income", "kind"), "shop": ("visits", "town")},
    )


def _taxi(seed: int, data_dir: Path | None) -> MixedTable:
    """Trips with their kinds of payment, rate, vendor and party as categories."""
    kinds = ["payment_type", "rate_code_id", "passenger_count", "vendor_id", "store_and_fwd_flag"]
    numbers = {"fare_amount": (0.0, 60.0), "trip_distance": (0.0, 20.0)}
    return MixedTable(
        frame=_read(data_dir, "taxi", kinds, list(numbers)),
        bounds=numbers,
        parties={
            "meter": ("fare_amount", "payment_type", "rate_code_id"),
            "fleet": ("trip_distance", "passenger_count", "vendor_id", "store_and_fwd_flag"),
        },
    )


def _loan(seed: int, data_dir: Path | None) -> MixedTable:
    """Applications with counts of children, relatives and acquaintances as categories."""
    kinds = ["CNT_CHILDREN", "CNT_FAM_MEMBERS", "OBS_30_CNT_SOCIAL_CIRCLE"]
    numbers = {"AMT_CREDIT": (0.0, 2e6), "AMT_ANNUITY": (0.0, 80_000.0)}
    return MixedTable(
        frame=_read(data_dir, "loan", kinds, list(numbers)),
        bounds=numbers,
        parties={
            "lender": ("AMT_CREDIT", "CNT_CHILDREN", "CNT_FAM_MEMBERS"),
            "bureau": ("AMT_ANNUITY", "OBS_30_CNT_SOCIAL_CIRCLE"),
        },
    )


def _read(
    data_dir: Path | None, file: str, kinds: Sequence[str], numbers: Sequence[str]
) -> pd.DataFrame:
    assert data_dir is not None
    table = pq.read_table(data_dir / f"{file}.parquet", columns=[*kinds, *numbers])
    frame = table.to_pandas().dropna().reset_index(drop=True)
    for name in kinds:
        values = frame[name]
        whole = values.astype(np.int64) if values.dtype.kind == "f" else values
        frame[name] = whole.astype(str)
    return frame


_READERS: Mapping[str, Callable[[int, Path | None], MixedTable]] = {
    "taxi with categories": _taxi,
    "loan with its counts": _loan,
    MADE_UP: lambda seed, data_dir: made_up(seed),
}
