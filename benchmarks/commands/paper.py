"""`paper`: the paper's figures and tables again, with pictures and a page."""

import contextlib
import dataclasses
import importlib.util
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich import progress as bars

from benchmarks.commands import options
from benchmarks.commands.output import show, write_json
from benchmarks.data_files import FILES, DataFile, describe_file
from benchmarks.paper.cell import Cell
from benchmarks.paper.claims import findings
from benchmarks.paper.figure import Figure
from benchmarks.paper.figures import FIGURES
from benchmarks.paper.page import RunFacts
from benchmarks.paper.plots import import_matplotlib
from benchmarks.paper.report import collect_all, write_report
from benchmarks.paper.run import Failure, Progress, run_cells
from benchmarks.paper.store import CellStore
from benchmarks.speed.run import processor_name
from splitmeans.cli.console import Quiet, check_folder, err
from splitmeans.errors import ParameterError, SplitmeansError

_SEEDS, _QUICK_SEEDS = 10, 3


def paper(
    figure: Annotated[
        list[str] | None, typer.Option(help="A figure or table; may be given several times.")
    ] = None,
    all_figures: Annotated[bool, typer.Option("--all", help="Every figure and table.")] = False,
    data_dir: options.DataDir = None,
    seeds: Annotated[
        int | None, typer.Option(help="Seeds of each point; 10, or 3 if quick.", min=1)
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A coarser grid and fewer seeds.")] = False,
    output: Annotated[
        Path, typer.Option(help="Folder for finished cells, pictures, tables and the page.")
    ] = Path("paper-results"),
    json_file: options.JsonFile = None,
    jobs: Annotated[int, typer.Option(help="Processes, of one thread each.", min=1)] = 2,
    quiet: Quiet = False,
) -> None:
    """Run the paper's experiments; what is finished is kept, and a run that was stopped goes on.

    Cells are kept by settings, version and data; after a change of the code that changes results,
    give a new --output. Real data sets without a file in --data-dir are left out.

    Example: python -m benchmarks paper --all --quick --data-dir data
    """
    chosen = _chosen(figure or [], all_figures=all_figures)
    check_folder(output)
    # Found out now and not after the work.
    import_matplotlib()
    seeds = seeds or (_QUICK_SEEDS if quick else _SEEDS)
    files, left_out, have = _what_is_there(data_dir)
    digests = {file.data: file.digest for file in files}

    def cells_of(figures: Sequence[Figure], have: dict[str, bool]) -> set[Cell]:
        return {cell for one in figures for cell in one.cells(seeds=seeds, quick=quick, have=have)}

    cells, store = cells_of(chosen, have), CellStore(output)
    with _progress() as advance:
        failures = run_cells(
            cells, store, data_dir=data_dir, data_digests=digests, jobs=jobs, progress=advance
        )
    all_points = collect_all(store, seeds=seeds, quick=quick, data_digests=digests)
    wanted = cells_of(list(FIGURES.values()), {})
    facts = RunFacts(
        seeds=seeds,
        quick=quick,
        cells=sum(cell.key(digests) in store for cell in wanted),
        wall_seconds=sum(run["wall_seconds"] for run in store.runs),
        processor_seconds=sum(m.get("processor_seconds") or 0 for m in store.measures.values()),
        noted_cells=sum(run["cells"] for run in store.runs),
        jobs=jobs,
        processor=processor_name(),
        files=tuple(files),
        left_out=(*left_out, *_failed(failures)),
    )
    written = write_report(all_points, output, facts=facts)
    rows = [
        (points.figure.name, found.claim, found.measured, found.agrees)
        for points in all_points
        if points.figure in chosen
        for found in findings(points)
    ]
    headings = ("figure", "statement", "measured", "came out")
    show("What the paper says, and what came out", headings, rows, left=headings)
    err.print(f"wrote {written[0]} and {len(written) - 1} files beside it")
    done = [
        {"config": dataclasses.asdict(cell), "measures": store.measures[cell.key(digests)]}
        for cell in cells
        if cell.key(digests) in store
    ]
    write_json(json_file, {"run": dataclasses.asdict(facts), "cells": done})
    if failures:
        raise SplitmeansError(
            f"{len(failures)} cells failed, the first with: {failures[0].reason}; they are tried "
            "again in the next run"
        )


def _chosen(names: Sequence[str], *, all_figures: bool) -> list[Figure]:
    if all_figures == bool(names):
        raise ParameterError(f"give --all or --figure with one of {', '.join(FIGURES)}")
    for name in names:
        if name not in FIGURES:
            raise ParameterError(f"--figure must be one of {', '.join(FIGURES)}, got {name!r}")
    return list(FIGURES.values()) if all_figures else [FIGURES[name] for name in names]


def _what_is_there(data_dir: Path | None) -> tuple[list[DataFile], list[str], dict[str, bool]]:
    """Return the data files, what is left out and why, and what can be run by name."""
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
        err.print(f"left out: {reason}")
    return found, left_out, have


def _failed(failures: Sequence[Failure]) -> list[str]:
    by_method: dict[str, list[str]] = {}
    for failure in failures:
        by_method.setdefault(failure.cell.method, []).append(failure.reason)
    return [
        f"{len(reasons)} runs of {method} ({reasons[0]})" for method, reasons in by_method.items()
    ]


@contextlib.contextmanager
def _progress() -> Iterator[Progress]:
    """Show which cell is done and how many there are."""
    with bars.Progress(console=err, transient=True) as shown:
        task = shown.add_task("starting", total=None)

        def advance(cell: Cell, done: int, total: int) -> None:
            what = f"{done:,} of {total:,}: {cell.data}, {cell.n_parties} parties: {cell.method}"
            shown.update(task, completed=done, total=total, description=what)

        yield advance
