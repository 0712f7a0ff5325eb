"""`splitmeans bench paper`: the paper's figures and tables again, with pictures and a page."""

import contextlib
import dataclasses
import importlib.util
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import (
    BarColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from splitmeans._version import __version__
from splitmeans.cli.console import Quiet, check_file, check_folder, err, new_table, print_table
from splitmeans.errors import ParameterError, SplitmeansError

if TYPE_CHECKING:
    from splitmeans.bench.data_files import DataFile
    from splitmeans.bench.paper.cell import Cell
    from splitmeans.bench.paper.figure import Figure
    from splitmeans.bench.paper.page import RunFacts
    from splitmeans.bench.paper.points import Points
    from splitmeans.bench.paper.run import Failure
    from splitmeans.bench.paper.store import CellStore

_SEEDS, _QUICK_SEEDS = 10, 3


def paper(
    figure: Annotated[
        list[str] | None, typer.Option(help="A figure or table; may be given several times.")
    ] = None,
    all_figures: Annotated[bool, typer.Option("--all", help="Every figure and table.")] = False,
    data_dir: Annotated[
        Path | None, typer.Option(help="Folder with the files of letter, taxi and loan.")
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(help="Seeds of each point; 10, or 3 if quick.", min=1)
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A coarser grid and fewer seeds.")] = False,
    output: Annotated[
        Path, typer.Option(help="Folder for finished cells, pictures, tables and the page.")
    ] = Path("paper-results"),
    json_file: Annotated[Path | None, typer.Option("--json", help="Write all cells here.")] = None,
    jobs: Annotated[int, typer.Option(help="Processes, of one thread each.", min=1)] = 2,
    quiet: Quiet = False,
) -> None:
    """Run the paper's experiments; what is finished is kept, and a run that was stopped goes on.

    Cells are kept by settings, version and data; after a change of the code that changes results,
    give a new --output. Real data sets without a file in --data-dir are left out.

    Example: splitmeans bench paper --all --quick --data-dir data
    """
    from splitmeans.bench.paper.figures import FIGURES
    from splitmeans.bench.paper.plots import import_matplotlib
    from splitmeans.bench.paper.report import collect_all, write_report
    from splitmeans.bench.paper.run import run_cells
    from splitmeans.bench.paper.store import CellStore

    chosen = _chosen(figure or [], all_figures=all_figures)
    check_file(json_file)
    check_folder(output)
    # Found out now and not after the work.
    import_matplotlib()
    seeds = seeds or (_QUICK_SEEDS if quick else _SEEDS)
    files, left_out, have = _what_is_there(data_dir)
    digests = {file.data: file.digest for file in files}
    cells = {
        cell for config in chosen for cell in config.cells(seeds=seeds, quick=quick, have=have)
    }
    store = CellStore(output)
    with _progress() as advance:
        failures = run_cells(
            cells, store, data_dir=data_dir, data_digests=digests, jobs=jobs, progress=advance
        )
    all_points = collect_all(store, seeds=seeds, quick=quick, data_digests=digests)
    wanted = {
        cell
        for config in FIGURES.values()
        for cell in config.cells(seeds=seeds, quick=quick, have={})
    }
    facts = _facts(
        store,
        cells=sum(cell.key(digests) in store for cell in wanted),
        seeds=seeds,
        quick=quick,
        jobs=jobs,
        files=tuple(files),
        left_out=(*left_out, *_failed(failures)),
    )
    written = write_report(all_points, output, facts=facts)
    _print_findings([p for p in all_points if p.figure in chosen])
    err.print(f"wrote {written[0]} and {len(written) - 1} files beside it", markup=False)
    if json_file is not None:
        _write_json(json_file, cells, store, digests, facts)
    if failures:
        raise SplitmeansError(
            f"{len(failures)} cells failed, the first with: {failures[0].reason}; they are tried "
            "again in the next run"
        )


def _chosen(names: Sequence[str], *, all_figures: bool) -> "list[Figure]":
    from splitmeans.bench.paper.figures import FIGURES

    if all_figures == bool(names):
        raise ParameterError(f"give --all or --figure with one of {', '.join(FIGURES)}")
    for name in names:
        if name not in FIGURES:
            raise ParameterError(f"--figure must be one of {', '.join(FIGURES)}, got {name!r}")
    return list(FIGURES.values()) if all_figures else [FIGURES[name] for name in names]


def _what_is_there(data_dir: Path | None) -> "tuple[list[DataFile], list[str], dict[str, bool]]":
    """Return the data files, what is left out and why, and what can be run by name."""
    from splitmeans.bench.data_files import FILES, describe_file

    if data_dir is not None and not data_dir.is_dir():
        raise ParameterError(f"--data-dir must be a folder, got {data_dir}")
    found, left_out, have = [], [], {}
    for name, file_names in FILES.items():
        file = describe_file(name, data_dir)
        have[name] = file is not None
        if file is not None:
            found.append(file)
        else:
            left_out.append(f"{name} (no {' or '.join(file_names)} in the data folder)")
    have["central-diffprivlib"] = importlib.util.find_spec("diffprivlib") is not None
    if not have["central-diffprivlib"]:
        left_out.append("central diffprivlib (not installed)")
    for reason in left_out:
        err.print(f"left out: {reason}", markup=False)
    return found, left_out, have


def _failed(failures: "Sequence[Failure]") -> list[str]:
    by_method: dict[str, list[str]] = {}
    for failure in failures:
        by_method.setdefault(failure.cell.method, []).append(failure.reason)
    return [
        f"{len(reasons)} runs of {method} ({reasons[0]})" for method, reasons in by_method.items()
    ]


def _facts(store: "CellStore", **known: Any) -> "RunFacts":
    from splitmeans.bench.paper.page import RunFacts
    from splitmeans.bench.speed.run import environment

    return RunFacts(
        wall_seconds=sum(run["wall_seconds"] for run in store.runs),
        processor_seconds=sum(
            cell.get("processor_seconds") or 0 for cell in store.measures.values()
        ),
        noted_cells=sum(run["cells"] for run in store.runs),
        processor=environment(cores=known["jobs"])["processor"],
        **known,
    )


@contextlib.contextmanager
def _progress() -> Iterator[Any]:
    """Show how many cells are done and how much time is left, by the cells' rough times."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TextColumn("{task.fields[cells]} cells"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=err, transient=True) as bars:
        task = bars.add_task("starting", total=None, cells=0)
        count = 0

        def advance(cell: "Cell", done: float, total: float) -> None:
            nonlocal count
            count += 1
            what = f"{cell.data}, {cell.n_parties} parties: {cell.method}"
            bars.update(task, completed=done, total=total, description=what, cells=count)

        yield advance


def _print_findings(all_points: "Sequence[Points]") -> None:
    from splitmeans.bench.paper.findings import findings

    table = new_table("What the paper says, and what came out")
    for heading in ("figure", "statement", "measured", "came out"):
        table.add_column(heading, overflow="fold")
    for points in all_points:
        for found in findings(points):
            table.add_row(points.figure.name, found.claim, found.measured, found.agrees)
    print_table(table)


def _write_json(
    json_file: Path,
    cells: "set[Cell]",
    store: "CellStore",
    digests: dict[str, str],
    facts: "RunFacts",
) -> None:
    done = []
    for cell in cells:
        key = cell.key(digests)
        if key in store:
            done.append({"config": dataclasses.asdict(cell), "measures": store.measures[key]})
    record = {"splitmeans": __version__, "run": dataclasses.asdict(facts), "cells": done}
    json_file.write_text(json.dumps(record, indent=1))
    err.print(f"wrote {json_file}", markup=False)
