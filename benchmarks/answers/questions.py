"""Questions as people put them, each with its answer and what the pooled rows say.

Bounds in conditions are what somebody would write: a quantile of the column to two digits, or a
category. They are not those that the synopsis would choose.
"""

import json
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd
from typer.testing import CliRunner

from benchmarks.answer import Answer, ask_figure, share_of
from benchmarks.answers.whole_runs import Scene
from splitmeans import cli
from splitmeans.synopsis.column_places import ColumnPlace, column_places

T = TypeVar("T")
P = ParamSpec("P")
Chosen = npt.NDArray[np.bool_]

_BINS = 3


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One figure of one answer.

    Attributes:
        kind: What was asked for.
        question: The question.
        value: What was answered.
        low: Lower end of the 95 % interval, None where it was withheld.
        high: Upper end.
        truth: What the pooled rows say.
        unit: In what errors are counted: users of all for counts, 1 for shares and correlations, a
            deviation of the column for means.
        seconds: Processor time of the whole answer.
    """

    kind: str
    question: str
    value: float
    low: float | None
    high: float | None
    truth: float
    unit: float
    seconds: float

    @property
    def error(self) -> float:
        """How far the figure is off, in its unit."""
        return abs(self.value - self.truth) / self.unit

    @property
    def right(self) -> bool | None:
        """Whether the interval holds the truth; None where there is none."""
        if self.low is None or self.high is None:
            return None
        return self.low <= self.truth <= self.high

    @property
    def half_width(self) -> float | None:
        """Half the length of the interval, in its unit."""
        if self.low is None or self.high is None:
            return None
        return (self.high - self.low) / 2 / self.unit


@dataclass(frozen=True, kw_only=True)
class Bound:
    """A condition on one column, as text and as a choice of true rows."""

    text: str
    fits: Callable[[pd.DataFrame], Chosen]


def ask_all(scene: Scene) -> Iterator[Figure]:
    """Ask everything of a result."""
    questions = _Questions(scene)
    yield from questions.users()
    yield from questions.one_column()
    yield from questions.two_parties()
    yield from questions.correlations()
    yield from questions.segments()
    yield from questions.sql()


def timed(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> tuple[T, float]:
    """Return what a call returns, and its processor time."""
    start = time.process_time()
    found = function(*args, **kwargs)
    return found, time.process_time() - start


def _mean_of(place: ColumnPlace) -> str:
    return f'wmean("{place.name}", weight)'


class _Questions:
    def __init__(self, scene: Scene) -> None:
        self.scene, self.synopsis = scene, scene.result.synopsis
        self.frame = scene.frame
        self.n = len(self.frame)
        rng = np.random.default_rng([scene.setting.seed, scene.setting.n_parties, 0xC7])
        self.rng = rng
        places = column_places(self.synopsis)
        own = [[one for one in places if one.party == at] for at in range(scene.setting.n_parties)]
        # Two columns of each of the first parties, and who asks about one asks about the next.
        self.chosen = [
            part[at] for part in own[:3] for at in rng.permutation(len(part))[:2].tolist()
        ]
        self.pairs = [
            (own[first][int(rng.integers(len(own[first])))], self._number(own[second]))
            for first, second in ((0, 1), (1, 0), (0, len(own) - 1))
        ]

    def _number(self, places: list[ColumnPlace]) -> ColumnPlace:
        numbers = [place for place in places if not place.levels] or places
        return numbers[int(self.rng.integers(len(numbers)))]

    def users(self) -> Iterator[Figure]:
        answer, seconds = timed(ask_figure, self.scene.result, "sum(weight)")
        yield self._figure("users", "users", answer, float(self.n), self.n, seconds)

    def one_column(self) -> Iterator[Figure]:
        for place in self.chosen:
            bound = self.bound(place)
            answer, seconds = timed(ask_figure, self.scene.result, share_of(bound.text))
            truth = float(bound.fits(self.frame).mean())
            yield self._figure("share", f"share({bound.text})", answer, truth, 1.0, seconds)
            if not place.levels:
                answer, seconds = timed(ask_figure, self.scene.result, _mean_of(place))
                yield self._mean("mean", f"mean({place.name})", place, answer, seconds)

    def two_parties(self) -> Iterator[Figure]:
        for first, second in self.pairs:
            one, two = self.bound(first), self.bound(second)
            both = f"{one.text} and {two.text}"
            answer, seconds = timed(ask_figure, self.scene.result, share_of(both))
            truth = float((one.fits(self.frame) & two.fits(self.frame)).mean())
            yield self._figure("share of two parties", both, answer, truth, 1.0, seconds)
            yield from self._part(one, two, second)
            yield from self._cells(first, second)

    def _part(self, one: Bound, two: Bound, second: ColumnPlace) -> Iterator[Figure]:
        """Ask about the other party's columns of those who fit a condition of one party."""
        chosen = one.fits(self.frame)
        if not chosen.any():
            return
        answer, seconds = timed(ask_figure, self.scene.result, share_of(two.text), where=one.text)
        truth = float(two.fits(self.frame)[chosen].mean())
        text = f"share({two.text}) where {one.text}"
        yield self._figure("share where another party", text, answer, truth, 1.0, seconds)
        if not second.levels:
            answer, seconds = timed(ask_figure, self.scene.result, _mean_of(second), where=one.text)
            text = f"mean({second.name}) where {one.text}"
            yield self._mean("mean where another party", text, second, answer, seconds, chosen)

    def _cells(self, first: ColumnPlace, second: ColumnPlace) -> Iterator[Figure]:
        table, seconds = timed(self.synopsis.table, first.name, second.name, bins=_BINS)
        codes = [
            _codes(self.frame[place.name], place, edges)
            for place, edges in zip((first, second), table.edges, strict=True)
        ]
        truth = np.zeros(table.users.shape)
        np.add.at(truth, tuple(codes), 1.0)
        text = f"table({first.name}, {second.name})"
        for row, users in zip(table.rows(), truth.ravel(), strict=True):
            answer = Answer(value=row["users"], low=row["low"], high=row["high"])
            yield self._figure("cell of two parties", text, answer, float(users), self.n, seconds)

    def correlations(self) -> Iterator[Figure]:
        places = {
            place.name: place
            for pair in (self.chosen, *self.pairs)
            for place in pair
            if not place.levels and self.frame[place.name].std() > 0
        }
        if len(places) < 2:
            return
        found, seconds = timed(self.synopsis.correlation, *places)
        truth = self.frame[list(places)].astype(float).corr()
        for row in found.rows():
            if row["correlation"] is None:
                continue
            answer = Answer(value=row["correlation"], low=row["low"], high=row["high"])
            first, second = places[row["first"]], places[row["second"]]
            kind = "of one party" if first.party == second.party else "of two parties"
            both = float(truth.loc[first.name, second.name])
            text = f"correlation({first.name}, {second.name})"
            yield self._figure(f"correlation {kind}", text, answer, both, 1.0, seconds)

    def segments(self) -> Iterator[Figure]:
        """Sizes of the published segments."""
        result = self.scene.result
        rows = self.scene.pooled.frame[self.scene.present.all(axis=1)]
        sizes = np.bincount(self.scene.segments(rows), minlength=result.published.k)
        ends, seconds = timed(result.size_intervals)
        for at, size in enumerate(result.published_sizes):
            answer = Answer(
                value=float(size),
                low=None if ends is None else float(ends.low[at]),
                high=None if ends is None else float(ends.high[at]),
            )
            text = f"size of {result.published.letters[at]}"
            yield self._figure("size of a segment", text, answer, float(sizes[at]), self.n, seconds)

    def sql(self) -> Iterator[Figure]:
        """Ask `splitmeans result ask`, from a result folder."""
        letters = np.array(self.scene.result.published.letters)
        rows = self.scene.pooled.frame[self.scene.present.all(axis=1)]
        own = letters[self.scene.segments(rows)]
        _, place = self.pairs[0]
        first, _ = self.pairs[1]
        bound = self.bound(first)
        side = f"CASE WHEN {bound.text} THEN 'yes' ELSE 'no' END"
        sides = np.where(bound.fits(self.frame), "yes", "no")
        with tempfile.TemporaryDirectory() as folder:
            target = self.scene.result.save(Path(folder) / "result")
            yield from self._grouped(target, "segment", own, place, what="segment")
            yield from self._grouped(target, side, sides, place, what="group")

    def _grouped(
        self, folder: Path, group: str, truth: npt.NDArray[Any], place: ColumnPlace, *, what: str
    ) -> Iterator[Figure]:
        mean = "" if place.levels else f', wmean("{place.name}", weight) AS mean'
        query = f"SELECT {group} AS part, sum(weight) AS users{mean} FROM synopsis GROUP BY part"
        found, seconds = timed(_result_ask, folder, query)
        for row in found:
            chosen = truth == row["part"]
            answer = _answer(row, "users")
            users = float(chosen.sum())
            yield self._figure(f"SQL: users of a {what}", query, answer, users, self.n, seconds)
            if mean and chosen.any():
                answer = _answer(row, "mean")
                kind = f"SQL: mean in a {what}"
                yield self._mean(kind, query, place, answer, seconds, chosen)

    def bound(self, place: ColumnPlace) -> Bound:
        """Return a condition on a column: a category, or a bound as people write one."""
        values = self.frame[place.name]
        if place.levels:
            level = str(values.value_counts().index[int(self.rng.integers(2))])
            quoted = level.replace("'", "''")
            return Bound(
                text=f"\"{place.name}\" = '{quoted}'",
                fits=lambda rows: (rows[place.name] == level).to_numpy(),
            )
        wanted = float(np.quantile(values.to_numpy(dtype=float), self.rng.uniform(0.25, 0.75)))
        edge = float(f"{wanted:.2g}")
        if self.rng.random() < 0.5:
            return Bound(
                text=f'"{place.name}" <= {edge!r}',
                fits=lambda rows: (rows[place.name] <= edge).to_numpy(),
            )
        return Bound(
            text=f'"{place.name}" > {edge!r}',
            fits=lambda rows: (rows[place.name] > edge).to_numpy(),
        )

    def _mean(
        self,
        kind: str,
        text: str,
        place: ColumnPlace,
        answer: Answer,
        seconds: float,
        chosen: Chosen | None = None,
    ) -> Figure:
        values = self.frame[place.name].to_numpy(dtype=float)
        truth = float((values if chosen is None else values[chosen]).mean())
        spread = max(float(values.std()), 1e-12)
        return self._figure(kind, text, answer, truth, spread, seconds)

    def _figure(
        self, kind: str, text: str, answer: Answer, truth: float, unit: float, seconds: float
    ) -> Figure:
        return Figure(
            kind=kind,
            question=text,
            value=answer.value,
            low=answer.low,
            high=answer.high,
            truth=truth,
            unit=float(unit),
            seconds=seconds,
        )


def _codes(values: "pd.Series[Any]", place: ColumnPlace, edges: tuple[float, ...]) -> Any:
    if place.levels:
        at = {level: code for code, level in enumerate(place.levels)}
        return values.map(at).to_numpy()
    return np.searchsorted(np.array(edges), values.to_numpy(dtype=float), side="left")


def _answer(row: dict[str, Any], name: str) -> Answer:
    return Answer(value=row[name], low=row[f"{name} low"], high=row[f"{name} high"])


def _result_ask(folder: Path, query: str) -> list[dict[str, Any]]:
    done = CliRunner().invoke(cli.app, ["result", "ask", str(folder), query, "--json"])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    found: list[dict[str, Any]] = json.loads(done.stdout)["rows"]
    return found
