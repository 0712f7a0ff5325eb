"""Numbers of a party's table, and in words what was found where none is."""

import datetime
from numbers import Real
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from splitmeans._types import FloatArray
from splitmeans.errors import DataError
from splitmeans.study import Column
from splitmeans.table.checks.problems import ROWS, Problem, rows_problem
from splitmeans.table.columns import ColumnValues, is_text, read_array
from splitmeans.table.plain_arrow import flags_of, numbers_of

# As Arrow reads them from a csv file.
_NUMBER = r"(?i)\A\s*-?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?\s*\z"

# What text in a number column looks like, in the words that people read; the first that fits.
_KINDS = {
    "an empty text": r"\A\s*\z",
    "a word for a missing value": (
        r"(?i)\A\s*(?:-?nan|null|none|nil|n/?a|nat|<na>|#n/?a|unknown|missing|-+|\?+)\s*\z"
    ),
    "a word for infinity": r"(?i)\A\s*[+-]?inf(?:inity)?\s*\z",
    "a number with separators of thousands": (
        r"\A\s*[+-]?[0-9]{1,3}(?:(?:,[0-9]{3})+\.[0-9]*|(?:[,.' ][0-9]{3}){2,}|['\s][0-9]{3})\s*\z"
    ),
    "a number with a decimal comma": r"\A\s*[+-]?[0-9.' ]*,[0-9]+\s*\z",
    "a date": r"\A\s*(?:[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}|[0-9]{1,2}[./][0-9]{1,2}[./][0-9]{2,4})",
    "true or false": r"(?i)\A\s*(?:true|false|yes|no)\s*\z",
    "a number with a unit or another sign": r"\A\s*\D{0,4}[0-9][0-9.,']*\s*\D{0,5}\z",
    "a value that is neither number nor text": r"\A\x{FFFC}\z",
}
_OTHER = "\ufffc"
_NO_NUMBER = "text that is no number"

_FILL = (
    "leave missing values out (NULL) and set the column's missing rule in the study, or fill them "
    "in"
)
_FIXES = {
    "an empty text": _FILL,
    "a word for a missing value": _FILL,
    "a date": "count days or years from an agreed day",
    "true or false": "write 1 and 0, or give the column categories in the study",
    _NO_NUMBER: "write numbers as 1234.5, or give the column categories in the study",
}
_WRITE_PLAIN = "write numbers as 1234.5, without units or separators"


def read_numbers(column: Column, values: Any, *, first_row: int = 0) -> ColumnValues:
    """Return the column's numbers, NaN where they are missing."""
    if _is_plain_numbers(values):
        numbers = np.ascontiguousarray(values, dtype=np.float64)
        return ColumnValues(numbers, _value_problems(column, numbers, first_row=first_row))
    try:
        array = read_array(values, what="")
    except DataError as problem:
        mixed = texts_of_kinds(values)
        found = [] if mixed is None else _text_problems(column, mixed, first_row=first_row)
        return ColumnValues(None, found or [Problem(column=column.name, rule=str(problem))])
    if is_text(array.type):
        return ColumnValues(None, _text_problems(column, array, first_row=first_row))
    other = _other_kind(array.type)
    if other is not None:
        rule = f"must hold numbers, found {other[0]}; see {ROWS}; {other[1]}"
        flags = array.is_valid()
        found = rows_problem(flags, rule, first_row=first_row, column=column.name)
        rule = f"must hold numbers, found {other[0]}; {other[1]}"
        return ColumnValues(None, found or [Problem(column=column.name, rule=rule)])
    numbers = as_floats(array)
    return ColumnValues(numbers, _value_problems(column, numbers, first_row=first_row))


def as_floats(array: pa.Array) -> FloatArray:
    """Return an array of numbers or booleans as float64, with NaN where missing."""
    if pa.types.is_boolean(array.type) or pa.types.is_null(array.type):
        array = array.cast(pa.int8())
    elif pa.types.is_decimal(array.type):
        array = array.cast(pa.float64())
    if array.null_count == 0:
        return np.ascontiguousarray(numbers_of(array), dtype=np.float64)
    # Integers beyond 2^53 are rounded to the nearest float, which Arrow's own cast refuses.
    numbers = numbers_of(array, missing=0).astype(np.float64)
    numbers[flags_of(array.is_null())] = np.nan
    return np.asarray(numbers)


def missing_problem(column: Column, missing: Any, *, first_row: int) -> list[Problem]:
    """Return the problem of missing values where the study allows none."""
    if column.missing != "error":
        return []
    ways = "'skip' (left out for who has none), 'midpoint' or a number"
    if column.is_categorical:
        ways = (
            "'level' (a level of its own), 'skip' (left out for who has none) or 'spread' (an "
            "equal share of each category)"
        )
    rule = (
        f"must not have missing values; see {ROWS}; fill them in, or set missing = {ways} for this "
        "column in the study"
    )
    return rows_problem(missing, rule, first_row=first_row, column=column.name)


def _value_problems(column: Column, numbers: FloatArray, *, first_row: int) -> list[Problem]:
    infinite = (
        f"must hold finite numbers; see {ROWS}; write a number or leave the value out and set the "
        "column's missing rule in the study"
    )
    return [
        *missing_problem(column, np.isnan(numbers), first_row=first_row),
        *rows_problem(np.isinf(numbers), infinite, first_row=first_row, column=column.name),
    ]


def _text_problems(column: Column, text: pa.Array, *, first_row: int) -> list[Problem]:
    """Say for every kind of text what it is and where; numbers in text are the least of it."""
    here: dict[str, Any] = {"first_row": first_row, "column": column.name}
    found = missing_problem(column, text.is_null(), first_row=first_row)
    is_number = _matches(text, _NUMBER)
    rest = flags_of(text.is_valid()) & ~is_number
    for kind, pattern in (*_KINDS.items(), (_NO_NUMBER, "")):
        flags = rest & _matches(text, pattern)
        rest &= ~flags
        fix = _FIXES.get(kind, _WRITE_PLAIN)
        found += rows_problem(flags, f"must hold numbers, found {kind}; see {ROWS}; {fix}", **here)
    rule = f"must hold numbers, found numbers kept as text; see {ROWS}; convert the column"
    return [*found, *rows_problem(is_number, rule, minor=True, **here)]


def _matches(text: pa.Array, pattern: str) -> Any:
    return flags_of(pc.match_substring_regex(text, pattern=pattern))


def _other_kind(kind: pa.DataType) -> tuple[str, str] | None:
    """Return what a column of this type holds that is no number, and what to do about it."""
    if pa.types.is_temporal(kind):
        return f"dates or times ({kind})", _FIXES["a date"]
    of_numbers = pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal
    if any(is_of(kind) for is_of in (*of_numbers, pa.types.is_boolean, pa.types.is_null)):
        return None
    return f"{kind}", "convert it, or give the column categories in the study"


def texts_of_kinds(values: Any) -> pa.Array | None:
    """Return values of several kinds as texts that look alike, None if they are no list.

    A text stands for itself and everything else for its kind: nothing is read from it but that.
    """
    try:
        listed = list(values)
    except TypeError:
        return None
    if isinstance(values, str | bytes | dict | set | frozenset):
        return None
    if getattr(values, "ndim", 1) != 1:
        return None
    texts = [_as_text(value) for value in listed]
    return None if all(text in ("0", None) for text in texts) else pa.array(texts, pa.string())


def _as_text(value: Any) -> str | None:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, str):
        return value if value.isprintable() else "text"
    if isinstance(value, Real):
        return None if value != value else "0"
    return "2000-01-01" if isinstance(value, datetime.date) else _OTHER


def _is_plain_numbers(values: Any) -> bool:
    is_array = isinstance(values, np.ndarray) and not np.ma.isMaskedArray(values)
    return is_array and values.ndim == 1 and values.dtype.kind in "fiub"
