"""Counts of a sketch's rows by the larger register of two columns and by which column has it."""

import numpy as np

from splitmeans._types import IntArray, RegisterArray
from splitmeans.kernels.compiled import kernel


def tally_columns(
    one: RegisterArray, other: RegisterArray, *, floor: int, size: int
) -> tuple[IntArray, IntArray, IntArray]:
    """Return rows where the first is larger, the second is, and both are equal, by the larger one.

    Args:
        one: Registers, shape (M, k_1), none below `floor` or above `floor + size - 1`.
        other: Registers, shape (M, k_2).
        floor: Smallest register.
        size: Number of values, V.

    Returns:
        Three tables of shape (k_1, k_2, V).
    """
    counts = np.zeros((3, one.shape[1], other.shape[1], size), dtype=np.int64)
    registers = [np.ascontiguousarray(array).view() for array in (one, other)]
    for array in registers:
        # Read-only whatever the source, so that the kernel is compiled for one type only.
        array.setflags(write=False)
    _tally_columns(*registers, floor, counts)
    return counts[0], counts[1], counts[2]


@kernel
def _tally_columns(one, other, floor, counts):  # type: ignore[no-untyped-def]
    """OUT `counts` (3, k_1, k_2, V)."""
    for row in range(one.shape[0]):
        for i in range(one.shape[1]):
            x = np.int64(one[row, i])
            for j in range(other.shape[1]):
                y = np.int64(other[row, j])
                if x > y:
                    counts[0, i, j, x - floor] += 1
                elif y > x:
                    counts[1, i, j, y - floor] += 1
                else:
                    counts[2, i, j, x - floor] += 1
