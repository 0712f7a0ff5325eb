"""How often the printed 95 % intervals of segment sizes are right, over data sets and settings.

An interval is right if it holds the number of users nearest to the published centre. The method was
tuned on the data sets of `TUNED_ON`, then judged and widened on those of `WIDENED_ON`.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.data import split_columns
from benchmarks.data_files import read_rows
from benchmarks.pool import run_jobs
from splitmeans._types import FloatArray
from splitmeans.errors import ParameterError
from splitmeans.estimator import VerticalKMeans
from splitmeans.intervals.sizes import size_intervals
from splitmeans.paper.datasets import mixed_gaussian
from splitmeans.privacy.noise import InsecureSeededNoise
from splitmeans.simulate.evaluation import assign_labels
from splitmeans.synopsis.segments import assign_nodes

TUNED_ON = (
    *("clear", "blurred", "cloud", "skewed", "even", "letter"),
    *("ten-columns", "groups-in-a-cloud", "loan", "taxi", "curved"),
)
WIDENED_ON = ("purchases", "islands")
DATA_SETS = (*TUNED_ON, *WIDENED_ON)
REAL = ("letter", "loan", "taxi")
_DELTA = 1e-6
# Segments of less than this share of all users are small.
SMALL = 0.05


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One setting: parties, epsilon, segments, and the share of users each party has (1: all)."""

    n_parties: int
    epsilon: float
    n_clusters: int
    share: float = 1.0


# Parties, epsilon, segments and share of users.
_CHOSEN: tuple[tuple[int, float, int, float], ...] = (
    *((2, 0.25, 5, 1.0), (2, 1, 3, 1.0), (2, 1, 10, 1.0), (2, 4, 5, 1.0), (2, 4, 10, 1.0)),
    *((3, 0.25, 5, 1.0), (3, 1, 5, 1.0), (3, 4, 10, 1.0), (4, 1, 5, 1.0), (4, 4, 8, 1.0)),
    *((2, 0.25, 5, 0.5), (2, 1, 5, 0.7), (2, 4, 8, 0.85)),
)
SETTINGS = tuple(
    Setting(n_parties=parties, epsilon=epsilon, n_clusters=k, share=share)
    for parties, epsilon, k, share in _CHOSEN
)


@dataclass(frozen=True, kw_only=True)
class Covered:
    """One segment of one run.

    Attributes:
        data: Name of the data set.
        setting: How it was run.
        seed: Seed of the data, the division of columns, and the noise.
        size: Published size.
        low: Lower end of the interval, None where it was withheld.
        high: Upper end.
        nearest: Users nearest to the published centre.
        users: All users that are at every party.
    """

    data: str
    setting: Setting
    seed: int
    size: float
    low: float | None
    high: float | None
    nearest: int
    users: int

    @property
    def width(self) -> float:
        """Half the length of the interval over the size."""
        assert self.low is not None
        assert self.high is not None
        return (self.high - self.low) / 2 / max(self.size, 1.0)

    @property
    def right(self) -> bool:
        """Whether the interval holds the users nearest to the centre."""
        assert self.low is not None
        assert self.high is not None
        return self.low <= self.nearest <= self.high


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """Share of intervals that are right, and the median of half widths over sizes."""

    segments: int
    withheld: int
    right: float
    width: float


def run_coverage(
    *,
    data: list[str],
    settings: tuple[Setting, ...] = SETTINGS,
    seeds: int,
    data_dir: Path | None,
    workers: int,
) -> Iterator[list[Covered]]:
    """Yield the segments of each run."""
    cases = list(itertools.product(data, settings, range(1, seeds + 1), (data_dir,)))
    for _, segments in run_jobs(_covered, cases, workers=workers):
        yield segments


def summary(found: list[Covered]) -> Coverage:
    """Return how often the intervals of some segments are right."""
    shown = [one for one in found if one.low is not None]
    right = width = float("nan")
    if shown:
        right = float(np.mean([one.right for one in shown]))
        width = float(np.median([one.width for one in shown]))
    return Coverage(segments=len(found), withheld=len(found) - len(shown), right=right, width=width)


def groups(found: list[Covered]) -> dict[str, list[Covered]]:
    """Return the segments by kind of setting, as the rows of a table."""
    rows: dict[str, list[Covered]] = {}
    for one in found:
        sets = "equal sets" if one.setting.share == 1 else "partial sets"
        names = [
            f"data {one.data}",
            f"{one.setting.n_parties} parties, {sets}",
            f"epsilon {one.setting.epsilon:g}, {sets}",
            f"k = {one.setting.n_clusters}, {sets}",
            f"data {'tuned on' if one.data in TUNED_ON else 'widened on'}",
        ]
        if one.size < SMALL * one.users:
            names.append(f"segments below {SMALL:.0%} of the users")
        for name in (*names, "all"):
            rows.setdefault(name, []).append(one)
    return dict(sorted(rows.items(), key=lambda row: (row[0] == "all", row[0])))


def fitted(
    name: str, setting: Setting, *, seed: int, data_dir: Path | None
) -> tuple[VerticalKMeans, FloatArray]:
    """Return a model of a data set, and the rows of the users that are at every party."""
    rows = rows_of(name, seed=seed, data_dir=data_dir)
    rng = np.random.default_rng([seed, setting.n_parties])
    columns = split_columns(rows, setting.n_parties, rng=rng)
    here = rng.random((setting.n_parties, len(rows))) < setting.share
    ids = [np.flatnonzero(present) for present in here]
    model = VerticalKMeans(
        setting.n_clusters,
        epsilon=setting.epsilon,
        delta=_DELTA,
        bounds=(-1, 1),
        # A public number: what a party has, to one digit.
        expected_users=int(float(f"{len(ids[0]):.0e}")),
        noise=InsecureSeededNoise(seed),
        random_state=seed,
    )
    blocks = [rows[np.ix_(users, own)] for users, own in zip(ids, columns, strict=True)]
    model.fit(blocks, ids=ids if setting.share < 1 else None)
    shared = rows[here.all(axis=0)][:, np.concatenate(columns)]
    return model, shared


def _covered(name: str, setting: Setting, seed: int, data_dir: Path | None) -> list[Covered]:
    model, shared = fitted(name, setting, seed=seed, data_dir=data_dir)
    synopsis = model.synopsis_
    centres = model.result_.server.clustering.scaled_centres
    _, sizes = assign_nodes(synopsis, centres)
    k = len(sizes)
    nearest = np.bincount(assign_labels(shared, centres), minlength=k)
    found = size_intervals(model.result_.plan, synopsis, [centres], rng=np.random.default_rng(seed))
    return [
        Covered(
            data=name,
            setting=setting,
            seed=seed,
            size=float(sizes[at]),
            low=None if found is None else float(found[0].low[at]),
            high=None if found is None else float(found[0].high[at]),
            nearest=int(nearest[at]),
            users=len(shared),
        )
        for at in range(k)
    ]


def rows_of(name: str, *, seed: int, data_dir: Path | None) -> FloatArray:
    """Draw or read rows in [-1, 1]; the seed draws them, or shuffles them."""
    rng = np.random.default_rng([seed, 99])
    match name:
        case "clear":
            return mixed_gaussian(20_000, random_state=seed).rows
        case "blurred":
            return mixed_gaussian(20_000, std=0.3, n_clusters=6, random_state=seed).rows
        case "ten-columns":
            drawn = mixed_gaussian(50_000, std=0.15, n_clusters=8, n_columns=10, random_state=seed)
            return drawn.rows
        case "cloud":
            return _cloud(rng, n=30_000, columns=12)
        case "groups-in-a-cloud":
            # A few per cent in each of six tight groups, the others without structure.
            rows = _cloud(rng, n=25_000, columns=8)
            places = rng.uniform(-0.8, 0.8, (6, 8))
            group = rng.choice(7, size=len(rows), p=[0.09, 0.07, 0.06, 0.05, 0.04, 0.03, 0.66])
            tight = group < 6
            rows[tight] = places[group[tight]] + rng.normal(0, 0.06, (int(tight.sum()), 8))
            return np.asarray(np.clip(rows, -1, 1))
        case "skewed":
            mixed = rng.normal(size=(15_000, 3)) @ rng.normal(size=(3, 9)) / 1.7
            amounts = np.exp(0.6 * (mixed + 0.5 * rng.normal(size=mixed.shape)))
            amounts /= np.quantile(amounts, 0.99, axis=0)
            return np.asarray(np.clip(2 * amounts - 1, -1, 1))
        case "curved":
            # Three closed curves through all columns, of different thickness.
            turn = rng.uniform(0, 2 * np.pi, (18_000, 1))
            curve = rng.choice(3, size=18_000, p=[0.5, 0.3, 0.2])
            phase, speed = rng.uniform(0, 2 * np.pi, (3, 10)), rng.integers(1, 4, (3, 10))
            rows = 0.7 * np.sin(turn * speed[curve] + phase[curve])
            thick = np.array([0.05, 0.1, 0.2])[curve][:, np.newaxis]
            return np.asarray(np.clip(rows + thick * rng.normal(size=rows.shape), -1, 1))
        case "purchases":
            # Counts of four kinds of buyers; most buy nothing of most things.
            rates = np.exp(rng.normal(0, 1, (4, 9)))
            buyer = rng.choice(4, size=24_000, p=[0.45, 0.3, 0.15, 0.1])
            counts = rng.poisson(rates[buyer] * rng.gamma(1.5, 1 / 1.5, (24_000, 1)))
            return np.asarray(np.clip(np.log1p(counts) / np.log(6) - 1, -1, 1))
        case "islands":
            # Long thin groups that cross each other, at any angle.
            group = rng.integers(5, size=16_000)
            along, across = rng.normal(size=(5, 8)), rng.uniform(-0.5, 0.5, (5, 8))
            along /= np.linalg.norm(along, axis=1, keepdims=True)
            rows = across[group] + 0.6 * rng.uniform(-1, 1, (16_000, 1)) * along[group]
            return np.asarray(np.clip(rows + 0.05 * rng.normal(size=rows.shape), -1, 1))
        case "even":
            return rng.uniform(-1, 1, (10_000, 6))
        case "letter" | "loan" | "taxi":
            rows = read_rows(name, data_dir)
            return rows[rng.permutation(len(rows))]
    raise ParameterError(f"data must be one of {', '.join(DATA_SETS)}, got {name!r}")


def _cloud(rng: np.random.Generator, *, n: int, columns: int) -> FloatArray:
    """Draw correlated Gaussian rows, three deviations to the bounds."""
    mixing = rng.normal(size=(columns, columns)) * 0.75 ** np.arange(columns)
    rows = rng.normal(size=(n, columns)) @ mixing
    return np.asarray(np.clip(rows / rows.std(axis=0) / 3, -1, 1))
