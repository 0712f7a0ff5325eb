"""Storing a party's rows as checked blocks, whatever they are read from.

A source hands over rows a part at a time; each part is checked against the study, quantised and
written as a block (`spool.py`). Ids are compared when all blocks are there.
"""

import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from splitmeans.engine.spool import StoredBlock
from splitmeans.engine.stored import Progress, StoredTable
from splitmeans.engine.workers import Workers
from splitmeans.errors import DataError
from splitmeans.kernels.warm_up import warm_up
from splitmeans.party.ids import canonical_text, check_unique
from splitmeans.party.table import grid_rows
from splitmeans.study import PartySpec


def open_blocks(
    party: PartySpec,
    store: Callable[[Path, Workers], Iterable[StoredBlock]],
    *,
    where: str,
    workers: int | None,
    spool: str | Path | None,
    progress: Progress,
) -> StoredTable:
    """Store a table's rows in blocks, compare their ids, and return the table.

    Args:
        party: The party's columns, bounds and id column.
        store: Checks the rows and stores them in the folder, in row order; may use the workers.
        where: How errors name the source.
        workers: Number of processes; None takes one for each processor, 1 this process alone.
        spool: Folder for the blocks; None takes the system's folder for temporary files.
        progress: Called after every block that is walked.
    """
    pool = Workers(workers)
    try:
        folder = Path(tempfile.mkdtemp(prefix="splitmeans-", dir=spool))
    except OSError as problem:
        raise DataError(f"spool folder {spool}: cannot be used ({problem.strerror})") from problem
    try:
        # Here and once: each worker would compile the kernels for itself.
        warm_up()
        blocks = list(store(folder, pool))
        if not blocks:
            raise DataError(f"{where}: the table must have at least one row, got none")
        table = StoredTable(party.name, blocks, workers=pool, progress=progress)
        _check_ids(table, where)
    except BaseException:
        pool.close()
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return table


def store_block(
    party: PartySpec, data: Any, *, start: int, folder: Path, where: str
) -> StoredBlock:
    """Check rows, of any kind that `grid_rows` takes, and store them as one block.

    Args:
        party: The party's columns, bounds and id column.
        data: The rows.
        start: Row number of the first one.
        folder: The spool.
        where: How errors name the source.
    """
    try:
        rows, ids = grid_rows(party, data, first_row=start)
        text = canonical_text(ids, first_row=start)
    except DataError as problem:
        raise DataError(f"{where}: {problem}") from None
    block = StoredBlock(
        folder=folder,
        name=f"{start:012d}",
        start=start,
        n_rows=len(rows),
        n_columns=rows.shape[1],
    )
    try:
        block.write_rows(rows, text)
    except OSError as problem:
        raise DataError(
            f"{where}: cannot be stored in blocks ({problem.strerror}); give a spool folder with "
            "enough room"
        ) from problem
    return block


def joined(batches: Iterable[pa.RecordBatch], *, rows: int) -> Iterator[pa.Table]:
    """Join small batches to tables of at most `rows` rows; no batch may have more."""
    waiting: list[pa.RecordBatch] = []
    waiting_rows = 0
    for batch in batches:
        if waiting_rows and waiting_rows + batch.num_rows > rows:
            yield pa.Table.from_batches(waiting)
            waiting, waiting_rows = [], 0
        waiting.append(batch)
        waiting_rows += batch.num_rows
    if waiting_rows:
        yield pa.Table.from_batches(waiting)


def _check_ids(table: StoredTable, where: str) -> None:
    try:
        check_unique(table.users)
    except DataError as problem:
        raise DataError(f"{where}: party {table.party!r}: {problem}") from None
