"""The Laplace and the Gaussian mechanism on counts and sums of rows (paper, section 2).

Rows lie in [-1, 1] and are rounded to a grid of 2^-20, so that sums are whole numbers of grid units
and integer noise makes the mechanisms exact. Neighbouring data sets differ by one row.
"""

import numpy as np

from splitmeans._types import FloatArray, IntArray
from splitmeans.privacy.noise import NoiseSource

GRID = 2**20


def to_grid(rows: FloatArray) -> IntArray:
    """Return rows in whole grid units, every value clipped to [-1, 1]."""
    return np.rint(np.clip(rows, -1, 1) * GRID).astype(np.int64)


def laplace_counts(counts: IntArray, *, epsilon: float, noise: NoiseSource) -> IntArray:
    """Return counts of disjoint sets of rows with Laplace noise of scale 1 / epsilon.

    Guarantee: epsilon-DP; a row changes one count by 1.
    """
    return counts + noise.laplace(1 / epsilon, counts.size).reshape(counts.shape)


def laplace_sums(
    grid_sums: IntArray, *, sensitivity: float, epsilon: float, noise: NoiseSource
) -> FloatArray:
    """Return sums of disjoint sets of rows with Laplace noise of scale sensitivity / epsilon.

    Guarantee: epsilon-DP if a row changes the sums by at most `sensitivity` in L1. `grid_sums` are
    in grid units, all else in units of the data.
    """
    drawn = noise.laplace(GRID * sensitivity / epsilon, grid_sums.size)
    return (grid_sums + drawn.reshape(grid_sums.shape)) / GRID


def gaussian_sums(grid_sums: IntArray, *, deviation: float, noise: NoiseSource) -> FloatArray:
    """Return sums of disjoint sets of rows with Gaussian noise; both in units of the data.

    Guarantee: that of the Gaussian mechanism whose multiplier is `deviation` over the L2 norm of a
    row. `grid_sums` are in grid units.
    """
    drawn = noise.gaussian(GRID * deviation, grid_sums.size)
    return (grid_sums + drawn.reshape(grid_sums.shape)) / GRID
