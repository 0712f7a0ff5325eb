"""The table of `splitmeans plan` over epsilon, and how it writes ratios of losses."""

from collections.abc import Sequence
from typing import Literal

from rich.table import Table

from splitmeans import figures
from splitmeans.cli.console import new_table
from splitmeans.forecasting.forecast import Point
from splitmeans.forecasting.loss_model import MAX_RATIO, LossForecast


def sweep_table(points: Sequence[Point], *, chosen: float) -> Table:
    """Return the figures for each epsilon; the study's own epsilon is marked."""
    table = new_table("what other values of epsilon would give")
    # Headings of two lines, so that a narrow terminal has room for whole figures.
    headings = ["epsilon", "k'", "cell\nerror"]
    if any(point.loss for point in points):
        headings += ["loss\nratio", "range"]
    for heading in headings:
        justify: Literal["left", "right"] = "left" if heading == "range" else "right"
        table.add_column(heading, justify=justify, no_wrap=True, overflow="fold")
    for point in points:
        mark = "* " if point.epsilon == chosen else ""
        row = [f"{mark}{point.epsilon:g}", str(point.n_local_clusters), number(point.cell_error)]
        if point.loss is not None:
            row += [ratio(point.loss.typical), between(point.loss)]
        table.add_row(*row)
    return table


def ratio(value: float) -> str:
    """Return a ratio of losses as text."""
    return f">={MAX_RATIO:g}" if value >= MAX_RATIO else f"{value:.3f}"


def between(loss: LossForecast) -> str:
    """Return the range of a ratio of losses as text."""
    low, high = ratio(loss.low), ratio(loss.high)
    if loss.high >= MAX_RATIO:
        return low if low == high else f"{low} or more"
    return f"{low}-{high}"


def per_cent(loss_ratio: float) -> str:
    """Return how much more than 1 a ratio is, in per cent."""
    more = 100 * (loss_ratio - 1)
    return f"{more:z.1f}" if more < 10 else f"{more:z.0f}"


def number(value: float | None) -> str:
    """Return a figure with three digits that count."""
    return "-" if value is None else figures.number(value)
