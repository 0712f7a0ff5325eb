"""The small chart of `splitmeans plan`: one bar for each epsilon."""

import math
from collections.abc import Sequence

from rich.table import Table

from splitmeans.cli.console import new_table, out
from splitmeans.forecasting.forecast import Point
from splitmeans.forecasting.loss_model import MAX_RATIO

# A bar is as long as the increase of the loss has decimal places above this one.
_LEAST_INCREASE = 0.001
_BAR_WIDTH = 32
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def sweep_table(points: Sequence[Point], *, chosen: float) -> Table:
    """Return the chart as a table; the study's own epsilon is marked."""
    with_loss = any(point.loss for point in points)
    title = "what other values of epsilon would give"
    table = new_table(title)
    table.add_column("epsilon", justify="right")
    table.add_column("k'", justify="right")
    table.add_column("cell error", justify="right")
    if with_loss:
        table.add_column("loss ratio", justify="right")
        table.add_column("range", justify="left")
        table.add_column("loss increase (8 marks more: ten times)", no_wrap=True)
    for point in points:
        mark = "* " if point.epsilon == chosen else ""
        row = [f"{mark}{point.epsilon:g}", str(point.n_local_clusters), number(point.cell_error)]
        if point.loss is not None:
            low, high = ratio(point.loss.low), ratio(point.loss.high)
            row += [ratio(point.loss.typical), f"{low}-{high}", bar(point.loss.typical)]
        table.add_row(*row)
    return table


def bar(loss_ratio: float, *, unicode: bool | None = None) -> str:
    """Return a bar for a ratio of losses, on a logarithmic scale from 0.1 % to 900 % more."""
    places = math.log10(max(loss_ratio - 1, _LEAST_INCREASE) / _LEAST_INCREASE)
    length = places / math.log10((MAX_RATIO - 1) / _LEAST_INCREASE) * _BAR_WIDTH
    if unicode is None:
        unicode = out.is_terminal and out.encoding.lower().startswith("utf")
    if not unicode:
        return "#" * max(1, round(length))
    whole, part = divmod(max(1, round(8 * length)), 8)
    return "█" * whole + _EIGHTHS[part].strip()


def ratio(value: float) -> str:
    """Return a ratio of losses as text."""
    return f">={MAX_RATIO:g}" if value >= MAX_RATIO else f"{value:.3f}"


def number(value: float | None) -> str:
    """Return a figure with three digits that count."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
