"""Tables of a figure's points as Markdown and JSON, with config, version and seeds."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

from splitmeans._version import __version__
from splitmeans.bench.paper import published
from splitmeans.bench.paper.points import Mean, Points, x_text


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [f"| {' | '.join(header)} |", "|" + "---|" * len(header)]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join(lines)


def figure_markdown(points: Points) -> str:
    """Return all points: a table for each panel, a row for each line, a column for each x."""
    figure = points.figure
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


def mixed_gaussian_markdown(points: Points) -> str:
    """Return our losses and V-scores beside the paper's."""
    panels = points.panels
    if not panels:
        return ""
    sizes = [panel.rsplit(" ", 1)[-1] for panel in panels]
    header = ["epsilon", "method"]
    header += [f"loss, S = {size}" for size in sizes] + [f"paper, S = {size}" for size in sizes]
    header += [f"V-score, S = {size}" for size in sizes] + [f"paper, S = {size}" for size in sizes]
    rows = []
    for x in points.xs(panels[0]):
        for name in points.series:
            found = {
                panel: point.measures
                for panel in panels
                for point in points.line(panel, name)
                if point.x == x
            }
            if not found:
                continue
            paper = published.MIXED_GAUSSIAN.get((name, x))
            places = [("2", "4").index(size) for size in sizes]
            losses = ["-" if paper is None else f"{paper[place]:.4f}" for place in places]
            scores = ["-" if paper is None else f"{paper[2 + place]:.4f}" for place in places]
            ours = [with_error(found.get(p, {}).get("loss")) for p in panels]
            our_scores = [_plain(found.get(p, {}).get("v_measure"), digits=4) for p in panels]
            rows.append([x_text(x), name, *ours, *losses, *our_scores, *scores])
    return markdown(header, rows)


def cost_markdown(points: Points) -> str:
    """Return bytes and times beside the paper's."""
    header = ["k'", "method", "kB a party, S = 2", "S = 4", "paper"]
    header += ["seconds, S = 2", "paper", "seconds, S = 4", "paper"]
    rows = []
    for clusters in (5, 8):
        panels = [f"k' = {clusters}, S = {parties}" for parties in (2, 4)]
        for name in points.series:
            found = [points.line(panel, name) for panel in panels]
            if not any(found):
                continue
            measures = [line[0].measures if line else {} for line in found]
            kilobytes = [_plain(m.get("bytes_per_party"), digits=2, scale=1e-3) for m in measures]
            seconds = [_plain(m.get("server_seconds"), digits=3) for m in measures]
            paper = published.COST.get((name, clusters))
            size, two, four = ("-", "-", "-") if paper is None else (f"{v:g}" for v in paper)
            rows.append([str(clusters), name, *kilobytes, size, seconds[0], two, seconds[1], four])
    return markdown(header, rows) if rows else ""


def _plain(mean: Mean | None, *, digits: int, scale: float = 1.0) -> str:
    return "-" if mean is None else f"{mean.value * scale:.{digits}f}"
