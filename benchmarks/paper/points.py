"""From stored cells to the points of a figure: means over seeds with their standard errors."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.paper.cell import Cell
from benchmarks.paper.figure import Figure, left_out
from benchmarks.paper.store import CellStore


@dataclass(frozen=True, kw_only=True)
class Mean:
    """A mean over seeds, its standard error (None for one seed), and how many seeds."""

    value: float
    error: float | None
    seeds: int


@dataclass(frozen=True, kw_only=True)
class Point:
    """One point of a figure; `x` is None for a mark. `cell` has the first seed."""

    panel: str
    series: str
    x: Any
    cell: Cell
    measures: Mapping[str, Mean]


@dataclass(frozen=True, kw_only=True)
class Points:
    """All points of a figure that have results."""

    figure: Figure
    points: tuple[Point, ...]

    def __iter__(self) -> Iterator[Point]:
        return iter(self.points)

    def mean(self, panel: str, series: str, x: Any, measure: str | None = None) -> Mean | None:
        """Return a mean with its error, None if there is none."""
        for point in self.points:
            if (point.panel, point.series, point.x) == (panel, series, x):
                return point.measures.get(measure or self.figure.y)
        return None

    def get(self, panel: str, series: str, x: Any, measure: str | None = None) -> float | None:
        """Return the value of a mean, None if there is none."""
        mean = self.mean(panel, series, x, measure)
        return None if mean is None else mean.value

    def line(self, panel: str, series: str) -> list[Point]:
        """Return the points of a line in the order of the axis, marks left out."""
        return [
            point
            for point in self.points
            if (point.panel, point.series) == (panel, series) and point.x is not None
        ]

    @property
    def panels(self) -> list[str]:
        """Names of the panels that have lines, in the figure's order."""
        return list(dict.fromkeys(p.panel for p in self.points if p.x is not None))

    @property
    def series(self) -> list[str]:
        """Names of the lines that have points, in the figure's order."""
        have = {point.series for point in self.points}
        return [series.name for series in self.figure.series if series.name in have]

    def xs(self, panel: str) -> list[Any]:
        """Values along the axis of a panel that have points."""
        return list(dict.fromkeys(p.x for p in self.points if p.panel == panel and p.x is not None))


def collect(
    figure: Figure,
    store: CellStore,
    *,
    seeds: int,
    quick: bool,
    data_digests: Mapping[str, str],
) -> Points:
    """Return the points of a figure from the cells that are there."""
    found = []
    for panel in figure.panels:
        for series, x in figure.places(panel, quick=quick):
            cells = [figure.make_cell(panel, series, x, seed=seed) for seed in range(seeds)]
            keys = [cell.key(data_digests) for cell in cells]
            measures = means([store.measures[key] for key in keys if key in store])
            if measures and not left_out(cells[0]):
                place = {"panel": panel.name, "series": series.name, "x": x}
                found.append(Point(**place, cell=cells[0], measures=measures))
    return Points(figure=figure, points=tuple(found))


def means(runs: Sequence[Mapping[str, float | None]]) -> dict[str, Mean]:
    """Return the mean of every measure that some run has."""
    found = {}
    for name in dict.fromkeys(name for run in runs for name in run):
        values = [value for run in runs if (value := run.get(name)) is not None]
        if values:
            n = len(values)
            error = float(np.std(values, ddof=1)) / math.sqrt(n) if n > 1 else None
            found[name] = Mean(value=float(np.mean(values)), error=error, seeds=n)
    return found


def x_text(x: Any) -> str:
    """Return a value of the axis as people read it."""
    if isinstance(x, tuple):
        return ":".join(map(str, x))
    return f"{x:g}"
