"""What a party is told about its own table before anything is sent: ids, and values out of bounds.

A value outside the study's bounds becomes the bound. A few are expected, because bounds come from
general knowledge; if most are, the table has other units than the study, and a run would spend the
budget on rows that are all alike. Counts are for the party's own eyes: true counts of its rows, on
no account to be sent to anyone.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from splitmeans.errors import DataError
from splitmeans.party.id_facts import IdFacts, id_facts
from splitmeans.party.table import find_columns, read_numbers
from splitmeans.study import PartySpec


@dataclass(frozen=True, kw_only=True)
class BoundFacts:
    """How a number column fits its bounds.

    Attributes:
        column: Its name.
        low: The study's lower bound.
        high: The study's upper bound.
        values: How many values there are; missing ones do not count.
        outside: How many of them lie outside the bounds.
    """

    column: str
    low: float
    high: float
    values: int
    outside: int

    @property
    def mostly_outside(self) -> bool:
        """Whether more than half of the values lie outside."""
        return 2 * self.outside > self.values

    def __str__(self) -> str:
        return (
            f"{self.column}: {self.outside:,} of {self.values:,} values lie outside "
            f"{self.low:.12g} to {self.high:.12g} and become the bound"
        )


@dataclass(frozen=True, kw_only=True)
class TableFacts:
    """How a party's table looks.

    Attributes:
        ids: How its ids look.
        bounds: How its number columns fit their bounds, in the study's order.
    """

    ids: IdFacts
    bounds: tuple[BoundFacts, ...]

    @property
    def clipped(self) -> tuple[BoundFacts, ...]:
        """The columns that have values outside their bounds."""
        return tuple(column for column in self.bounds if column.outside)

    def and_more(self, other: "TableFacts") -> "TableFacts":
        """Return the facts of both parts of a table together."""
        return TableFacts(
            ids=self.ids.and_more(other.ids),
            bounds=tuple(
                BoundFacts(
                    column=own.column,
                    low=own.low,
                    high=own.high,
                    values=own.values + more.values,
                    outside=own.outside + more.outside,
                )
                for own, more in zip(self.bounds, other.bounds, strict=True)
            ),
        )

    def __str__(self) -> str:
        return "\n".join(str(line) for line in (self.ids, *self.clipped))


def table_facts(party: PartySpec, data: Any) -> TableFacts:
    """Look at rows that have passed the table's checks.

    Args:
        party: The party's columns and bounds.
        data: A table with names, among them the id column; see `prepare_table`.
    """
    where = f"party {party.name!r}"
    columns, ids = find_columns(party, data, where=where)
    bounds: list[BoundFacts] = []
    for column, values in zip(party.columns, columns, strict=True):
        if column.low is None or column.high is None:  # categories
            continue
        numbers = read_numbers(values, where=f"{where}, column {column.name!r}")
        low, high = float(column.low), float(column.high)
        # Both comparisons are false for a missing value.
        bounds.append(
            BoundFacts(
                column=column.name,
                low=low,
                high=high,
                values=len(numbers) - int(np.count_nonzero(np.isnan(numbers))),
                outside=int(np.count_nonzero((numbers < low) | (numbers > high))),
            )
        )
    return TableFacts(ids=id_facts(ids), bounds=tuple(bounds))


def facts_from(fields: Mapping[str, Any]) -> TableFacts:
    """Return facts that `dataclasses.asdict` took apart."""
    return TableFacts(
        ids=IdFacts(**fields["ids"]),
        bounds=tuple(BoundFacts(**column) for column in fields["bounds"]),
    )


def clipping_warning(facts: TableFacts) -> str | None:
    """Say that a run would see little but bounds, for the party alone; None if it would not."""
    columns = ", ".join(repr(column.column) for column in facts.bounds if column.mostly_outside)
    if not columns:
        return None
    return (
        f"WARNING: most values of {columns} lie outside the study's bounds and become the bound, "
        "so the run would spend the budget on rows that are all alike. If the units are wrong, "
        "stop now (Ctrl-C), correct them and begin again"
    )


def refuse_clipped(facts: TableFacts, *, where: str) -> None:
    """Refuse a table of which a run would see little but bounds.

    Raises:
        DataError: If more than half of a column's values lie outside its bounds.
    """
    columns = [repr(column.column) for column in facts.bounds if column.mostly_outside]
    if not columns:
        return
    more = f"columns {', '.join(columns)}" if len(columns) > 1 else f"column {columns[0]}"
    raise DataError(
        f"{where}: {more} must have at least half of the values within the study's bounds, the "
        "others become the bound; correct the units, or agree on other bounds with all parties"
    )
