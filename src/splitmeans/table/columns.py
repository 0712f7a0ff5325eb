"""A column of a party's table as one Arrow array, or as NumPy arrays.

Errors name row numbers, never values: a value is personal data and error texts end in log files.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from splitmeans.errors import DataError
from splitmeans.table.checks.problems import Problem


class ColumnValues(NamedTuple):
    """What a reader of columns found.

    Attributes:
        values: A number for each row; None if the values are of another kind.
        problems: What is wrong with them.
        names: The categories that there are, in a column of which the run learns them.
    """

    values: npt.NDArray[Any] | None
    problems: list[Problem]
    names: tuple[str, ...] = ()

    @property
    def sound(self) -> npt.NDArray[Any] | None:
        """The values, if nothing is wrong."""
        return None if self.problems else self.values


def read_array(values: Any, *, what: str) -> pa.Array:
    """Return one-dimensional values as one Arrow array, missing ones as nulls.

    Dictionary values are written out and text has 64-bit offsets. `what` names the values in
    errors.
    """
    try:
        column = _to_arrow(values)
        column = column.cast(without_views(column.type))
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if is_text(column.type):
            # First of all, because chunks beyond 2 GiB of text only fit one array this way.
            column = column.cast(pa.large_string())
        if not isinstance(column, pa.ChunkedArray):
            return column
        # Arrow copies a chunk even where there is but one.
        return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        # The cause is dropped on purpose: Arrow puts the offending value into its message.
        raise DataError(
            f"{what} must be one list of values of one kind (all text, or all numbers that fit "
            "64 bits)".lstrip()
        ) from None


def _to_arrow(values: Any) -> Any:
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    if isinstance(values, str | bytes | dict | set | frozenset) or getattr(values, "ndim", 1) != 1:
        raise TypeError("not a list of values")
    if hasattr(values, "__arrow_c_stream__"):
        return pa.chunked_array(values)
    return pa.array(values, from_pandas=True)


def is_text(kind: pa.DataType) -> bool:
    """Return whether an Arrow type holds text."""
    kind = without_views(kind)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def without_views(kind: pa.DataType) -> pa.DataType:
    """Return a type with plain text instead of text by views, for which Arrow has few functions."""
    if pa.types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, without_views(kind.value_type), kind.ordered)
    return pa.large_string() if pa.types.is_string_view(kind) else kind


def normalised_text(column: pa.Array) -> pa.LargeStringArray:
    """Return text, or whole numbers in decimal, in Unicode normal form C."""
    text = column.cast(pa.large_string())
    if pc.all(pc.string_is_ascii(text)).as_py() is not False:
        return text  # ASCII is in normal form already, and most ids are ASCII
    return pc.utf8_normalize(text, form="NFC")


def are_whole(numbers: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return which floats are whole numbers that a 64-bit float holds exactly."""
    whole = np.rint(numbers) == numbers
    return np.asarray(whole & np.isfinite(numbers) & (np.abs(numbers) < 2**53))
