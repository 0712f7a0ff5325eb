"""Numbers kept whole as two integers of 32 bits, and back: rows are stored as such integers."""

import numpy as np

from splitmeans._types import FloatArray, HalfWidthArray, IntArray

_HALF = 32
_SHIFT = 2**31


def to_halves(values: FloatArray | IntArray, *, out: IntArray | HalfWidthArray) -> None:
    """Write the 64 bits of values, shape (n,), into `out` (OUT), shape (n, 2): both in 32 bits."""
    bits = np.ascontiguousarray(values).view(np.int64)
    out[:, 0] = bits >> _HALF
    out[:, 1] = (bits & (2**_HALF - 1)) - _SHIFT


def whole_halves(halves: IntArray | HalfWidthArray) -> IntArray:
    """Return the integers that `to_halves` wrote, shape (n,)."""
    wide = halves.astype(np.int64)
    return np.asarray((wide[:, 0] << _HALF) | (wide[:, 1] + _SHIFT))


def from_halves(halves: IntArray | HalfWidthArray) -> FloatArray:
    """Return the floats that `to_halves` wrote, shape (n,), bit for bit."""
    return np.asarray(np.ascontiguousarray(whole_halves(halves)).view(np.float64))
