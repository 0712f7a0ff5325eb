"""Storing a party's rows as checked blocks, whatever they are read from.

A source hands over rows a part at a time; each part is checked against the study, quantised and
written as a block (`spool.py`) by a worker. Ids are compared when all blocks are there.
"""

import contextlib
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeAlias

import pyarrow as pa

from splitmeans.errors import DataError
from splitmeans.study import PartySpec
from splitmeans.study.id_rules import IdRules
from splitmeans.table.checks.facts import TableFacts, facts_of_parts
from splitmeans.table.checks.problems import Problem
from splitmeans.table.checks.rows import check_rows
from splitmeans.table.ids.canonical import repeated_ids
from splitmeans.table.options import SourceOptions
from splitmeans.table.walk.spool import StoredBlock, write_batches
from splitmeans.table.walk.spool_folder import make_spool_folder
from splitmeans.table.walk.stored import StoredTable
from splitmeans.table.walk.workers import Workers

# Rows, or the file that has them.
Part: TypeAlias = pa.Table | Path


class _CheckedBlock(NamedTuple):
    """What a block's rows looked like, and what is wrong with them.

    It is stored unless something is wrong with its ids; blocks with other problems are there for
    comparing all ids of the table.
    """

    block: StoredBlock
    facts: TableFacts
    problems: tuple[Problem, ...]
    stored: bool


def store_table(
    party: PartySpec,
    parts: Iterable[pa.Table],
    options: SourceOptions,
    *,
    where: str,
    total: int | None,
) -> StoredTable:
    """Store a table's rows in blocks, compare their ids, and return the table.

    `parts` are the rows in their order, at least one, a block's rows at a time. `where` is how
    errors name the source, `total` how many rows there are, if known.
    """
    pool = Workers(options.workers)
    try:
        own = make_spool_folder(options.spool)
    except OSError as problem:
        raise DataError(
            f"spool folder {options.spool}: cannot be used ({problem.strerror})"
        ) from problem
    try:
        store = partial(
            _store_block, party=party, folder=own.path, where=where, rules=options.rules
        )
        checked: list[_CheckedBlock] = []
        for item in pool.map(
            store, _numbered(parts, own.path if pool.count > 1 else None, where=where)
        ):
            options.progress("read", rows=item.block.n_rows, of=total)
            checked.append(item)
        facts = facts_of_parts([item.facts for item in checked])
        table = StoredTable(
            party.name,
            [item.block for item in checked],
            names=facts.names,
            spool=own,
            workers=pool,
            progress=options.progress,
        )
        problems = [problem for item in checked for problem in item.problems]
        if all(item.stored for item in checked):
            problems += repeated_ids(table.users, rules=options.rules)
        options.finish_checks(party.name, problems, facts, where=where)
    except BaseException:
        pool.close()
        own.close()
        raise
    return table


@contextlib.contextmanager
def _enough_disk(where: str) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        raise DataError(
            f"{where}: cannot be stored in blocks ({problem.strerror}); make room at the home "
            "folder, or in Python give a spool folder with enough of it"
        ) from problem


def _numbered(
    parts: Iterable[pa.Table], folder: Path | None, *, where: str
) -> Iterator[tuple[int, Part]]:
    """Yield each part with the number of its first row, in a file if it goes to another process."""
    start = 0
    for part in parts:
        if folder is None:
            yield start, part
        else:
            path = folder / f"{start:012d}.part"
            with _enough_disk(where):
                write_batches(path, part.to_batches())
            yield start, path
        start += part.num_rows


def _read_part(part: Part) -> pa.Table:
    """Return a part's rows; a file goes at once, and its pages when they were used."""
    if isinstance(part, pa.Table):
        return part
    with pa.memory_map(str(part)) as file, pa.ipc.open_file(file) as reader:
        part.unlink()
        return reader.read_all()


def _store_block(
    numbered: tuple[int, Part],
    *,
    party: PartySpec,
    folder: Path,
    where: str,
    rules: IdRules,
) -> _CheckedBlock:
    """Check rows and store them as one block; what a worker does."""
    start, table = numbered[0], _read_part(numbered[1])
    try:
        checked = check_rows(party, table, first_row=start, rules=rules, with_names=False)
    except DataError as problem:
        raise DataError(f"{where}: {problem}") from None
    block = StoredBlock(folder=folder, name=f"{start:012d}", start=start, n_rows=table.num_rows)
    if checked.ids is not None:
        with _enough_disk(where):
            block.write_rows(checked.rows, checked.ids)
    return _CheckedBlock(block, checked.facts, checked.problems, stored=checked.ids is not None)
