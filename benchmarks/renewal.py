"""Series: eight runs as users change, under one budget, against other ways to spend it.

    chained      runs of one composed series, each from the result before it (the default)
    fresh        runs of the same series, with the same noise, that begin from nothing
    added up     as many studies of their own, whose epsilons and deltas add up to the same total

Users drift, as `DRIFTS` says: not at all; some, where in every run 5 % of them take the values of
others, more of them from one side of the table, and in the fifth a new segment of 3 % appears at a
place where nobody was; or strongly, where 30 % do so and six groups of users move in all columns,
each in its own direction.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.data import Recipe, load
from splitmeans import VerticalKMeans
from splitmeans._types import FloatArray
from splitmeans.intervals.sizes import size_intervals
from splitmeans.simulate.baselines import central_kmeans
from splitmeans.simulate.evaluation import assign_labels, normalised_loss

CHAINED, FRESH, ADDED_UP = "chained", "fresh", "added up"
WAYS = (CHAINED, FRESH, ADDED_UP)

DRIFTS = ("none", "some", "strong")
# Share of users who take other values in a run, and how far a group of users moves.
_CHANGED = {"none": 0.0, "some": 0.05, "strong": 0.3}
_MOVED = {"none": 0.0, "some": 0.0, "strong": 0.15}
_GROUPS = 6
_NEW, _NEW_AT, _NEW_SPREAD = 0.03, 5, 0.05


@dataclass(frozen=True, kw_only=True)
class Series:
    """What is run: a data set, k, how users change, how often, and the total budget."""

    data: str
    n_clusters: int
    drift: str = "some"
    runs: int = 8
    epsilon: float = 1.0
    delta: float = 1e-6
    users: int = 20_000


@dataclass(frozen=True, kw_only=True)
class Row:
    """One run.

    Attributes:
        ratio: Its loss over that of k-means on all columns without privacy.
        segments: How many segments have an interval of their size.
        right: How many of these hold the users nearest to the segment's centre.
    """

    data: str
    n_clusters: int
    drift: str
    way: str
    seed: int
    run: int
    ratio: float
    segments: int
    right: int


def run_series(series: Series, *, seed: int, data_dir: Path | None) -> Iterator[Row]:
    """Yield what every run of a series gives, each way."""
    recipe = Recipe(n=series.users, n_clusters=series.n_clusters)
    drawn = load(series.data, n_parties=2, seed=seed, recipe=recipe, data_dir=data_dir)
    # Tables in files may have an order, such as that of time.
    shuffled = np.random.default_rng([seed, 9]).permutation(len(drawn.rows))[: series.users]
    rows = drawn.rows[shuffled]
    chained: VerticalKMeans | None = None
    changing = drifting(rows, drift=series.drift, runs=series.runs, seed=seed)
    for number, now in enumerate(changing, start=1):
        best = normalised_loss(now, central_kmeans(now, series.n_clusters, random_state=seed))
        blocks = [now[:, columns] for columns in drawn.party_columns]
        for way in WAYS:
            model = _model(series, way, seed=seed)
            model.fit(blocks, previous=chained if way == CHAINED else None)
            chained = model if way == CHAINED else chained
            ratio = -model.score(blocks) / best
            segments, right = (0, 0) if way == ADDED_UP else _intervals(model, blocks)
            yield Row(
                data=series.data,
                n_clusters=series.n_clusters,
                drift=series.drift,
                way=way,
                seed=seed,
                run=number,
                ratio=float(ratio),
                segments=segments,
                right=right,
            )


def drifting(rows: FloatArray, *, drift: str, runs: int, seed: int) -> Iterator[FloatArray]:
    """Yield the rows of each run; the first has them as they are."""
    rng = np.random.default_rng([seed, 8])
    now, n = rows.copy(), len(rows)
    side = rows @ rng.standard_normal(rows.shape[1])
    one_side = np.flatnonzero(side > np.median(side))
    place = rng.uniform(-0.9, 0.9, rows.shape[1])
    group = assign_labels(rows, central_kmeans(rows, _GROUPS, random_state=seed))
    step = rng.standard_normal((_GROUPS, rows.shape[1]))
    step *= _MOVED[drift] / np.linalg.norm(step, axis=1, keepdims=True)
    of_group = group.copy()
    for number in range(1, runs + 1):
        if number > 1:
            moved = rng.choice(n, round(_CHANGED[drift] * n), replace=False)
            taken = rng.choice(one_side, len(moved))
            now[moved], of_group[moved] = rows[taken], group[taken]
        if number == _NEW_AT and drift != "none":
            moved = rng.choice(n, round(_NEW * n), replace=False)
            now[moved] = place + _NEW_SPREAD * rng.standard_normal((len(moved), rows.shape[1]))
        yield np.clip(now + (number - 1) * step[of_group], -1, 1)


def _intervals(model: VerticalKMeans, blocks: list[FloatArray]) -> tuple[int, int]:
    """Return how many segments have intervals of their sizes, and how many of those are right."""
    assert model.result_ is not None
    centres = model.result_.server.clustering.scaled_centres
    rng = np.random.default_rng(0)
    found = size_intervals(model.result_.plan, model.synopsis_, [centres], rng=rng)
    if found is None:
        return 0, 0
    labels = assign_labels(np.concatenate(blocks, axis=1), centres)
    nearest = np.bincount(labels, minlength=len(centres))
    return len(centres), int(np.sum((found[0].low <= nearest) & (nearest <= found[0].high)))


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
