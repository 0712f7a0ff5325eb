"""Series: eight runs as users change, under one budget, against other ways to spend it.

    chained      runs of one composed series, each from the result before it (the default)
    fresh        runs of the same series, with the same noise, that begin from nothing
    added up     as many studies of their own, whose epsilons and deltas add up to the same total

Users drift: in every run 5 % of them take the values of others, more of them from one side of the
table, and in the fifth a new segment of 3 % appears at a place where nobody was.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.data import Recipe, load
from splitmeans import VerticalKMeans
from splitmeans._types import FloatArray
from splitmeans.simulate.baselines import central_kmeans
from splitmeans.simulate.evaluation import normalised_loss

CHAINED, FRESH, ADDED_UP = "chained", "fresh", "added up"
WAYS = (CHAINED, FRESH, ADDED_UP)

_DRIFT, _NEW, _NEW_AT, _NEW_SPREAD = 0.05, 0.03, 5, 0.05


@dataclass(frozen=True, kw_only=True)
class Series:
    """What is run: a data set, k, how often, and the total budget."""

    data: str
    n_clusters: int
    runs: int = 8
    epsilon: float = 1.0
    delta: float = 1e-6
    users: int = 20_000


@dataclass(frozen=True, kw_only=True)
class Row:
    """One run: its loss over that of k-means on all columns without privacy."""

    data: str
    n_clusters: int
    way: str
    seed: int
    run: int
    ratio: float


def run_series(series: Series, *, seed: int, data_dir: Path | None) -> Iterator[Row]:
    """Yield what every run of a series gives, each way."""
    recipe = Recipe(n=series.users, n_clusters=series.n_clusters)
    drawn = load(series.data, n_parties=2, seed=seed, recipe=recipe, data_dir=data_dir)
    rows = drawn.rows[: series.users]
    chained: VerticalKMeans | None = None
    for number, now in enumerate(drifting(rows, runs=series.runs, seed=seed), start=1):
        best = normalised_loss(now, central_kmeans(now, series.n_clusters, random_state=seed))
        blocks = [now[:, columns] for columns in drawn.party_columns]
        for way in WAYS:
            model = _model(series, way, seed=seed)
            model.fit(blocks, previous=chained if way == CHAINED else None)
            chained = model if way == CHAINED else chained
            ratio = -model.score(blocks) / best
            yield Row(
                data=series.data,
                n_clusters=series.n_clusters,
                way=way,
                seed=seed,
                run=number,
                ratio=float(ratio),
            )


def drifting(rows: FloatArray, *, runs: int, seed: int) -> Iterator[FloatArray]:
    """Yield the rows of each run; the first has them as they are."""
    rng = np.random.default_rng([seed, 8])
    now, n = rows.copy(), len(rows)
    side = rows @ rng.standard_normal(rows.shape[1])
    one_side = np.flatnonzero(side > np.median(side))
    place = rng.uniform(-0.9, 0.9, rows.shape[1])
    for number in range(1, runs + 1):
        if number > 1:
            moved = rng.choice(n, round(_DRIFT * n), replace=False)
            now[moved] = rows[rng.choice(one_side, len(moved))]
        if number == _NEW_AT:
            moved = rng.choice(n, round(_NEW * n), replace=False)
            now[moved] = place + _NEW_SPREAD * rng.standard_normal((len(moved), rows.shape[1]))
        yield np.clip(now, -1, 1)


def _model(series: Series, way: str, *, seed: int) -> VerticalKMeans:
    runs = 1 if way == ADDED_UP else series.runs
    share = series.runs if way == ADDED_UP else 1
    return VerticalKMeans(
        series.n_clusters,
        epsilon=series.epsilon / share,
        delta=series.delta / share,
        bounds=(-1, 1),
        expected_users=series.users,
        runs=runs,
        random_state=seed,
    )
