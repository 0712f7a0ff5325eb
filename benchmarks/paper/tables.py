"""Tables of a figure's points as Markdown and JSON, with config, version and seeds."""

import dataclasses
import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from benchmarks.paper import published
from benchmarks.paper.points import Mean, Points, x_text
from splitmeans._version import __version__


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [f"| {' | '.join(header)} |", "|" + "---|" * len(header)]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join(lines)


def figure_markdown(points: Points) -> str:
    """Return all points: a table for each panel, a row for each line, a column for each x."""
    figure = points.figure
    if figure.name in OWN_TABLES:
        return f"# {figure.title}\n\n{OWN_TABLES[figure.name](points)}\n"
    parts = [f"# {figure.title}: {figure.y_label or figure.y}, mean ± standard error"]
    for panel in points.panels:
        xs = points.xs(panel)
        rows = []
        for name in points.series:
            by_x = {point.x: point.measures.get(figure.y) for point in points.line(panel, name)}
            if any(by_x.values()):
                rows.append([name, *(with_error(by_x.get(x)) for x in xs)])
        header = [figure.x_label or figure.x, *map(x_text, xs)]
        parts += [f"## {panel}", markdown(header, rows)]
    return "\n\n".join(parts) + "\n"


def to_json(points: Points, *, facts: Mapping[str, Any]) -> str:
    """Return all points with what made them, a point a line.

    A measure is its mean, its standard error (null for one seed) and the number of seeds.
    """
    figure = points.figure
    measures = (figure.y, *figure.also)
    head = {
        "splitmeans": __version__,
        "figure": figure.name,
        "x": figure.x,
        "y": figure.y,
        **facts,
        "common": dict(figure.cell),
    }
    lines = []
    for point in points:
        config = dataclasses.asdict(point.cell)
        del config["seed"]
        found = {name: point.measures[name] for name in measures if name in point.measures}
        record = {
            "panel": point.panel,
            "series": point.series,
            "x": point.x,
            "config": {name: value for name, value in config.items() if value is not None},
            "measures": {
                name: [_rounded(mean.value), _rounded(mean.error), mean.seeds]
                for name, mean in found.items()
            },
        }
        lines.append(json.dumps(record))
    text = json.dumps(head)
    return text[:-1] + ', "points": [\n' + ",\n".join(lines) + "\n]}\n"


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.6g}")


def with_error(mean: Mean | None, *, digits: int = 3) -> str:
    """Return a mean with its standard error."""
    if mean is None:
        return "-"
    text = f"{mean.value:.{digits}f}"
    return text if mean.error is None else f"{text} ± {mean.error:.{digits}f}"


def _mixed_gaussian(points: Points) -> str:
    """Return our losses and V-scores beside the paper's."""
    header, digits = ["epsilon", "method"], {"loss": 3, "v_measure": 4}
    sizes = [panel.rsplit(" ", 1)[-1] for panel in points.panels]
    for name in ("loss", "V-score"):
        header += [f"{name}, S = {size}" for size in sizes] + [
            f"paper, S = {size}" for size in sizes
        ]
    rows = []
    for x in points.xs(points.panels[0]):
        for line in points.series:
            cells: list[str] = []
            for measure in digits:
                ours = [points.mean(panel, line, x, measure) for panel in points.panels]
                cells += [
                    with_error(mean) if measure == "loss" else _plain(mean, digits=4)
                    for mean in ours
                ]
                cells += [_paper(panel, line, x, measure, ".4f") for panel in points.panels]
            if any(points.mean(panel, line, x, "loss") for panel in points.panels):
                rows.append([x_text(x), line, *cells])
    return markdown(header, rows)


def _cost(points: Points) -> str:
    """Return bytes and times beside the paper's."""
    header = ["k'", "method", "kB a party, S = 2", "S = 4", "paper"]
    header += ["seconds, S = 2", "paper", "seconds, S = 4", "paper"]
    rows = []
    for clusters, line in itertools.product((5, 8), points.series):
        panels = [f"k' = {clusters}, S = {parties}" for parties in (2, 4)]
        sent = [points.mean(panel, line, 1.0, "bytes_per_party") for panel in panels]
        if any(sent):
            cells = [_plain(mean, digits=2, scale=1e-3) for mean in sent]
            cells.append(_paper(panels[0], line, 1.0, "bytes_per_party", "g"))
            for panel in panels:
                cells.append(_plain(points.mean(panel, line, 1.0, "server_seconds"), digits=3))
                cells.append(_paper(panel, line, 1.0, "server_seconds", "g"))
            rows.append([str(clusters), line, *cells])
    return markdown(header, rows)


def _paper(panel: str, line: str, x: float, measure: str, form: str) -> str:
    found = published.value(panel, line, x, measure)
    return "-" if found is None else format(found, form)


def _plain(mean: Mean | None, *, digits: int, scale: float = 1.0) -> str:
    return "-" if mean is None else f"{mean.value * scale:.{digits}f}"


# Tables of the paper, which have a form of their own.
OWN_TABLES: dict[str, Callable[[Points], str]] = {
    "mixed-gaussian": _mixed_gaussian,
    "cost": _cost,
}
