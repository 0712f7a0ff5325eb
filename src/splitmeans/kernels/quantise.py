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


def to_grid_rows(
    values: FloatArray,
    *,
    lows: FloatArray,
    highs: FloatArray,
    bounds: IntArray,
    out: HalfWidthArray,
    outside: IntArray,
) -> bool:
    """Do the same for all columns of rows in one pass, if no value is missing or infinite.

    Args:
        values: Shape (n, d), float64, contiguous.
        lows: Smallest value of interest of each column, shape (d,).
        highs: Largest value of interest of each column, shape (d,).
        bounds: Grid integer of the largest, shape (d,).
        out: Shape (n, d), int32, OUT.
        outside: Shape (d,), INOUT; how many values lie outside is added.

    Returns:
        Whether all values are finite; if not, what was filled is void.
    """
    return bool(_to_grid_rows(values, lows, highs, bounds, out, outside))


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


@kernel
def _to_grid_rows(values, lows, highs, bounds, out, outside):  # type: ignore[no-untyped-def]
    finite = True
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            value, low, high = values[i, j], lows[j], highs[j]
            inside = min(max(value, low), high)
            # Only infinity and NaN differ from themselves here.
            finite &= value - value == 0.0
            outside[j] += inside != value
            scaled = (inside - low) / (high - low) * 2 - 1
            grid = min(max(np.rint(scaled * bounds[j]), -bounds[j]), bounds[j])
            out[i, j] = np.int32(grid) if grid == grid else np.int32(0)
    return finite
