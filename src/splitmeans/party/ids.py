"""Ids: one canonical form of a user's id, equal at every party.

The canonical form is text in Unicode normal form C, and its bytes are the UTF-8 of that text. A
whole number is written in decimal, so 42 at one party and "42" at another are the same user. Case
and spaces are kept as they are, because silent folding could merge two users into one.

Errors name row numbers, never values: an id is personal data and error texts end in log files.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from splitmeans.errors import DataError

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
    column = read_array(values, what="ids")
    if len(column) == 0:
        raise DataError("ids must have at least one row, got none")
    if pa.types.is_null(column.type) or column.null_count:
        raise DataError(f"ids must not be missing; see {name_rows(pc.is_null(column))}")
    text = _as_text(column)
    empty = pc.equal(text, "")
    if pc.any(empty).as_py():
        raise DataError(f"ids must not be empty text; see {name_rows(empty)}")
    _check_unique(text)
    return text


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


def name_rows(flags: Any) -> str:
    """Return "row numbers 3, 8 (counting from 0)" for the rows whose flag is set.

    Args:
        flags: Booleans, one a row; a NumPy or an Arrow array.
    """
    rows = np.flatnonzero(np.asarray(flags))
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
    return pc.utf8_normalize(column.cast(pa.large_string()), form="NFC")


def _to_arrow(values: Any) -> Any:
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    if isinstance(values, str | bytes | dict | set | frozenset) or getattr(values, "ndim", 1) != 1:
        raise TypeError("not a list of values")
    if hasattr(values, "to_arrow"):  # a polars Series
        return values.to_arrow()
    return pa.array(values, from_pandas=True)


def _as_text(column: pa.Array) -> pa.LargeStringArray:
    if not is_text(column.type) and not pa.types.is_integer(column.type):
        raise DataError(
            f"ids must be text or whole numbers, got {column.type}; "
            "write them as text at every party in the same way"
        )
    try:
        return normalised_text(column)
    except pa.ArrowException:
        raise DataError("ids must be valid UTF-8 text") from None


def _check_unique(text: pa.LargeStringArray) -> None:
    codes = text.dictionary_encode()
    if len(codes.dictionary) == len(text):
        return
    repeated: npt.NDArray[np.bool_] = np.ones(len(text), dtype=np.bool_)
    repeated[np.unique(codes.indices.to_numpy(), return_index=True)[1]] = False
    raise DataError(
        "ids must be different (text is compared in Unicode normal form C); an earlier row has "
        f"the same id as {name_rows(repeated)}; keep one row for each user"
    )
