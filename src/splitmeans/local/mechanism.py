"""What every local clustering algorithm offers, and the noise scales they share (PRIVACY.md, R13).

Sums of rows are integers, one user is one row, and a row's coordinates are clipped to public
bounds, so sensitivities for adding or removing a user are exact: 1 for a count, `sum(bounds)` in
L1 and `sqrt(sum(bounds^2))` in L2 for a sum vector. Scales are rounded towards privacy.
"""

import math
from typing import Protocol

import numpy as np

from splitmeans import _validate
from splitmeans._types import FloatArray, IntArray
from splitmeans.errors import ParameterError
from splitmeans.privacy.events import Event
from splitmeans.privacy.noise import NoiseSource

# Scales are computed for this share of epsilon, so that adding up thousands of costs in floating
# point cannot exceed what was asked for.
USABLE = 1 - 1e-9

# Count noise has scales near 1 where epsilon is large; whole numbers would be too coarse there.
COUNT_DENOMINATOR = 1024

# Discrete Gaussian noise on d coordinates costs at most 2 d * 4.2 / sigma^2 more epsilon than the
# continuous one if sigma is at least this many grid units (PRIVACY.md, R15).
MIN_GAUSSIAN_SCALE = 2**16
_DISCRETE_SLACK = 2 * 4.2 / MIN_GAUSSIAN_SCALE**2


class LocalClustering(Protocol):
    """An algorithm of phase 1; its fields are public, rows and noise are call arguments."""

    @property
    def event(self) -> Event:
        """What one call of `release` costs a user."""
        ...

    def release(
        self, raw_rows: IntArray, *, noise: NoiseSource, rng: np.random.Generator
    ) -> IntArray:
        """Return the local centres, shape (k', d), on the grid and inside the bounds.

        Args:
            raw_rows: The party's rows, shape (n, d), int64 on the grid.
            noise: Hides the users.
            rng: Starts the algorithm; independent of the rows.
        """
        ...


def check_public(*, n_clusters: int, bounds: tuple[int, ...]) -> None:
    """Check the parameters that every algorithm has."""
    _validate.at_least(1, n_clusters=n_clusters)
    if not isinstance(bounds, tuple) or not bounds:
        raise ParameterError(f"bounds must be a tuple of one or more whole numbers, got {bounds!r}")
    for bound in bounds:
        _validate.at_least(1, bounds=bound)


def clip_rows(raw_rows: IntArray, bounds: tuple[int, ...]) -> IntArray:
    """Return the rows with every coordinate inside its bounds.

    A party's table is clipped already; doing it again makes each algorithm's sensitivity its own
    doing, without an error that would depend on the data.
    """
    if raw_rows.ndim != 2 or raw_rows.shape[1] != len(bounds) or raw_rows.dtype != np.int64:
        raise ParameterError(
            f"rows must be int64 of shape (n, {len(bounds)}), got {raw_rows.dtype} "
            f"of shape {raw_rows.shape}"
        )
    limits = np.array(bounds, dtype=np.int64)
    return np.clip(raw_rows, -limits, limits)


def to_grid(centres: FloatArray, bounds: tuple[int, ...]) -> IntArray:
    """Round centres to the grid and clip them to the bounds."""
    limits = np.array(bounds, dtype=np.int64)
    return np.clip(np.rint(centres).astype(np.int64), -limits, limits)


def laplace_scale(sensitivity: int, *, epsilon: float, denominator: int = 1) -> float:
    """Return the least multiple of 1/denominator with sensitivity / scale <= epsilon."""
    return math.ceil(sensitivity * denominator / (epsilon * USABLE)) / denominator


def l2_sensitivity(bounds: tuple[int, ...]) -> int:
    """Return the L2 sensitivity of a sum of rows, rounded up to a whole number."""
    return math.isqrt(sum(bound * bound for bound in bounds) - 1) + 1


def gaussian_scale(bounds: tuple[int, ...], *, epsilon: float, delta: float) -> int:
    """Return the discrete Gaussian scale that makes a sum of rows (epsilon, delta)-private."""
    # Imported on first use: it takes seconds to load.
    import dp_accounting

    continuous = epsilon * USABLE - len(bounds) * _DISCRETE_SLACK
    if continuous <= 0:
        raise ParameterError(f"epsilon is too small for Gaussian noise, got {epsilon!r}")
    multiplier = float(dp_accounting.get_sigma_gaussian(continuous, delta))
    # The search behind the multiplier stops within 1e-12; the next line stays on the safe side.
    return max(MIN_GAUSSIAN_SCALE, math.ceil((multiplier + 1e-9) * l2_sensitivity(bounds)))
