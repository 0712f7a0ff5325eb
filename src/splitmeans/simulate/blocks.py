"""The parties' tables as `VerticalKMeans` takes them: one array or data frame each, all here.

Only a simulation has them in one place. Each is checked and put on the grid by the same code that
runs at a party (`table/prepare.py`).
"""

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from splitmeans.errors import DataError, ParameterError
from splitmeans.plan.plan import Plan
from splitmeans.study import Study
from splitmeans.table.checks.facts import TableFacts, ignore_facts, rows_note
from splitmeans.table.frames import as_stream, listed_names
from splitmeans.table.prepare import PartyTable, prepare_table
from splitmeans.table.settled import settled_in_memory

# What a study calls the column of ids if it does not say.
ID_COLUMN = "id"


@dataclass(frozen=True, kw_only=True, eq=False)
class Blocks:
    """The tables of all parties."""

    parties: tuple[str, ...]
    tables: tuple[Any, ...]

    def __len__(self) -> int:
        return len(self.tables)

    @property
    def names(self) -> list[list[str]]:
        """The names of each table's columns; x0, x1 and so on for plain arrays."""
        return [_column_names(block, at) for at, block in enumerate(self.tables)]


def read_blocks(tables: Any) -> Blocks:
    """Return what the caller gave: a list with one table per party, or a dict by party name."""
    names: list[str] | None = None
    if isinstance(tables, Mapping):
        names, tables = [str(name) for name in tables], list(tables.values())
    if isinstance(tables, np.ndarray | str | bytes) or not isinstance(tables, Sequence):
        raise DataError(
            "X must be a list with one array or data frame per party, or a dict of them by party "
            f"name, got {type(tables).__name__}"
        )
    if len(tables) < 2:
        raise DataError(f"X must hold at least 2 parties, got {len(tables)}")
    parties = names or [f"party{at + 1}" for at in range(len(tables))]
    # A stream is opened once, here: its names are looked at before its rows are read.
    streams = [as_stream(block, where=f"party {at + 1}") for at, block in enumerate(tables)]
    opened = tuple(
        block if stream is None else stream for block, stream in zip(tables, streams, strict=True)
    )
    return Blocks(parties=tuple(parties), tables=opened)


def read_ids(ids: Any, blocks: Blocks) -> tuple[list[str] | None, Any]:
    """Return the names of id columns, one a party, or the lists of ids; None is row i with row i.

    Ids are a column's name, the same at all parties or one for each; or one list of ids each.
    """
    named = [ids] * len(blocks) if isinstance(ids, str) else ids
    if named is None:
        _refuse_likely_ids(blocks)
        return None, None
    n_lists = len(named) if hasattr(named, "__len__") else 0
    if n_lists != len(blocks):
        raise DataError(
            "ids must be a column's name, one name per party, or one list of ids per party "
            f"({len(blocks)}), got {n_lists}"
        )
    if not all(isinstance(one, str) for one in named):
        return None, named
    for name, block, party in zip(named, blocks.tables, blocks.parties, strict=True):
        columns = listed_names(block)
        if columns is None or name not in columns:
            there = "it is an array without names" if columns is None else ", ".join(columns)
            raise DataError(
                f"ids must name a column of every table, got {name!r} for party {party!r}; its "
                f"columns: {there}"
            )
    return list(named), None


def _refuse_likely_ids(blocks: Blocks) -> None:
    """Refuse a column called "id" of which nobody said what it is: it would count in distances."""
    for party, names in zip(blocks.parties, blocks.names, strict=True):
        if ID_COLUMN in names:
            raise DataError(
                f"the table of party {party!r} has a column {ID_COLUMN!r}: name it with "
                f"fit(..., ids={ID_COLUMN!r}) if it says who is who, else drop or rename it"
            )


def check_id_columns(study: Study, blocks: Blocks) -> None:
    """Refuse a named table without its id column: row numbers would join the wrong people."""
    for party, block in zip(study.parties, blocks.tables, strict=False):
        names = listed_names(block)
        if names is not None and party.id_column not in names:
            raise DataError(
                f"the table of party {party.name!r} must have the id column {party.id_column!r} "
                "that the study names; add it, or give ids"
            )


def prepare_blocks(
    study: Study,
    blocks: Blocks,
    ids: Sequence[Any] | None,
    *,
    notice: Callable[[TableFacts], None] = ignore_facts,
    allow_clipping: bool = True,
) -> list[PartyTable]:
    """Check the tables against a study and return them on the grid."""
    if len(blocks) != len(study.parties):
        raise DataError(f"X must hold {len(study.parties)} parties, got {len(blocks)}")
    # One that has ids makes row numbers of the others ids to compare with them.
    nobody_has_ids = ids is None and not _have_ids(study, blocks, some=True)
    tables = [
        prepare_table(
            party,
            block,
            ids=None if ids is None else ids[position],
            rules=study.id_rules,
            notice=notice,
            allow_clipping=allow_clipping,
            simulated=nobody_has_ids,
        )
        for position, (party, block) in enumerate(zip(study.parties, blocks.tables, strict=True))
    ]
    if ids is None and not _have_ids(study, blocks):
        _check_equal_rows(tables)
    return tables


def prepare_with_warnings(
    study: Study,
    blocks: Blocks,
    ids: Sequence[Any] | None,
    *,
    expected: int | None,
    allow_clipping: bool,
) -> list[PartyTable]:
    """Prepare the tables for a run, and say what `party check` would say to each party.

    `expected` is how many users the caller says there are, if any number was given;
    `allow_clipping` takes tables whose values are mostly outside their bounds.
    """
    facts: list[TableFacts] = []
    tables = prepare_blocks(study, blocks, ids, notice=facts.append, allow_clipping=allow_clipping)
    for party, own in zip(study.parties, facts, strict=True):
        notes = [str(column) for column in own.clipped]
        rows = rows_note(own.ids.rows, expected=expected, delta=study.budget.delta)
        for note in notes if rows is None else [*notes, rows]:
            warnings.warn(f"party {party.name!r}: {note}", UserWarning, stacklevel=4)
    _check_enough_rows(study, tables)
    return tables


def with_rows_expected(study: Study, tables: Sequence[PartyTable]) -> Study:
    """Return the study for as many users as the longest table has rows, one digit of it.

    Never so many that delta would be refused: of a delta too large for the rows a note speaks.
    """
    below = math.ceil(1 / study.budget.delta) - 1
    rows = max(1, min(below, max(len(table.raw_rows) for table in tables)))
    unit = 10 ** (len(str(rows)) - 1)
    return replace(study, expected_users=rows // unit * unit)


def on_grid(plan: Plan, tables: Sequence[PartyTable]) -> list[PartyTable]:
    """Return the tables with the bounds and categories that a run learned."""
    return [
        settled_in_memory(table, plan.study.party(table.party), plan.party(table.party))
        for table in tables
    ]


def _have_ids(study: Study, blocks: Blocks, *, some: bool = False) -> bool:
    """Whether every party's table, or some table, has the id column that the study names."""
    enough = any if some else all
    return enough(
        party.id_column in (listed_names(block) or ())
        for party, block in zip(study.parties, blocks.tables, strict=True)
    )


def _column_names(block: Any, position: int) -> list[str]:
    names = listed_names(block)
    if names is not None:
        return names
    try:
        shape = np.shape(block)
    except ValueError as problem:
        raise DataError(
            f"party {position + 1} must be a table whose rows have equally many columns"
        ) from problem
    if len(shape) != 2:
        raise DataError(
            f"party {position + 1} must be a table of rows and columns, got shape {shape}"
        )
    return [f"x{number}" for number in range(shape[1])]


def _check_equal_rows(tables: Sequence[PartyTable]) -> None:
    rows = [len(table.raw_rows) for table in tables]
    if len(set(rows)) > 1:
        raise DataError(
            f"parties must have the same number of rows, got {rows}; give ids to align users"
        )


def _check_enough_rows(study: Study, tables: Sequence[PartyTable]) -> None:
    rows = [len(table.raw_rows) for table in tables]
    if study.n_local_clusters != "auto" and int(study.n_local_clusters) > min(rows):
        raise ParameterError(
            f"n_local_clusters must be <= the number of rows ({min(rows)}), "
            f"got {study.n_local_clusters}"
        )
    if study.n_clusters > min(rows):
        raise ParameterError(
            f"n_clusters must be <= the number of rows ({min(rows)}), got {study.n_clusters}"
        )
