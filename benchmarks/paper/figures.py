"""The figures and tables of the paper by name, read from `figures.toml`."""

import itertools
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.paper.figure import Figure, Panel, Series

DATA_NAMES = {
    "mixed-gaussian": "mixed Gaussian",
    "taxi": "taxi",
    "loan": "loan",
    "letter": "letter",
}
# The one "figure" without cells: what the data sets are.
DATA = "data"


def _figure(name: str, given: Mapping[str, Any], cells: Mapping[str, Mapping[str, Any]]) -> Figure:
    """Make a figure: lines by name, and two rows of panels where data sets are named."""
    options = {key: _tuples(value) for key, value in given.items()}
    cells = {**cells, **options.pop("own_series", {})}
    panels = [
        Panel(**{**panel, "xs": _tuples(panel.get("xs", []))})
        for panel in options.pop("panels", ())
    ]
    for parties, data in itertools.product((2, 4), options.pop("data", ())):
        cell = {"data": data, "n_parties": parties}
        panels.append(Panel(name=f"{DATA_NAMES[data]}, S = {parties}", cell=cell))
    for key in ("series", "marks"):
        names = options.get(key, ())
        options[key] = tuple(Series(name=line, cell=cells[line]) for line in names)
    return Figure(name=name, panels=tuple(panels), **options)


def _tuples(value: Any) -> Any:
    """Return lists, and lists in lists, as tuples: cells are values that sets can hold."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _load() -> dict[str, Figure]:
    with Path(__file__).with_name("figures.toml").open("rb") as opened:
        given = tomllib.load(opened)
    return {name: _figure(name, one, given["series"]) for name, one in given["figures"].items()}


FIGURES = _load()
