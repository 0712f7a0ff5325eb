"""Storing a party's rows as checked blocks, whatever they are read from.

A source hands over rows a part at a time; each part is checked against the study, quantised and
written as a block (`spool.py`). Ids are compared when all blocks are there.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

import pyarrow as pa

from splitmeans.errors import DataError
from splitmeans.study import PartySpec
from splitmeans.study.id_rules import AS_IS, IdRules
from splitmeans.table.checks.facts import TableFacts, finish_checks, ignore_facts
from splitmeans.table.checks.problems import Problem
from splitmeans.table.checks.rows import check_rows
from splitmeans.table.ids.canonical import repeated_ids
from splitmeans.table.walk.spool import StoredBlock
from splitmeans.table.walk.spool_folder import make_spool_folder
from splitmeans.table.walk.stored import Progress, StoredTable
from splitmeans.table.walk.workers import Workers

# Starting processes takes longer than walking fewer rows than this in one.
_ROWS_WORTH_PROCESSES = 2_000_000


@dataclass(frozen=True, kw_only=True)
class CheckedBlock:
    """What a block's rows looked like, and what is wrong with them.

    It is stored unless something is wrong with its ids; blocks with other problems are there for
    comparing all ids of the table.
    """

    block: StoredBlock
    facts: TableFacts
    problems: tuple[Problem, ...]
    stored: bool


def open_blocks(
    party: PartySpec,
    store: Callable[[Path, Workers], Iterable[CheckedBlock]],
    *,
    where: str,
    rules: IdRules = AS_IS,
    notice: Callable[[TableFacts], None] = ignore_facts,
    allow_clipping: bool = False,
    workers: int | None,
    spool: str | Path | None,
    progress: Progress,
) -> StoredTable:
    """Store a table's rows in blocks, compare their ids, and return the table.

    Args:
        party: The party's columns, bounds and id column.
        store: Checks the rows and stores them in the folder, in row order; may use the workers.
        where: How errors name the source.
        rules: The study's rules for ids.
        notice: Told how the table looks; see `finish_checks`.
        allow_clipping: The same.
        workers: Number of processes; None takes one for each processor if there are many rows, 1
            this process alone.
        spool: Folder for the blocks; None takes the system's folder for temporary files.
        progress: Called after every block that is walked.
    """
    pool = Workers(workers)
    try:
        own = make_spool_folder(spool)
    except OSError as problem:
        raise DataError(f"spool folder {spool}: cannot be used ({problem.strerror})") from problem
    try:
        checked = list(store(own.path, pool))
        if not checked:
            raise DataError(f"{where}: the table must have at least one row, got none")
        blocks = [item.block for item in checked]
        if workers is None and sum(block.n_rows for block in blocks) <= _ROWS_WORTH_PROCESSES:
            pool.close()
            pool = Workers(1)
        facts = reduce(TableFacts.and_more, (item.facts for item in checked))
        table = StoredTable(
            party.name,
            blocks,
            spool=own,
            workers=pool,
            progress=progress,
            names=facts.names,
        )
        problems = [problem for item in checked for problem in item.problems]
        if all(item.stored for item in checked):
            problems += repeated_ids(table.users, rules=rules)
        finish_checks(
            party.name,
            problems,
            facts,
            where=where,
            notice=notice,
            allow_clipping=allow_clipping,
        )
    except BaseException:
        pool.close()
        own.close()
        raise
    return table


def store_block(
    party: PartySpec,
    data: pa.Table,
    *,
    start: int,
    folder: Path,
    where: str,
    rules: IdRules = AS_IS,
) -> CheckedBlock:
    """Check rows, of any kind that `check_rows` takes, and store them as one block.

    Args:
        party: The party's columns, bounds and id column.
        data: The rows.
        start: Row number of the first one.
        folder: The spool.
        where: How errors name the source.
        rules: The study's rules for ids.
    """
    try:
        checked = check_rows(party, data, first_row=start, rules=rules, with_names=False)
    except DataError as problem:
        raise DataError(f"{where}: {problem}") from None
    block = StoredBlock(
        folder=folder,
        name=f"{start:012d}",
        start=start,
        n_rows=data.num_rows,
        n_columns=checked.rows.shape[1],
    )
    try:
        if checked.ids is not None:
            block.write_rows(checked.rows, checked.ids)
    except OSError as problem:
        raise DataError(
            f"{where}: cannot be stored in blocks ({problem.strerror}); make room at the home "
            "folder, or in Python give a spool folder with enough of it"
        ) from problem
    return CheckedBlock(
        block=block,
        facts=checked.facts,
        problems=checked.problems,
        stored=checked.ids is not None,
    )


def joined(
    batches: Iterable[pa.RecordBatch], *, rows: int, size: int | None = None
) -> Iterator[pa.Table]:
    """Join small batches, and cut large ones, to tables of at most `rows` rows.

    A table also ends where it has about `size` bytes, and where the types of columns change.
    """
    waiting: list[pa.RecordBatch] = []
    waiting_rows = waiting_bytes = 0
    for batch in _cut(batches, rows=rows, size=size):
        if waiting and (
            waiting_rows + batch.num_rows > rows
            or (size is not None and waiting_bytes + batch.nbytes > size)
            or batch.schema != waiting[0].schema
        ):
            yield pa.Table.from_batches(waiting)
            waiting, waiting_rows, waiting_bytes = [], 0, 0
        waiting.append(batch)
        waiting_rows += batch.num_rows
        waiting_bytes += batch.nbytes
    if waiting:
        yield pa.Table.from_batches(waiting)


def _cut(
    batches: Iterable[pa.RecordBatch], *, rows: int, size: int | None
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if not batch.num_rows:
            continue
        most = rows if size is None else min(rows, max(1, size * batch.num_rows // batch.nbytes))
        for start in range(0, batch.num_rows, most):
            yield batch.slice(start, most)
