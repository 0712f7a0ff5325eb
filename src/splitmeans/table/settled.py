"""A party's table on the grid, once the run has learned bounds and categories of its columns.

Rows were read and checked before anything was known (rule R12); what is learned later is applied to
every block of rows as it is walked, so no engine has to store the rows a second time. A row's grid
values depend on that row, the study and released values alone (rule R7).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from splitmeans._types import IntArray, LabelArray
from splitmeans.kernels.halves import from_halves, whole_halves
from splitmeans.study import PartySpec
from splitmeans.study.coding import coding_of
from splitmeans.study.raw_layout import is_settled, raw_places
from splitmeans.table.checks.open_columns import hashes_to_codes
from splitmeans.table.checks.rows import fill_numbers
from splitmeans.table.prepare import PartyTable
from splitmeans.table.walk.interface import RawRows, Table, Users

T = TypeVar("T")


def settle_table(table: Table, agreed: PartySpec, settled: PartySpec) -> Table:
    """Return a table with all columns on the grid.

    `settled` is the agreed party with the bounds and categories that were learned.
    """
    if is_settled(agreed):
        return table
    if isinstance(table, PartyTable):
        return settled_in_memory(table, agreed, settled)
    return _SettledTable(table=table, to_grid=partial(grid_block, agreed=agreed, settled=settled))


def settled_in_memory(table: PartyTable, agreed: PartySpec, settled: PartySpec) -> PartyTable:
    """Return a table in memory with all columns on the grid."""
    if is_settled(agreed):
        return table
    rows = grid_block(table.raw_rows, agreed=agreed, settled=settled, kept_as=np.int32)
    return replace(table, raw_rows=rows, coding=coding_of(settled))


def grid_block(
    raw_rows: Any, *, agreed: PartySpec, settled: PartySpec, kept_as: Any = np.int64
) -> Any:
    """Return a block of coded rows, shape (b, columns), of the type that is asked for."""
    places = raw_places(settled)
    rows = np.empty((len(raw_rows), places[-1].stop), dtype=kept_as)
    for before, after, own, place in zip(
        agreed.columns, settled.columns, raw_places(agreed), places, strict=True
    ):
        if before.is_private:
            fill_numbers(after, from_halves(raw_rows[:, own]), out=rows[:, place.start])
        elif before.is_open:
            rows[:, place.start] = hashes_to_codes(after, whole_halves(raw_rows[:, own]))
        else:
            rows[:, place] = raw_rows[:, own]
    return rows


def _after(
    raw_rows: IntArray, *, to_grid: Callable[[IntArray], IntArray], then: Callable[[IntArray], T]
) -> T:
    return then(to_grid(raw_rows))


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class _SettledRows:
    rows: RawRows
    to_grid: Callable[[IntArray], IntArray]

    def __len__(self) -> int:
        return len(self.rows)

    def total(self, part: Callable[[IntArray], IntArray]) -> IntArray:
        return self.rows.total(partial(_after, to_grid=self.to_grid, then=part))

    def gather(self) -> IntArray:
        return self.to_grid(self.rows.gather())


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class _SettledTable:
    table: Table
    to_grid: Callable[[IntArray], IntArray]

    @property
    def party(self) -> str:
        return self.table.party

    @property
    def names(self) -> Mapping[str, Sequence[str]]:
        return self.table.names

    @property
    def rows(self) -> RawRows:
        return _SettledRows(rows=self.table.rows, to_grid=self.to_grid)

    @property
    def users(self) -> Users:
        return self.table.users

    def __len__(self) -> int:
        return len(self.table)

    def labelled(self, label: Callable[[IntArray], LabelArray]) -> Users:
        return self.table.labelled(partial(_after, to_grid=self.to_grid, then=label))
