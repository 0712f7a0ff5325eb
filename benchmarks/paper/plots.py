"""Pictures in one style, as SVG and PNG.

Colours are from the palette of Okabe and Ito, which people with any kind of colour vision can tell
apart; markers and dashes say the same once more. Black and grey are pooled data or no privacy.
Matplotlib is an extra: `pip install splitmeans[paper]`.
"""

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.paper.points import Point, Points, x_text
from splitmeans.errors import ParameterError


@dataclass(frozen=True, kw_only=True)
class Style:
    """Colour, marker and dash of a line."""

    colour: str
    marker: str = ""
    dash: str = "-"
    width: float = 1.4


_BLUE, _SKY, _GREEN, _ORANGE = "#0072B2", "#56B4E9", "#009E73", "#E69F00"
_VERMILION, _PURPLE, _GREY, _BLACK = "#D55E00", "#CC79A7", "#767676", "#000000"

STYLES = {
    "central, no privacy": Style(colour=_BLACK, dash="--"),
    "split, no privacy": Style(colour=_BLACK, dash=":"),
    "central DPLSF": Style(colour=_GREY, marker="s", dash="-."),
    "central diffprivlib": Style(colour=_GREY, marker="x", dash=":"),
    "DPFMPS-2PEst": Style(colour=_BLUE, marker="o"),
    "DPFMPS-BasicEst": Style(colour=_SKY, marker="v", dash="--"),
    "LDP-AGG-2PEst": Style(colour=_PURPLE, marker="D"),
    "IND-LAP": Style(colour=_VERMILION, marker="^"),
    "sketch (ours)": Style(colour=_ORANGE, marker="P", width=2.2),
    "decoy (ours)": Style(colour=_GREEN, marker="*", width=2.2),
    "DPLSF + exact weights": Style(colour=_VERMILION, marker="s", dash="--"),
    "plain centres + 2PEst": Style(colour=_SKY, marker="v", dash="--"),
    "DPFMPS-2PEst, eps 1": Style(colour=_SKY, marker="o"),
    "DPFMPS-2PEst, eps 2": Style(colour=_BLUE, marker="s"),
    "DPFMPS-2PEst, eps 4": Style(colour=_BLACK, marker="^"),
    "decoy (ours), eps 1": Style(colour=_GREEN, marker="*", width=2.2),
    "sketch (ours), eps 1": Style(colour=_ORANGE, marker="P", width=2.2),
    "decoy grid, eps 1 (ours)": Style(colour=_GREEN, marker="*", width=2.2),
}
_OTHER = Style(colour=_PURPLE, marker="h")

# Above this ratio of the largest to the smallest value a panel has a logarithmic axis.
_WIDE_RANGE = 3.0
_WITHOUT_BOUND = ("loss", "weight_error")
_DOUBLING = ("epsilon", "repetitions")
# How many letters of the legend fit, and how many its lines and gaps take.
_LETTERS_PER_INCH, _LEGEND_MARGIN = 12, 8
_SETTINGS = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.6,
    "axes.titlesize": 10,
    "lines.markersize": 5,
    "legend.frameon": False,
    "svg.fonttype": "none",
    # Names inside the file stay the same from run to run.
    "svg.hashsalt": "splitmeans",
}


def import_matplotlib() -> Any:
    """Return `matplotlib`, set to draw into files."""
    try:
        matplotlib = importlib.import_module("matplotlib")
    except ImportError as problem:
        raise ParameterError(
            "pictures need matplotlib: pip install 'splitmeans[paper]'"
        ) from problem
    matplotlib.use("agg")
    return matplotlib


def draw(points: Points, folder: Path) -> list[Path]:
    """Draw a figure; return its files, none if there is nothing to draw."""
    panels = points.panels
    if not panels or not points.figure.picture:
        return []
    matplotlib = import_matplotlib()
    from_figure = importlib.import_module("matplotlib.figure").Figure
    with matplotlib.rc_context(_SETTINGS):
        columns = min(points.figure.per_row, len(panels))
        rows = -(-len(panels) // columns)
        width = 3.1 * columns + 0.4
        picture = from_figure(figsize=(width, 2.7 * rows + 0.9), layout="constrained")
        grid = picture.subplots(rows, columns, squeeze=False)
        for position, axes in enumerate(grid.flat):
            if position < len(panels):
                _draw_panel(axes, points, panels[position])
            else:
                axes.set_visible(False)
        # The line of each, without its error bar.
        handles = {
            label: handle[0]
            for axes in grid.flat
            for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
        }
        ordered = [name for name in points.series if name in handles]
        letters = max(map(len, ordered)) + _LEGEND_MARGIN
        picture.legend(
            [handles[name] for name in ordered],
            ordered,
            loc="outside upper center",
            ncols=max(1, min(len(ordered), int(_LETTERS_PER_INCH * width / letters))),
        )
        files = [folder / f"{points.figure.name}.{kind}" for kind in ("svg", "png")]
        picture.savefig(files[0], metadata={"Date": None})
        picture.savefig(files[1], dpi=130)
    return files


def _draw_panel(axes: Any, points: Points, panel: str) -> None:
    figure = points.figure
    # Lines that all panels share stay behind the methods.
    for name in points.series:
        line = points.line(panel, name)
        shown = [point for point in line if figure.y in point.measures]
        if shown:
            _draw_line(axes, shown, points.xs(panel), STYLES.get(name, _OTHER), name, figure.y)
    for point in points:
        if point.panel == panel and point.x is None and "n_local_clusters" in point.measures:
            style = STYLES.get(point.series, _OTHER)
            axes.plot(
                point.measures["n_local_clusters"].value,
                point.measures[figure.y].value,
                marker="X",
                markersize=11,
                color=style.colour,
                markeredgecolor="white",
                linestyle="none",
            )
    axes.set_title(panel)
    axes.set_xlabel(figure.x_label)
    axes.set_ylabel(figure.y_label)
    xs = points.xs(panel)
    if figure.x in _DOUBLING:
        axes.set_xscale("log", base=2)
    places = range(len(xs)) if isinstance(xs[0], tuple) else xs
    axes.set_xticks(list(places), [x_text(x) for x in xs])
    axes.minorticks_off()
    _set_heights(axes, points, panel)


def _draw_line(
    axes: Any, line: list[Point], xs: list[Any], style: Style, name: str, measure: str
) -> None:
    places = [xs.index(p.x) if isinstance(p.x, tuple) else p.x for p in line]
    means = [point.measures[measure] for point in line]
    axes.errorbar(
        places,
        [mean.value for mean in means],
        yerr=[mean.error or 0.0 for mean in means],
        label=name,
        color=style.colour,
        marker=style.marker,
        linestyle=style.dash,
        linewidth=style.width,
        elinewidth=0.8,
        markersize=8 if style.marker == "*" else None,
    )


def _set_heights(axes: Any, points: Points, panel: str) -> None:
    """Take a logarithmic axis where values differ much, with plain numbers at its ticks."""
    values = [
        point.measures[points.figure.y].value
        for point in points
        if point.panel == panel and points.figure.y in point.measures
    ]
    low, high = min(values), max(values)
    if low <= 0 or high / low < _WIDE_RANGE or points.figure.y not in _WITHOUT_BOUND:
        return
    ticker = importlib.import_module("matplotlib.ticker")
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(ticker.LogLocator(base=10, subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(ticker.NullFormatter())
