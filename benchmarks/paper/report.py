"""Write pictures, tables and the page of everything that the store has."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.paper.figures import FIGURES
from benchmarks.paper.page import FOLDER, RunFacts, render
from benchmarks.paper.plots import draw
from benchmarks.paper.points import Points, collect
from benchmarks.paper.store import CellStore
from benchmarks.paper.tables import figure_markdown, to_json


def collect_all(
    store: CellStore, *, seeds: int, quick: bool, data_digests: Mapping[str, str]
) -> list[Points]:
    """Return the points of every figure, as far as there are any."""
    return [
        collect(figure, store, seeds=seeds, quick=quick, data_digests=data_digests)
        for figure in FIGURES.values()
    ]


def write_report(all_points: Sequence[Points], output: Path, *, facts: RunFacts) -> list[Path]:
    """Write `reproduction.md` and a folder `reproduction` with pictures and tables beside it.

    Returns:
        The files, the page first.
    """
    folder = output / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    seeds: dict[str, Any] = {"seeds": list(range(facts.seeds)), "quick": facts.quick}
    for points in all_points:
        if not points.panels:
            continue
        name = points.figure.name
        files += draw(points, folder)
        tables = {
            f"{name}.md": figure_markdown(points),
            f"{name}.json": to_json(points, facts=seeds),
        }
        for file, text in tables.items():
            (folder / file).write_text(text)
            files.append(folder / file)
    page = output / f"{FOLDER}.md"
    page.write_text(render(all_points, facts))
    return [page, *files]
