"""Run the cells that are not in the store yet, over processes with one thread each."""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks.paper.cell import CENTRAL, Cell
from benchmarks.paper.measure import Measures, measure
from benchmarks.paper.store import CellStore
from benchmarks.pool import run_jobs
from splitmeans import _validate

# Told about every finished cell, the rough seconds of all that are done, and of all there are.
Progress: TypeAlias = Callable[[Cell, float, float], None]


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
    total = sum(map(rough_seconds, missing))
    done = 0.0
    failures = []
    started = time.perf_counter()
    finished = 0
    try:
        work = [(cell, data_dir) for cell in missing]
        for (cell, _), result in run_jobs(_try, work, workers=jobs):
            if isinstance(result, str):
                failures.append(Failure(cell=cell, reason=result))
            else:
                store.add(keys[cell], cell, result)
                finished += 1
            done += rough_seconds(cell)
            if progress is not None:
                progress(cell, done, total)
    finally:
        if finished:
            wall = time.perf_counter() - started
            store.add_run(wall_seconds=round(wall, 1), cells=finished, jobs=jobs)
    return failures


def in_order(cells: Iterable[Cell]) -> list[Cell]:
    """Put long cells first, and those that differ in their seed alone together.

    The plan of a study is found once by a process, and does not depend on the seed.
    """

    def place(cell: Cell) -> tuple[Any, ...]:
        return (
            -rough_seconds(cell),
            cell.data,
            cell.n_parties,
            cell.method,
            cell.epsilon or 0.0,
            cell.n_local_clusters or 0,
            cell.repetitions or 0,
            cell.party_sizes or (),
            cell.seed,
            cell.n_clusters,
        )

    return sorted(cells, key=place)


# Processor seconds of a cell with two parties, roughly: for the time that is left.
_DATA_SECONDS = {"mixed-gaussian": 0.12, "letter": 0.15, "loan": 0.35, "taxi": 0.45}
_METHOD_FACTOR = {"decoy": 1.4, "sketch": 1.8, "vertical-plain": 1.8, "silhouette": 3.0}
# A dense grid of eight parties has hundreds of thousands of cells.
_EIGHT_PARTIES = {"sketch-paper": 25, "ldp": 30, "independent": 14, "decoy": 4, "sketch": 50}


def rough_seconds(cell: Cell) -> float:
    """Guess how long a cell takes."""
    base = _DATA_SECONDS.get(cell.data, 0.3) * _METHOD_FACTOR.get(cell.method, 1.0)
    if cell.method in CENTRAL:
        return 0.5 * base
    if cell.n_parties >= 8:
        return base * _EIGHT_PARTIES.get(cell.method, 25)
    return base * cell.n_parties / 2


def _try(cell: Cell, data_dir: Path | None) -> Measures | str:
    """Run a cell; an error is told, so that it does not take the other cells with it."""
    try:
        started = time.process_time()
        measures = measure(cell, data_dir)
        return {**measures, "processor_seconds": round(time.process_time() - started, 4)}
    except Exception as problem:
        return f"{type(problem).__name__}: {problem}"
