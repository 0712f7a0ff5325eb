"""What a party sees of its own table before anything is sent: ids, and values out of bounds.

A value outside the study's bounds becomes the bound. A few are expected, because bounds come from
general knowledge; if most are, the table has other units than the study, and a run would spend the
budget on rows that are all alike. Counts are for the party's own eyes: true counts of its rows, on
no account to be sent to anyone.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

import numpy as np

from splitmeans._types import FloatArray
from splitmeans.study import Column
from splitmeans.table.checks.problems import Problem, refuse
from splitmeans.table.ids.facts import IdFacts

# Warn if the row count differs from `expected_users` by more than this factor.
_FAR = 3


@dataclass(frozen=True, kw_only=True)
class BoundFacts:
    """How a number column fits its bounds.

    Missing values do not count.
    """

    column: str
    low: float
    high: float
    values: int
    outside: int

    def and_more(self, other: "BoundFacts") -> "BoundFacts":
        """Return the facts of both parts of a column together."""
        return replace(
            self, values=self.values + other.values, outside=self.outside + other.outside
        )

    @property
    def mostly_outside(self) -> bool:
        """Whether more than half of the values lie outside."""
        return 2 * self.outside > self.values

    def __str__(self) -> str:
        return (
            f"{self.column}: {self.outside:,} of {self.values:,} values lie outside "
            f"{self.low:.12g} to {self.high:.12g} and become the bound"
        )


def bound_facts(column: Column, numbers: FloatArray | None) -> BoundFacts:
    """Count a number column's values outside its bounds; None are the numbers of none."""
    assert column.low is not None
    assert column.high is not None
    low, high = float(column.low), float(column.high)
    values = numbers if numbers is not None else np.empty(0)
    return BoundFacts(
        column=column.name,
        low=low,
        high=high,
        values=len(values) - int(np.count_nonzero(np.isnan(values))),
        # Both comparisons are false for a missing value.
        outside=int(np.count_nonzero((values < low) | (values > high))),
    )


@dataclass(frozen=True, kw_only=True)
class TableFacts:
    """How a party's table looks.

    `names` are the categories in its open columns, by column.
    """

    ids: IdFacts
    bounds: tuple[BoundFacts, ...]
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def clipped(self) -> tuple[BoundFacts, ...]:
        """The columns that have values outside their bounds."""
        return tuple(column for column in self.bounds if column.outside)

    def and_more(self, other: "TableFacts") -> "TableFacts":
        """Return the facts of both parts of a table together."""
        pairs = zip(self.bounds, other.bounds, strict=True)
        return TableFacts(
            ids=self.ids.and_more(other.ids),
            bounds=tuple(own.and_more(more) for own, more in pairs),
            # In the order in which they come: which comes first must not depend on the engine.
            names={
                column: tuple(dict.fromkeys((*own, *other.names[column])))
                for column, own in self.names.items()
            },
        )

    def __str__(self) -> str:
        return "\n".join(str(line) for line in (self.ids, *self.clipped))


def facts_of_parts(parts: Iterable[TableFacts]) -> TableFacts:
    """Return the facts of a table's parts together; there is at least one."""
    return reduce(TableFacts.and_more, parts)


def facts_from(fields: Mapping[str, Any]) -> TableFacts:
    """Return facts that `dataclasses.asdict` took apart."""
    return TableFacts(
        ids=IdFacts(**fields["ids"]),
        bounds=tuple(BoundFacts(**column) for column in fields["bounds"]),
        names={column: tuple(names) for column, names in fields["names"].items()},
    )


def ignore_facts(facts: TableFacts) -> None:
    """Tell nobody."""


def clipping_problems(bounds: Iterable[BoundFacts]) -> list[Problem]:
    """Return the problems of columns of which a run would see little but bounds."""
    return [
        Problem(
            column=column.column,
            rule="must have at least half of the values within the study's bounds, the others "
            "become the bound; correct the units, or agree on other bounds with all parties; "
            "--allow-clipping (in Python allow_clipping=True) takes the values as they are",
        )
        for column in bounds
        if column.mostly_outside
    ]


def rows_note(rows: int, *, expected: int | None, delta: float) -> str | None:
    """Return what a party should know if its rows are far from what the study was made for.

    No reason to refuse: whether a party takes part must not depend on its rows. A study that does
    not say how many users it expects was made for any number but delta's.
    """
    if expected is None:
        return _delta_note(rows, delta)
    if rows < _FAR * expected and expected < _FAR * rows:
        return None
    times = f"{rows / expected:,.0f} times" if rows > expected else f"1 / {expected / rows:,.0f} of"
    return (
        f"the table has {rows:,} rows, {times} the study's expected_users = {expected:,}: is it "
        "the right table, and the whole of it? If it is, agree on another expected_users with all "
        "parties: lengths of messages and delta follow from it, and the forecast is made for it"
    )


def _delta_note(rows: int, delta: float) -> str | None:
    if rows * delta < 1:
        return None
    return (
        f"the table has {rows:,} rows, and the study's delta of {delta:g} is not below one over "
        "them: it alone would allow to publish one user's row whole. Agree on a smaller delta with "
        "all parties, or say expected_users in the study, which then refuses such a delta"
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


def refuse_clipped(facts: TableFacts, *, party: str, where: str) -> None:
    """Refuse a table of which a run would see little but bounds.

    Raises:
        DataError: If more than half of a column's values lie outside its bounds.
    """
    refuse(clipping_problems(facts.bounds), party=party, where=where)
