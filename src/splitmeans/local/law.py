"""What every local algorithm offers to public code, and the noise scales they share (rule R13).

Sums of rows are integers, one user is one row, and a row's coordinates are clipped to public
bounds, so sensitivities for adding or removing a user are exact: 1 for a count, `sum(bounds)` in
L1 and `sqrt(sum(bounds^2))` in L2 for a sum vector. Scales are rounded towards privacy.

Algorithms are built from `epsilon` (the published forms) or from `mu` (tight accounting). A release
of L2 sensitivity s with Gaussian noise of scale sigma has mu = s / sigma, and releases about the
same user compose as sqrt(mu_1^2 + mu_2^2 + ...), whatever each of them saw of the earlier ones.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from splitmeans import _validate
from splitmeans._types import FloatArray, IntArray, NoiseLine
from splitmeans.errors import ParameterError
from splitmeans.privacy.events import Event, GaussianEvent, Realised
from splitmeans.privacy.gaussian import discrete_slack, gaussian_multiplier
from splitmeans.privacy.noise import NoiseSource
from splitmeans.study.methods import LocalFacts

# A Laplace variable of scale b has this many b as its standard deviation.
LAPLACE = math.sqrt(2)

# Scales are computed for this share of epsilon, so that adding up thousands of costs in floating
# point cannot exceed what was asked for.
USABLE = 1 - 1e-9

# Count noise has scales near 1 where epsilon is large; whole numbers would be too coarse there.
COUNT_DENOMINATOR = 1024

# With at least this many units to a deviation, discrete noise costs next to nothing more than
# continuous noise: some 10^-9 of epsilon for a coordinate (rule R15).
MIN_GAUSSIAN_SCALE = 2**16

# Under Gaussian noise a row counts as this many units, so that count noise is fine-grained too.
COUNT_UNITS = 2**20


class LocalLaw(Protocol):
    """The public side of an algorithm: its fields are public, and no method sees a row."""

    TAG: ClassVar[str]

    @property
    def n_clusters(self) -> int:
        """Number of local centres, k'."""
        ...

    @property
    def bounds(self) -> tuple[int, ...]:
        """Largest grid integer of each column."""
        ...

    @property
    def event(self) -> Event:
        """What one release costs a user."""
        ...

    def noise_lines(self, users: int) -> Iterable[NoiseLine]:
        """Return the noise of a release of about so many users."""
        ...


@dataclass(frozen=True, kw_only=True)
class LocalMethod:
    """The record of a local algorithm: everything that public code asks of it.

    Attributes:
        facts: What studies and statements read.
        tight: Makes its law from `n_clusters`, `bounds` and `mu`; None without such a form.
        published: The same with `epsilon`, costs added up; None without such a form.
        takes_codes: Whether it works on coded rows (`study/coding.py`): its law has `levels` then.
            Others get every level as a feature of its own.
    """

    facts: LocalFacts
    tight: Callable[..., LocalLaw] | None = None
    published: Callable[..., LocalLaw] | None = None
    takes_codes: bool = False


def check_public(*, n_clusters: int, bounds: tuple[int, ...], levels: tuple[int, ...] = ()) -> None:
    """Check the parameters that every algorithm has, and levels of columns where it knows them."""
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


def laplace_scale(sensitivity: int, *, epsilon: float, denominator: int = 1) -> float:
    """Return the least multiple of 1/denominator with sensitivity / scale <= epsilon."""
    return math.ceil(sensitivity * denominator / (epsilon * USABLE)) / denominator


def whole_root(square: int) -> int:
    """Return the square root of a whole number >= 1, rounded up to a whole number."""
    return math.isqrt(square - 1) + 1


def l2_sensitivity(bounds: tuple[int, ...]) -> int:
    """Return the L2 sensitivity of a sum of rows, rounded up to a whole number."""
    return whole_root(sum(bound * bound for bound in bounds))


def gaussian_scale(bounds: tuple[int, ...], *, epsilon: float, delta: float) -> int:
    """Return the Gaussian scale that makes a sum of rows (epsilon, delta)-private.

    What discrete noise costs on top is not in epsilon: it is the `slack` of the event.
    """
    multiplier = gaussian_multiplier(epsilon * USABLE, delta)
    # The curve behind the multiplier is exact to 1e-12; the next line stays on the safe side.
    return max(MIN_GAUSSIAN_SCALE, math.ceil((multiplier + 1e-9) * l2_sensitivity(bounds)))


def mu_scale(sensitivity: int, *, mu: float) -> int:
    """Return the least whole Gaussian scale with sensitivity / scale <= mu."""
    return max(MIN_GAUSSIAN_SCALE, math.ceil(sensitivity / (mu * USABLE)))


def gaussian_event(
    scale: int, *, sensitivity: int, coordinates: int, delta: float | None = None
) -> GaussianEvent:
    """Return the event of discrete Gaussian noise of whole scale on a vector.

    Args:
        scale: Scale of the noise on every coordinate, in the vector's units.
        sensitivity: L2 norm by which one user can move the vector.
        coordinates: How many coordinates one user can move. The others have the same law with and
            without the user, so they add nothing to the privacy loss.
        delta: See `GaussianEvent`.
    """
    slack = discrete_slack(scale, mu=sensitivity / scale, coordinates=coordinates)
    return GaussianEvent(
        noise_multiplier=scale / sensitivity,
        slack=slack,
        delta=delta,
        realised=Realised(scale=scale, sensitivity=sensitivity, coordinates=coordinates),
    )


def gaussian_counts(raw_counts: IntArray, *, scale: int, noise: NoiseSource) -> FloatArray:
    """Return counts with Gaussian noise of `scale` / COUNT_UNITS.

    Guarantee: one release of mu = COUNT_UNITS / scale if a user is in at most one of the counts.
    """
    errors = noise.gaussian(scale, raw_counts.size).reshape(raw_counts.shape)
    # Added up as integers first: the sum is what is released, and it is exact.
    return np.asarray((raw_counts * COUNT_UNITS + errors) / COUNT_UNITS)
