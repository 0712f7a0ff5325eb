"""Run the cells that are not in the store yet, over processes with one thread each."""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks.paper.cell import Cell
from benchmarks.paper.measure import Measures, measure
from benchmarks.paper.store import CellStore
from benchmarks.pool import run_jobs
from splitmeans import _validate

# Told about every finished cell, how many are done, and how many there are.
Progress: TypeAlias = Callable[[Cell, int, int], None]


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A cell that could not be run, and why; it is tried again in the next run."""

    cell: Cell
    reason: str


def run_cells(
    cells: Iterable[Cell],
    store: CellStore,
    *,
    data_dir: Path | None,
    data_digests: Mapping[str, str],
    jobs: int = 2,
    progress: Progress | None = None,
) -> list[Failure]:
    """Run what is missing and keep each cell as it finishes.

    Args:
        cells: What is wanted; the same cell twice is run once.
        store: What is there, and where finished cells go.
        data_dir: Folder with the files of real data.
        data_digests: Digest of the file of each real data set, part of a cell's key.
        jobs: Processes; 1 runs in this one.
        progress: Called after each cell.

    Returns:
        The cells that failed.
    """
    _validate.at_least(1, jobs=jobs)
    keys = {cell.standard(): cell.standard().key(data_digests) for cell in cells}
    missing = in_order(cell for cell, key in keys.items() if key not in store)
    failures = []
    started = time.perf_counter()
    finished = 0
    try:
        work = [(cell, data_dir) for cell in missing]
        results = run_jobs(_try, work, workers=jobs)
        for done, ((cell, _), result) in enumerate(results, start=1):
            if isinstance(result, str):
                failures.append(Failure(cell=cell, reason=result))
            else:
                store.add(keys[cell], cell, result)
                finished += 1
            if progress is not None:
                progress(cell, done, len(missing))
    finally:
        if finished:
            wall = time.perf_counter() - started
            store.add_run(wall_seconds=round(wall, 1), cells=finished, jobs=jobs)
    return failures


def in_order(cells: Iterable[Cell]) -> list[Cell]:
    """Put cells of many parties, the long ones, first, and the seeds of a cell together.

    The plan of a study is found once by a process, and does not depend on the seed.
    """

    def place(cell: Cell) -> tuple[Any, ...]:
        return (
            -cell.n_parties,
            cell.data,
            cell.method,
            cell.epsilon or 0.0,
            cell.n_local_clusters or 0,
            cell.repetitions or 0,
            cell.party_sizes or (),
            cell.seed,
            cell.n_clusters,
        )

    return sorted(cells, key=place)


def _try(cell: Cell, data_dir: Path | None) -> Measures | str:
    """Run a cell; an error is told, so that it does not take the other cells with it."""
    try:
        started = time.process_time()
        measures = measure(cell, data_dir)
        return {**measures, "processor_seconds": round(time.process_time() - started, 4)}
    except Exception as problem:
        return f"{type(problem).__name__}: {problem}"
