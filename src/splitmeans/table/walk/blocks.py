"""Storing a party's rows as checked blocks, whatever they are read from.

A source hands over rows a part at a time; each part is checked against the study, quantised and
written as a block (`spool.py`) by a worker. Ids are compared when all blocks are there.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa

from splitmeans.errors import DataError
from splitmeans.study import PartySpec
from splitmeans.study.id_rules import IdRules
from splitmeans.table.checks.facts import TableFacts, facts_of_parts, finish_checks
from splitmeans.table.checks.problems import Problem
from splitmeans.table.checks.rows import check_rows
from splitmeans.table.ids.canonical import repeated_ids
from splitmeans.table.options import SourceOptions
from splitmeans.table.walk.spool import StoredBlock
from splitmeans.table.walk.spool_folder import make_spool_folder
from splitmeans.table.walk.stored import StoredTable
from splitmeans.table.walk.workers import Workers


@dataclass(frozen=True, kw_only=True)
class _CheckedBlock:
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

    Args:
        party: The party's columns, bounds and id column.
        parts: The rows in their order, at least one, a block's rows at a time.
        options: How they are checked, and where they are stored.
        where: How errors name the source.
        total: How many rows there are, if known.
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
        for item in pool.map(store, _numbered(parts, packed=pool.count > 1)):
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
        finish_checks(
            party.name,
            problems,
            facts,
            where=where,
            notice=options.notice,
            allow_clipping=options.allow_clipping,
        )
    except BaseException:
        pool.close()
        own.close()
        raise
    return table


def _numbered(
    parts: Iterable[pa.Table], *, packed: bool
) -> Iterator[tuple[int, pa.Table | pa.Buffer]]:
    """Yield each part with the number of its first row; packed, it can go to another process."""
    start = 0
    for part in parts:
        yield start, _packed(part) if packed else part
        start += part.num_rows


def _packed(part: pa.Table) -> pa.Buffer:
    """Return a table's bytes; pickle would take whole the buffers of which it has a slice."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, part.schema) as writer:
        writer.write_table(part)
    return sink.getvalue()


def _store_block(
    numbered: tuple[int, pa.Table | pa.Buffer],
    *,
    party: PartySpec,
    folder: Path,
    where: str,
    rules: IdRules,
) -> _CheckedBlock:
    """Check rows and store them as one block; what a worker does."""
    start, data = numbered
    table = pa.ipc.open_stream(data).read_all() if isinstance(data, pa.Buffer) else data
    try:
        checked = check_rows(party, table, first_row=start, rules=rules, with_names=False)
    except DataError as problem:
        raise DataError(f"{where}: {problem}") from None
    block = StoredBlock(folder=folder, name=f"{start:012d}", start=start, n_rows=table.num_rows)
    try:
        if checked.ids is not None:
            block.write_rows(checked.rows, checked.ids)
    except OSError as problem:
        raise DataError(
            f"{where}: cannot be stored in blocks ({problem.strerror}); make room at the home "
            "folder, or in Python give a spool folder with enough of it"
        ) from problem
    return _CheckedBlock(
        block=block,
        facts=checked.facts,
        problems=checked.problems,
        stored=checked.ids is not None,
    )
