"""The small chart of `splitmeans plan`: one bar for each epsilon."""

import math
from collections.abc import Sequence
from typing import Literal

from rich.measure import Measurement
from rich.table import Table

from splitmeans import figures
from splitmeans.cli.console import new_table, out
from splitmeans.forecasting.forecast import Point
from splitmeans.forecasting.loss_model import MAX_RATIO, LossForecast

# A bar is as long as the increase of the loss has decimal places above this one.
_LEAST_INCREASE = 0.001
# Bars have a mark for each of so many parts of a decimal place: 8 where there is room.
_MOST_MARKS, _FEWEST_MARKS = 8, 2
# Decimal places from the least increase to the largest, about.
_PLACES = 4
# What lines and padding take beside the bars in a terminal.
_AROUND_BAR = 3
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def sweep_table(points: Sequence[Point], *, chosen: float) -> Table:
    """Return the chart as a table; the study's own epsilon is marked.

    Figures are never cut: in a narrow terminal their headings are broken and bars get shorter, down
    to none.
    """
    whole = _table(points, chosen=chosen)
    broken = _width(whole) > out.width
    figures = _table(points, chosen=chosen, broken=True) if broken else whole
    marks = min(_MOST_MARKS, (out.width - _width(figures) - _AROUND_BAR) // _PLACES)
    if marks < _FEWEST_MARKS or not any(point.loss for point in points):
        return figures
    return _table(points, chosen=chosen, broken=broken, marks=marks)


def _table(
    points: Sequence[Point], *, chosen: float, broken: bool = False, marks: int = 0
) -> Table:
    """Return the chart with bars of this scale, with 0 marks without bars."""
    table = new_table("what other values of epsilon would give")
    headings = ["epsilon", "k'", "cell error"]
    if any(point.loss for point in points):
        headings += ["loss ratio", "range"]
    for heading in headings:
        justify: Literal["left", "right"] = "left" if heading == "range" else "right"
        shown = heading.replace(" ", "\n") if broken else heading
        table.add_column(shown, justify=justify, no_wrap=True, overflow="fold")
    if marks:
        table.add_column(f"loss increase ({marks} marks more: ten times)")
    for point in points:
        mark = "* " if point.epsilon == chosen else ""
        row = [f"{mark}{point.epsilon:g}", str(point.n_local_clusters), number(point.cell_error)]
        if point.loss is not None:
            row += [ratio(point.loss.typical), between(point.loss)]
            row += [bar(point.loss.typical, marks=marks)] if marks else []
        table.add_row(*row)
    return table


def _width(table: Table) -> int:
    """Return how wide a table is if nothing is cut."""
    return Measurement.get(out, out.options.update(max_width=10**4), table).maximum


def bar(loss_ratio: float, *, marks: int = _MOST_MARKS, unicode: bool | None = None) -> str:
    """Return a bar for a ratio of losses, on a logarithmic scale from 0.1 % to 900 % more.

    Ten times the increase is about `marks` marks more.
    """
    places = math.log10(max(loss_ratio - 1, _LEAST_INCREASE) / _LEAST_INCREASE)
    length = places / math.log10((MAX_RATIO - 1) / _LEAST_INCREASE) * _PLACES * marks
    if unicode is None:
        unicode = out.is_terminal and out.encoding.lower().startswith("utf")
    if not unicode:
        return "#" * max(1, round(length))
    whole, part = divmod(max(1, round(8 * length)), 8)
    return "█" * whole + _EIGHTHS[part].strip()


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
