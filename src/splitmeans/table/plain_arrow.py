"""To Arrow and back without `pa.array` and `to_numpy`, which load pandas wherever there is one.

Loading pandas takes longer than a fit of 20,000 users, and constants, flags of rows and the checks
that every run begins with do not need it.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from splitmeans import _compute as pc


def text_array(values: Sequence[str]) -> pa.LargeStringArray:
    """Return text, none of it missing, as an Arrow array with 64-bit offsets."""
    encoded = [value.encode() for value in values]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    buffers = pa.py_buffer(ends), pa.py_buffer(b"".join(encoded))
    return pa.LargeStringArray.from_buffers(len(encoded), *buffers)


def flags_array(flags: npt.NDArray[np.bool_]) -> pa.BooleanArray:
    """Return booleans as an Arrow array."""
    packed = pa.py_buffer(np.packbits(flags, bitorder="little"))
    return pa.BooleanArray.from_buffers(pa.bool_(), len(flags), [None, packed])


def flags_of(array: Any) -> npt.NDArray[np.bool_]:
    """Return booleans as NumPy has them, missing ones as not set."""
    if not isinstance(array, pa.BooleanArray):
        return np.asarray(array)
    if not len(array):
        return np.zeros(0, dtype=np.bool_)
    first, end = array.offset, array.offset + len(array)
    valid, data = array.buffers()
    flags = pc.bits_of(data, first, end)
    return flags & pc.bits_of(valid, first, end) if array.null_count else flags
