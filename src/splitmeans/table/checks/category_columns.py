"""Categories of a party's table as positions of their levels."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from splitmeans._types import NO_VALUE
from splitmeans.errors import DataError
from splitmeans.study import Column
from splitmeans.study.parties import OTHER_LEVEL, SKIP
from splitmeans.table.checks.number_columns import as_floats, missing_problem
from splitmeans.table.checks.problems import ROWS, Problem, rows_problem
from splitmeans.table.columns import ColumnValues, are_whole, is_text, normalised_text, read_array
from splitmeans.table.plain_arrow import flags_of, numbers_of

_Flags = npt.NDArray[np.bool_]


def read_levels(column: Column, values: Any, *, first_row: int) -> ColumnValues:
    """Return the position of each value's level; see `study/coding.py`."""
    text, problems = read_categories(column, values, first_row=first_row)
    if text is None:
        return ColumnValues(None, problems)
    missing = flags_of(text.is_null())
    listed = normalised_text(pa.array(column.categories, pa.large_string()))
    position = pc.index_in(text, value_set=listed)
    unknown = flags_of(position.is_null()) & ~missing
    # The code behind the listed ones is the level of missing values, or equal shares of all.
    behind = len(column.categories)
    codes = numbers_of(position, missing=behind).astype(np.int64)
    if OTHER_LEVEL in column.categories:
        codes[unknown] = column.categories.index(OTHER_LEVEL)
    elif unknown.any():
        problems += _unknown_categories(column, text, unknown, first_row=first_row)
    if column.missing == SKIP:
        codes[missing] = NO_VALUE
    return ColumnValues(codes, problems)


def _unknown_categories(
    column: Column, text: pa.LargeStringArray, unknown: _Flags, *, first_row: int
) -> list[Problem]:
    """Say of categories that the study does not list in which way they are unknown."""
    rule = "must hold only categories that the study lists (case and spaces count)"
    empty = unknown & flags_of(pc.match_substring_regex(text, pattern=r"\A\s*\z"))
    alike = {_folded(category) for category in column.categories}
    # Of few different texts, however many rows there are.
    values = text.filter(pa.array(unknown)).unique()
    near = [value for value in values.to_pylist() if value.strip() and _folded(value) in alike]
    similar = unknown & flags_of(pc.is_in(text, value_set=pa.array(near, pa.large_string())))
    here: dict[str, Any] = {"first_row": first_row, "column": column.name}
    return [
        *rows_problem(
            empty,
            f"{rule}, found an empty text; see {ROWS}; fill it in, or leave it out (NULL, or "
            "nothing at all in a csv file) and set missing = 'level', 'spread' or 'skip' for this "
            "column in the study",
            **here,
        ),
        *rows_problem(
            similar,
            f"{rule}, found one that differs in case or spaces alone; see {ROWS}; write it as the "
            "study does",
            **here,
        ),
        *rows_problem(
            unknown & ~empty & ~similar,
            f"{rule}, found another; see {ROWS}; correct the rows or agree on a longer list",
            **here,
        ),
    ]


def _folded(text: str) -> str:
    return "".join(text.split()).casefold()


def read_categories(
    column: Column, values: Any, *, first_row: int
) -> tuple[pa.LargeStringArray | None, list[Problem]]:
    """Return categories as text in normal form C, missing ones as nulls, and problems.

    There is no text if the values are of another kind.
    """
    rule = "must hold text or whole numbers"
    try:
        array = read_array(values, what="")
    except DataError as problem:
        return None, [Problem(column=column.name, rule=str(problem))]
    if pa.types.is_floating(array.type):
        # Whole numbers with gaps arrive as floats from pandas; 2.0 means the category "2".
        numbers = as_floats(array)
        missing = np.isnan(numbers)
        wrong = rows_problem(
            ~are_whole(numbers) & ~missing,
            f"{rule}; see {ROWS}",
            first_row=first_row,
            column=column.name,
        )
        if wrong:
            return None, wrong
        array = pa.array(np.where(missing, 0, numbers).astype(np.int64), mask=missing)
    if not (is_text(array.type) or pa.types.is_integer(array.type) or pa.types.is_null(array.type)):
        return None, [Problem(column=column.name, rule=f"{rule}, got {array.type}")]
    text = normalised_text(array)
    return text, missing_problem(column, flags_of(text.is_null()), first_row=first_row)
