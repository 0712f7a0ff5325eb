"""`accuracy`: one table of ratios to k-means without privacy."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from benchmarks.accuracy import OURS, OWN, Extras, Found, run_rows, step_names
from benchmarks.accuracy_rows import PEER_ROWS, ROWS, Row
from benchmarks.commands import options
from benchmarks.commands.output import mean_text, write_json
from benchmarks.data import available
from benchmarks.methods import METHODS
from splitmeans.cli.console import Quiet, err, out
from splitmeans.errors import ParameterError

_PLACE = ("data", "constants", "S", "at each party", "k", "eps")
_DIGITS = {"users": 0, "k'": 0, "kB": 0, "seconds": 1}
_PEERS = ("central-dplsf", "central-guided-lloyd")
_TUNED, _HELD_OUT = "chosen on it", "held out"

Chosen = Annotated[
    str, typer.Option(help='Words of rows, separated by commas: "letter S4,k50" is either.')
]
Peers = Annotated[
    bool, typer.Option("--peers", help="The paper's sets beside private clustering of pooled rows.")
]
Without = Annotated[
    str, typer.Option(help="Steps of the decoder by commas: how much worse it is without each.")
]
OtherK = Annotated[
    int, typer.Option(help="Ask each run for this k, against a run planned for it. 0: no.", min=0)
]


def accuracy(
    rows: Chosen = "",
    peers: Peers = False,
    methods: options.Methods = "",
    without: Without = "",
    other_k: OtherK = 0,
    seeds: options.Seeds = 5,
    data_dir: options.DataDir = None,
    quick: options.Quick = False,
    workers: options.Workers = 2,
    json_file: options.JsonFile = None,
    quiet: Quiet = False,
) -> None:
    """Ratio of the loss to k-means without privacy on the pooled rows, as a Markdown table.

    Example: python -m benchmarks accuracy --data-dir DIR --seeds 10 --json accuracy.json
    """
    if other_k == 1:
        raise ParameterError("--other-k must be at least 2, or 0 to leave it out, got 1")
    others = tuple(options.listed("methods", methods, tuple(METHODS))) if methods else ()
    extras = Extras(
        methods=others or (_PEERS if peers else ()),
        without=tuple(options.listed("without", without, step_names())) if without else (),
        other_k=other_k or None,
    )
    chosen = _chosen(PEER_ROWS if peers else ROWS, rows, quick=quick, data_dir=data_dir)
    columns = (*OWN, *extras.columns)
    _print((*_PLACE, *columns))
    _print(("---",) * (len(_PLACE) + len(columns)))
    finished: list[tuple[Row, list[Found]]] = []
    record: dict[str, Any] = {"config": {"method": OURS, "seeds": seeds}, "rows": []}
    for row, runs in run_rows(chosen, extras, seeds=seeds, data_dir=data_dir, workers=workers):
        finished.append((row, runs))
        _print((*_place(row), *_figures(runs, columns)))
        record["rows"].append({**dataclasses.asdict(row), "runs": runs})
        # After each row: the whole table takes hours.
        write_json(json_file, record, say=len(finished) == len(chosen))
    for held_out, name in ((False, _TUNED), (True, _HELD_OUT)):
        parts = [runs for row, runs in finished if row.held_out == held_out]
        if len(parts) > 1:
            place = (f"mean of {len(parts)} rows", name, *("",) * (len(_PLACE) - 2))
            _print((*place, *_figures(_mean_runs(parts, columns), columns)))


def _chosen(rows: Sequence[Row], wanted: str, *, quick: bool, data_dir: Path | None) -> list[Row]:
    """Return the rows that were asked for and whose data is there; note what is left out."""
    parts = [set(part.split()) for part in wanted.split(",") if part.strip()]
    found = [row for row in rows if not parts or any(p <= set(row.name.split()) for p in parts)]
    found = [row for row in found if row.quick or not quick]
    if not found:
        raise ParameterError(f"--rows must have words of rows, such as {rows[0].name!r}: {wanted}")
    there = [row for row in found if available(row.data, data_dir)]
    lacking = dict.fromkeys(row.data for row in found if row not in there)
    if not there:
        raise ParameterError(f"these rows need --data-dir with {', '.join(lacking)}")
    if lacking:
        err.print(f"rows of {', '.join(lacking)} are left out: they need files in --data-dir")
    return there


def _place(row: Row) -> tuple[str, ...]:
    """Return the first columns of a row."""
    here = f"{row.presence:.0%}"
    here += "" if row.absence == "random" else f", {row.absence}"
    here += "" if row.population == "shared" else f", {row.population} counted"
    constants = _HELD_OUT if row.held_out else _TUNED
    return (row.data, constants, str(row.parties), here, str(row.k), f"{row.epsilon:g}")


def _figures(runs: Sequence[Found], columns: Sequence[str]) -> list[str]:
    return [
        mean_text(
            [run[name] for run in runs], digits=_DIGITS.get(name, 3), error=name not in _DIGITS
        )
        for name in columns
    ]


def _mean_runs(rows: Sequence[Sequence[Found]], columns: Sequence[str]) -> list[Found]:
    """Return the mean over rows for each seed: its spread is that of the mean."""
    means: list[Found] = []
    for runs in zip(*rows, strict=True):
        known = {name: [run[name] for run in runs if run[name] is not None] for name in columns}
        means.append(
            {name: float(np.mean(values)) if values else None for name, values in known.items()}
        )
    return means


def _print(cells: Sequence[str]) -> None:
    """Print a line of the table; what reads it later should not meet half of one."""
    out.print(f"| {' | '.join(cells)} |", soft_wrap=True)
