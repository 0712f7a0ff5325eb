"""What is wrong with a party's table: every broken rule, with the rows that break it.

A table is checked a part at a time, here or by worker processes. Problems of the parts are brought
together, so that one error lists every problem in the table. They name columns, kinds of values and
row numbers, never a value: it is personal data, and error texts end in log files.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from splitmeans._types import IntArray
from splitmeans.errors import DataError
from splitmeans.table.plain_arrow import flags_of

# Enough offenders to find the cause in the table, few enough for one line.
_SHOWN_ROWS = 5

# Where a rule's text names the rows.
ROWS = "{rows}"


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One broken rule.

    Attributes:
        column: The column that breaks it; None for the ids, or the table as a whole.
        rule: What is wrong and how to fix it, with `ROWS` where the row numbers belong.
        rows: The first rows that break it, counting from 0.
        n_rows: How many rows break it.
        minor: Whether it goes without saying if the column has another problem.
    """

    column: str | None = None
    rule: str
    rows: tuple[int, ...] = ()
    n_rows: int = 0
    minor: bool = False

    def __str__(self) -> str:
        text = self.rule.replace(ROWS, name_row_numbers(self.rows, self.n_rows))
        return text if self.column is None else f"column {self.column!r} {text}"


def rows_problem(
    flags: Any,
    rule: str,
    *,
    first_row: int = 0,
    column: str | None = None,
    minor: bool = False,
) -> list[Problem]:
    """Return the problem of the rows whose flag is set, if there are any; see `Problem`.

    `first_row` is the row number of the first flag.
    """
    rows = np.flatnonzero(flags_of(flags)) + first_row
    return rows_problem_of(rows, rule, column=column, minor=minor)


def rows_problem_of(
    rows: IntArray, rule: str, *, column: str | None = None, minor: bool = False
) -> list[Problem]:
    """Return the same for ascending row numbers."""
    if not len(rows):
        return []
    shown = tuple(rows[:_SHOWN_ROWS].tolist())
    return [Problem(column=column, rule=rule, rows=shown, n_rows=len(rows), minor=minor)]


def name_row_numbers(rows: Any, n_rows: int | None = None) -> str:
    """Return "row numbers 3, 8 (counting from 0)" for ascending row numbers, n_rows in all."""
    total = len(rows) if n_rows is None else n_rows
    shown = [str(row) for row in rows[:_SHOWN_ROWS]]
    more = f" and {total - len(shown)} more" if total > len(shown) else ""
    noun = "row number" if total == 1 else "row numbers"
    return f"{noun} {', '.join(shown)}{more} (counting from 0)"


def together(problems: Iterable[Problem]) -> list[Problem]:
    """Bring the problems of a table's parts, in row order, together: one for each broken rule."""
    found: dict[tuple[str | None, str], Problem] = {}
    for problem in problems:
        key = (problem.column, problem.rule)
        if key in found:
            known = found[key]
            problem = replace(
                known,
                rows=(*known.rows, *problem.rows)[:_SHOWN_ROWS],
                n_rows=known.n_rows + problem.n_rows,
            )
        found[key] = problem
    plain = {problem.column for problem in found.values() if not problem.minor}
    return [one for one in found.values() if not (one.minor and one.column in plain)]


def refuse(problems: Iterable[Problem], *, party: str, where: str | None = None) -> None:
    """Raise one error with all problems of the table's parts, in row order, if there are any."""
    found = together(problems)
    if not found:
        return
    start = "" if where is None else f"{where}: "
    if len(found) == 1:
        raise DataError(f"{start}{_with_party(found[0], party)}")
    lines = "".join(f"\n- {problem}" for problem in found)
    raise DataError(f"{start}party {party!r}: the table has {len(found)} problems:{lines}")


def _with_party(problem: Problem, party: str) -> str:
    if problem.column is not None:
        return f"party {party!r}, {problem}"
    text = str(problem)
    return f"party {party!r} {text}" if text.startswith("must ") else f"party {party!r}: {text}"
