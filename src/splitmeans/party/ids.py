"""Ids: one canonical form of a user's id, equal at every party.

The canonical form is text in Unicode normal form C, and its bytes are the UTF-8 of that text. A
whole number is written in decimal, so 42 at one party and "42" at another are the same user. Case
and spaces are kept as they are, because silent folding could merge two users into one.

Errors name row numbers, never values: an id is personal data and error texts end in log files.
"""

import os
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from splitmeans._types import IntArray
from splitmeans.engine.memory import MemoryUsers
from splitmeans.engine.walk import Records, UserBlock, Users
from splitmeans.errors import DataError
from splitmeans.kernels.siphash import hash_ids

# Enough offenders to find the cause in the table, few enough for one line.
_SHOWN_ROWS = 5


def canonical_ids(values: Any) -> pa.LargeStringArray:
    """Return ids in canonical form, in the order given.

    Args:
        values: Text or whole numbers: a list, a NumPy array, a pandas or polars Series, or an
            Arrow array.

    Raises:
        DataError: If there is no id, or an id is missing, empty, repeated (after normalisation)
            or neither text nor a whole number.
    """
    text = canonical_text(values)
    if len(text) == 0:
        raise DataError("ids must have at least one row, got none")
    check_unique(MemoryUsers(ids=text, labels=np.zeros(len(text), dtype=np.int32)))
    return text


def canonical_text(values: Any, *, first_row: int = 0) -> pa.LargeStringArray:
    """Return ids in canonical form without comparing them; see `canonical_ids`.

    `first_row` is the row number of the first one, for errors.
    """
    column = read_array(values, what="ids")
    missing = pc.is_null(column)
    if column.null_count:
        raise DataError(f"ids must not be missing; see {name_rows(missing, first_row=first_row)}")
    text = _as_text(column)
    empty = pc.equal(text, "")
    if pc.any(empty).as_py():
        raise DataError(f"ids must not be empty text; see {name_rows(empty, first_row=first_row)}")
    return text


def check_unique(users: Users) -> None:
    """Refuse users of whom two have the same id.

    Ids are compared by a 128-bit hash under a key drawn for this check alone, so the ids of a
    table that memory cannot hold are compared as well.
    """
    records_of = partial(_numbered, key=os.urandom(16))
    repeated = np.concatenate(list(users.in_tag_order(records_of, finish=_repeated_rows)))
    if len(repeated):
        raise DataError(
            "ids must be different (text is compared in Unicode normal form C); an earlier row "
            f"has the same id as {name_row_numbers(np.sort(repeated))}; keep one row for each user"
        )


def _numbered(block: UserBlock, *, key: bytes) -> Records:
    numbers = np.arange(block.start, block.start + len(block.ids), dtype=np.int64)
    return hash_ids(key, block.ids), numbers


def _repeated_rows(records: Records) -> IntArray:
    """Return the row numbers of all records but the first of each tag."""
    tags, numbers = records
    return np.asarray(numbers[1:][(tags[1:] == tags[:-1]).all(axis=1)])


def read_array(values: Any, *, what: str) -> pa.Array:
    """Return one-dimensional values as one Arrow array, missing ones as nulls.

    Dictionary values are written out and text has 64-bit offsets. `what` names the values in
    errors.
    """
    try:
        column = _to_arrow(values)
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if is_text(column.type):
            # First of all, because chunks beyond 2 GiB of text only fit one array this way.
            column = column.cast(pa.large_string())
        return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        # The cause is dropped on purpose: Arrow puts the offending value into its message.
        raise DataError(
            f"{what} must be one list of values of one kind (all text, or all numbers that fit "
            "64 bits)"
        ) from None


def name_rows(flags: Any, *, first_row: int = 0) -> str:
    """Return "row numbers 3, 8 (counting from 0)" for the rows whose flag is set.

    Args:
        flags: Booleans, one a row; a NumPy or an Arrow array.
        first_row: Row number of the first flag.
    """
    return name_row_numbers(np.flatnonzero(np.asarray(flags)) + first_row)


def name_row_numbers(rows: IntArray) -> str:
    """Return the same for ascending row numbers."""
    shown = ", ".join(str(row) for row in rows[:_SHOWN_ROWS])
    more = f" and {len(rows) - _SHOWN_ROWS} more" if len(rows) > _SHOWN_ROWS else ""
    noun = "row number" if len(rows) == 1 else "row numbers"
    return f"{noun} {shown}{more} (counting from 0)"


def is_text(kind: pa.DataType) -> bool:
    """Return whether an Arrow type holds text."""
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def normalised_text(column: pa.Array) -> pa.LargeStringArray:
    """Return text, or whole numbers in decimal, in Unicode normal form C."""
    text = column.cast(pa.large_string())
    if pc.all(pc.string_is_ascii(text)).as_py() is not False:
        return text  # ASCII is in normal form already, and most ids are ASCII
    return pc.utf8_normalize(text, form="NFC")


def _to_arrow(values: Any) -> Any:
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    if isinstance(values, str | bytes | dict | set | frozenset) or getattr(values, "ndim", 1) != 1:
        raise TypeError("not a list of values")
    if hasattr(values, "to_arrow"):  # a polars Series
        return values.to_arrow()
    return pa.array(values, from_pandas=True)


def _as_text(column: pa.Array) -> pa.LargeStringArray:
    if pa.types.is_null(column.type):
        return pa.array([], pa.large_string())  # without rows: a missing id was refused before
    if not is_text(column.type) and not pa.types.is_integer(column.type):
        raise DataError(
            f"ids must be text or whole numbers, got {column.type}; "
            "write them as text at every party in the same way"
        )
    try:
        return normalised_text(column)
    except pa.ArrowException:
        raise DataError("ids must be valid UTF-8 text") from None
