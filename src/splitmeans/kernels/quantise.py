"""Numbers of a column to integers of the grid, one by one.

A value's grid integer is a function of that value and the column's public bounds alone (rule R7).
"""

import numpy as np

from splitmeans._types import FloatArray, HalfWidthArray, IntArray
from splitmeans.kernels.compiled import kernel


def to_grid_column(
    values: FloatArray,
    *,
    low: float,
    high: float,
    bound: int,
    stand_in: float,
    out: IntArray | HalfWidthArray,
) -> None:
    """Clip values to [low, high], scale them to [-bound, bound] and round; fill `out` (OUT).

    Args:
        values: Shape (n,), float64; NaN means missing.
        low: Smallest value of interest.
        high: Largest value of interest.
        bound: Grid integer of `high`.
        stand_in: What a missing value becomes; NaN gives the middle, grid integer 0.
        out: Shape (n,), whole numbers, any stride.
    """
    # One type of array, whatever is to be filled: every further one would be compiled for.
    grid = np.empty(len(values), dtype=np.int32)
    _to_grid_column(values, low, high, bound, stand_in, grid)
    out[:] = grid


@kernel
def _to_grid_column(values, low, high, bound, stand_in, out):  # type: ignore[no-untyped-def]
    for i in range(values.size):
        value = values[i]
        # The missing rule comes before everything else: clipping keeps NaN.
        if np.isnan(value):
            value = stand_in
            if np.isnan(value):
                out[i] = 0
                continue
        scaled = (min(max(value, low), high) - low) / (high - low) * 2 - 1
        out[i] = np.int32(min(max(np.rint(scaled * bound), -bound), bound))
