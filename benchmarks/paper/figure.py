"""What a figure or table is: panels, lines and the values along its axis, as a value."""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks.paper.cell import Cell


def left_out(cell: Cell) -> bool:
    """Whether a cell is never run.

    BasicEst is 2PEst at two parties, so it is run for more only; `sketch` with more than six
    parties has 6^8 cells, which take half a minute a run.
    """
    same = cell.method == "sketch-paper-basic" and cell.n_parties == 2
    return same or (cell.method == "sketch" and cell.n_parties > 6)


@dataclass(frozen=True, kw_only=True)
class Series:
    """One line of a figure or row of a table: its name, which is also its style, and its cells."""

    name: str
    cell: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One picture of a figure. `xs` replaces the figure's values along the axis."""

    name: str
    cell: Mapping[str, Any]
    xs: tuple[Any, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure or table of the paper.

    Attributes:
        name: What `--figure` calls it.
        title: Heading on the page.
        item: Which item of the paper it is.
        paper: What the paper shows there, as facts in our own words.
        x: The setting of a cell that varies along the axis.
        y: The measure that is shown.
        also: Further measures that its JSON holds.
        x_label: Text at the axis.
        y_label: Text at the axis.
        xs: Values along the axis.
        quick_xs: The same for a quick run; `xs` if empty.
        panels: The pictures, row by row.
        series: The lines.
        marks: Cells without a place on the axis, drawn at their mean k': the rule's own choice.
        cell: What all cells have in common.
        per_row: Pictures in a row.
        picture: Whether a picture is drawn; tables have none.
        settings: What the page says about grid and seeds beside the numbers.
    """

    name: str
    title: str
    item: str
    paper: str
    x: str
    y: str
    also: tuple[str, ...] = ()
    x_label: str = ""
    y_label: str = ""
    xs: tuple[Any, ...] = ()
    quick_xs: tuple[Any, ...] = ()
    panels: tuple[Panel, ...] = ()
    series: tuple[Series, ...] = ()
    marks: tuple[Series, ...] = ()
    cell: Mapping[str, Any] = field(default_factory=dict)
    per_row: int = 4
    picture: bool = True
    settings: str = ""

    def xs_of(self, panel: Panel, *, quick: bool = False) -> tuple[Any, ...]:
        """Return the values along the axis of a panel."""
        return panel.xs or (self.quick_xs if quick and self.quick_xs else self.xs)

    def make_cell(self, panel: Panel, series: Series, x: Any, *, seed: int) -> Cell:
        """Return the cell of one point; x is None for a mark."""
        place = {} if x is None else {self.x: x}
        settings = {**self.cell, **panel.cell, **series.cell, **place, "seed": seed}
        return Cell(**settings).standard()

    def places(self, panel: Panel, *, quick: bool) -> list[tuple[Series, Any]]:
        """Return lines with values of the axis, and marks with None."""
        on_axis = itertools.product(self.series, self.xs_of(panel, quick=quick))
        return [*on_axis, *((series, None) for series in self.marks)]

    def cells(self, *, seeds: int, quick: bool, have: Mapping[str, bool]) -> Iterator[Cell]:
        """Yield all cells; `have` says of data sets and methods whether they can be run."""
        for panel, seed in itertools.product(self.panels, range(seeds)):
            for series, x in self.places(panel, quick=quick):
                cell = self.make_cell(panel, series, x, seed=seed)
                if have.get(cell.data, True) and have.get(cell.method, True) and not left_out(cell):
                    yield cell
