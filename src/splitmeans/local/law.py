"""Noise scales of releases about a party's own rows (rule R13).

Sums of rows are integers, one user is one row, and a row's coordinates are clipped to public
bounds, so sensitivities for adding or removing a user are exact: 1 for a count and
`sqrt(sum(bounds^2))` in L2 for a sum vector. Scales are rounded towards privacy.

Releases are built from `mu`: one of L2 sensitivity s with Gaussian noise of scale sigma has
mu = s / sigma, and releases about the same user compose as sqrt(mu_1^2 + mu_2^2 + ...), whatever
each of them saw of the earlier ones.
"""

import math

import numpy as np

from splitmeans import _validate
from splitmeans._types import FloatArray, IntArray
from splitmeans.errors import ParameterError
from splitmeans.privacy.events import GaussianEvent, Realised
from splitmeans.privacy.gaussian import discrete_slack
from splitmeans.privacy.noise import NoiseSource

# Scales are computed for this share of epsilon, so that adding up thousands of costs in floating
# point cannot exceed what was asked for.
USABLE = 1 - 1e-9

# With at least this many units to a deviation, discrete noise costs next to nothing more than
# continuous noise: some 10^-9 of epsilon for a coordinate (rule R15).
MIN_GAUSSIAN_SCALE = 2**16

# Under Gaussian noise a row counts as this many units, so that count noise is fine-grained too.
COUNT_UNITS = 2**20


def check_public(*, n_clusters: int, bounds: tuple[int, ...], levels: tuple[int, ...] = ()) -> None:
    """Check public parameters of local clustering, and levels of columns where there are any."""
    _validate.at_least(1, n_clusters=n_clusters)
    if not isinstance(bounds, tuple) or not bounds:
        raise ParameterError(f"bounds must be a tuple of one or more whole numbers, got {bounds!r}")
    for bound in bounds:
        _validate.at_least(1, bounds=bound)
    if levels and sum(max(1, n) for n in levels) != len(bounds):
        raise ParameterError(f"levels must make {len(bounds)} features, got {levels!r:.80}")


def to_grid(centres: FloatArray, bounds: tuple[int, ...]) -> IntArray:
    """Round centres to the grid and clip them to the bounds."""
    limits = np.array(bounds, dtype=np.int64)
    return np.clip(np.rint(centres).astype(np.int64), -limits, limits)


def whole_root(square: int) -> int:
    """Return the square root of a whole number >= 1, rounded up to a whole number."""
    return math.isqrt(square - 1) + 1


def l2_sensitivity(bounds: tuple[int, ...]) -> int:
    """Return the L2 sensitivity of a sum of rows, rounded up to a whole number."""
    return whole_root(sum(bound * bound for bound in bounds))


def mu_scale(sensitivity: int, *, mu: float) -> int:
    """Return the least whole Gaussian scale with sensitivity / scale <= mu."""
    return max(MIN_GAUSSIAN_SCALE, math.ceil(sensitivity / (mu * USABLE)))


def gaussian_event(scale: int, *, sensitivity: int, coordinates: int) -> GaussianEvent:
    """Return the event of discrete Gaussian noise of whole scale on a vector.

    Args:
        scale: Scale of the noise on every coordinate, in the vector's units.
        sensitivity: L2 norm by which one user can move the vector.
        coordinates: How many coordinates one user can move. The others have the same law with and
            without the user, so they add nothing to the privacy loss.
    """
    slack = discrete_slack(scale, mu=sensitivity / scale, coordinates=coordinates)
    return GaussianEvent(
        noise_multiplier=scale / sensitivity,
        slack=slack,
        realised=Realised(scale=scale, sensitivity=sensitivity, coordinates=coordinates),
    )


def gaussian_counts(raw_counts: IntArray, *, scale: int, noise: NoiseSource) -> FloatArray:
    """Return counts with Gaussian noise of `scale` / COUNT_UNITS.

    Guarantee: one release of mu = COUNT_UNITS / scale if a user is in at most one of the counts.
    """
    errors = noise.gaussian(scale, raw_counts.size).reshape(raw_counts.shape)
    # Added up as integers first: the sum is what is released, and it is exact.
    return np.asarray((raw_counts * COUNT_UNITS + errors) / COUNT_UNITS)
