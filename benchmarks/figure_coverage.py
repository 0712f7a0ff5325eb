"""How often the 95 % intervals of figures that people ask for hold the truth.

Shares, means, cells of tables and correlations, as a result answers them, beside the same figures
of the pooled rows. The allowances of the replicates were chosen on the data sets of `CHOSEN_ON`;
those of `HELD_OUT` were first looked at when they were fixed.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.answer import Answer, ask_figure, share_of
from benchmarks.coverage import Setting, fitted
from benchmarks.pool import run_jobs
from splitmeans import Result
from splitmeans._types import FloatArray, IntArray
from splitmeans.estimator import VerticalKMeans
from splitmeans.privacy.noise import InsecureSeededNoise
from splitmeans.synopsis.column_places import ColumnPlace, column_places
from splitmeans.synopsis.synopsis import Synopsis

MIXED = ("mixed-classes", "mixed-copula")
CHOSEN_ON = (
    *("clear", "blurred", "cloud", "skewed", "letter", "loan", "taxi"),
    *("purchases", "islands", "curved", *MIXED),
)
HELD_OUT = ("even", "ten-columns", "groups-in-a-cloud")
SETTINGS = tuple(
    Setting(n_parties=parties, epsilon=epsilon, n_clusters=k, share=share)
    for parties, epsilon, k, share in (
        *((2, 0.25, 5, 1.0), (2, 1, 5, 1.0), (2, 4, 8, 1.0), (3, 0.25, 5, 1.0)),
        *((3, 4, 8, 1.0), (4, 1, 5, 1.0), (2, 1, 5, 0.7)),
    )
)
_USERS = 12_000


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One figure of one run; ends are None where the interval was withheld."""

    data: str
    setting: Setting
    kind: str
    value: float
    low: float | None
    high: float | None
    truth: float

    @property
    def right(self) -> bool:
        """Whether the interval holds the truth."""
        assert self.low is not None
        assert self.high is not None
        return self.low <= self.truth <= self.high

    @property
    def width(self) -> float:
        """Half the length of the interval over the figure."""
        assert self.low is not None
        assert self.high is not None
        return (self.high - self.low) / 2 / max(abs(self.value), 1e-9)


def run_figures(
    *,
    data: list[str],
    settings: tuple[Setting, ...],
    seeds: int,
    data_dir: Path | None,
    workers: int,
) -> Iterator[list[Figure]]:
    """Yield the figures of each run; mixed tables are of two parties with equal sets."""
    cases = [
        case
        for case in itertools.product(data, settings, range(1, seeds + 1), (data_dir,))
        if case[0] not in MIXED or (case[1].n_parties == 2 and case[1].share == 1)
    ]
    for _, figures in run_jobs(_figures, cases, workers=workers):
        yield figures


def figure_groups(found: list[Figure]) -> dict[str, list[Figure]]:
    """Return the figures by kind, data and setting, as the rows of a table."""
    rows: dict[str, list[Figure]] = {}
    for one in found:
        sets = "equal sets" if one.setting.share == 1 else "partial sets"
        held = "held out" if one.data in HELD_OUT else "chosen on"
        for name in (
            one.kind,
            f"data {one.data}",
            f"{one.setting.n_parties} parties, epsilon {one.setting.epsilon:g}, {sets}",
            f"data {held}",
            "all",
        ):
            rows.setdefault(name, []).append(one)
    return dict(sorted(rows.items(), key=lambda row: (row[0] == "all", row[0])))


def _figures(name: str, setting: Setting, seed: int, data_dir: Path | None) -> list[Figure]:
    if name in MIXED:
        model, rows = _fitted_mixed(name, setting, seed=seed)
    else:
        model, rows = fitted(name, setting, seed=seed, data_dir=data_dir)
    result = model.published_
    synopsis = result.synopsis
    rng = np.random.default_rng([seed, 7])
    places = column_places(synopsis)
    pairs = [
        rng.permutation([at for at, one in enumerate(places) if one.party == p]) for p in (0, 1)
    ]
    chosen = [places[at] for own in pairs for at in own[:2]]
    asked = _Asked(result=result, rows=rows)
    found = [("total", ask_figure(result, "sum(weight)"), float(len(rows)))]
    for place in chosen:
        found += asked.one_column(place)
    for first, second in ((chosen[0], chosen[-1]), (chosen[0], chosen[1])):
        if first.name != second.name:
            kind = "of two parties" if first.party != second.party else "of one party"
            found += asked.two_columns(first, second, kind=kind)
    return [
        Figure(
            data=name,
            setting=setting,
            kind=kind,
            value=answer.value,
            low=answer.low,
            high=answer.high,
            truth=truth,
        )
        for kind, answer, truth in found
    ]


@dataclass(frozen=True, kw_only=True, eq=False)
class _Asked:
    """A result, and the pooled rows in own units, features in the same order."""

    result: Result
    rows: FloatArray

    @property
    def synopsis(self) -> Synopsis:
        return self.result.synopsis

    def one_column(self, place: ColumnPlace) -> Iterator[tuple[str, Answer, float]]:
        own = self.rows[:, place.features]
        if place.levels:
            table = self.synopsis.table(place.name)
            for row, users in zip(table.rows(), own.sum(axis=0), strict=True):
                yield "share of a category", _scaled(row, len(own)), float(users / len(own))
            return
        mean = ask_figure(self.result, f'wmean("{place.name}", weight)')
        yield "mean", mean, float(own.mean())
        for edge in self.synopsis.table(place.name, bins=6).edges[0]:
            share = ask_figure(self.result, share_of(f'"{place.name}" <= {edge!r}'))
            yield "share up to a number", share, float((own <= edge).mean())

    def two_columns(
        self, first: ColumnPlace, second: ColumnPlace, *, kind: str
    ) -> Iterator[tuple[str, Answer, float]]:
        table = self.synopsis.table(first.name, second.name)
        sides = [
            _bins(self.rows[:, place.features], place, edges)
            for place, edges in zip((first, second), table.edges, strict=True)
        ]
        truth = np.zeros(table.users.shape)
        np.add.at(truth, tuple(sides), 1.0)
        for row, users in zip(table.rows(), truth.ravel(), strict=True):
            answer = Answer(value=row["users"], low=row["low"], high=row["high"])
            yield f"cell {kind}", answer, float(users)
        if first.levels or second.levels:
            return
        x, y = self.rows[:, first.feature], self.rows[:, second.feature]
        (middle,) = self.synopsis.table(second.name, bins=2).edges[0][:1] or (None,)
        if middle is not None and (y > middle).any():
            where = f'"{second.name}" > {middle!r}'
            mean = ask_figure(self.result, f'wmean("{first.name}", weight)', where=where)
            yield f"mean where, {kind}", mean, float(x[y > middle].mean())
        both = next(self.synopsis.correlation(first.name, second.name).rows())
        if both["correlation"] is not None:
            answer = Answer(value=both["correlation"], low=both["low"], high=both["high"])
            yield f"correlation {kind}", answer, float(np.corrcoef(x, y)[0, 1])


def _scaled(row: dict[str, float | None], n: int) -> Answer:
    users, low, high = row["users"], row["low"], row["high"]
    assert users is not None
    if low is None or high is None:
        return Answer(value=users / n)
    return Answer(value=users / n, low=low / n, high=high / n)


def _bins(own: FloatArray, place: ColumnPlace, edges: tuple[float, ...]) -> IntArray:
    if place.levels:
        return np.asarray(own.argmax(axis=1), dtype=np.int64)
    return np.searchsorted(np.array(edges), own[:, 0], side="left").astype(np.int64)


def _fitted_mixed(name: str, setting: Setting, *, seed: int) -> tuple[VerticalKMeans, FloatArray]:
    bank, shop = mixed_tables(name, seed=seed)
    levels = {
        name: sorted(set(own[name]))
        for own in (bank, shop)
        for name in own
        if not pd.api.types.is_numeric_dtype(own[name])
    }
    numbers = {name: (-1, 1) for own in (bank, shop) for name in own if name not in levels}
    model = VerticalKMeans(
        setting.n_clusters,
        epsilon=setting.epsilon,
        delta=1e-6,
        bounds=numbers,
        categories=levels,
        noise=InsecureSeededNoise(seed),
        random_state=seed,
    ).fit([bank, shop])
    rows = []
    for own in (bank, shop):
        for column in own:
            if column in levels:
                rows += [(own[column] == level).to_numpy(dtype=float) for level in levels[column]]
            else:
                rows.append(own[column].to_numpy())
    return model, np.stack(rows, axis=1)


def mixed_tables(name: str, *, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Draw two parties' tables of numbers and categories: latent classes, or a Gaussian copula."""
    rng = np.random.default_rng([seed, 7])
    n = _USERS
    if name == "mixed-classes":
        group = rng.choice(4, size=n, p=[0.4, 0.3, 0.2, 0.1])
        numbers = rng.uniform(-0.6, 0.6, (4, 4))[group] + rng.normal(0, 0.25, (n, 4))
        laws = [np.cumsum(rng.dirichlet(np.full(m, 0.7), size=4), axis=1) for m in (4, 6, 3)]
        codes = [(rng.random(n)[:, None] > law[group, :-1]).sum(axis=1) for law in laws]
    else:
        scores = rng.normal(size=(n, 2)) @ rng.normal(size=(2, 7)) + rng.normal(size=(n, 7))
        scores /= scores.std(axis=0)
        numbers = np.stack(
            [
                scores[:, 0] / 3,
                np.exp(0.6 * scores[:, 1]) / 3 - 1,
                np.tanh(scores[:, 2]),
                scores[:, 3] / 2.5,
            ],
            axis=1,
        )
        edges = ([-0.5, 0.3, 1.2], [-1, -0.3, 0.1, 0.8], [0.2, 1.1])
        codes = [np.searchsorted(cut, scores[:, 4 + at]) for at, cut in enumerate(edges)]
    numbers = np.clip(numbers, -1, 1)
    texts = [np.array([f"level {code}" for code in own], dtype=object) for own in codes]
    bank = pd.DataFrame({"x0": numbers[:, 0], "x1": numbers[:, 1], "colour": texts[0]})
    shop = pd.DataFrame(
        {"x2": numbers[:, 2], "x3": numbers[:, 3], "plan": texts[1], "size": texts[2]}
    )
    return bank, shop
