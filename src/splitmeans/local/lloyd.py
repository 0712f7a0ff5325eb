"""DPLloyd: Lloyd's iterations with noisy counts and sums (the paper, section 3.5).

After Su, Cao, Li, Bertino and Jin, "Differentially Private K-Means Clustering" (CODASPY 2016):
initial centres are spread over the box without looking at data, and their error analysis gives the
number of iterations and how an iteration's budget is divided. They take the number of rows as
public; here it is private, so a small share of the budget releases a noisy one first.
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from splitmeans import _validate
from splitmeans._types import FloatArray, IntArray
from splitmeans.engine.memory import as_rows
from splitmeans.engine.walk import RawRows
from splitmeans.kernels.assign import nearest_sums
from splitmeans.local.mechanism import (
    COUNT_DENOMINATOR,
    USABLE,
    check_public,
    clip_rows,
    laplace_scale,
    to_grid,
)
from splitmeans.privacy.events import ComposedEvent, LaplaceEvent, PureEvent
from splitmeans.privacy.noise import NoiseSource

# Share of epsilon for the number of rows; it only steers the number of iterations.
SIZE_SHARE = 0.02

# From their error analysis: rho is the typical coordinate of a centre in a box of half-width 1; the
# constant is 2 / 0.004, for a mean squared error of 0.004; beyond 7 iterations little is gained.
RHO = 0.225
ERROR_CONSTANT = 500
MIN_ITERATIONS, MAX_ITERATIONS = 2, 7

# Sphere packing: a radius is too large when this many random points in a row do not fit.
PACKING_TRIES = 100
PACKING_HALVINGS = 20


@dataclass(frozen=True, kw_only=True)
class DpLloyd:
    """Lloyd's algorithm on noisy counts and sums.

    Guarantee: for adding or removing one row, the number of rows costs 2 % of epsilon and all
    iterations together cost at most the rest, however many there are. Rows are clipped to
    `bounds`; a row is in one cluster, so a count has sensitivity 1 and the sum of column j
    bounds[j]. Each is released with a budget of its own.
    """

    TAG: ClassVar[str] = "DpLloyd"

    n_clusters: int
    bounds: tuple[int, ...]
    epsilon: float

    def __post_init__(self) -> None:
        check_public(n_clusters=self.n_clusters, bounds=self.bounds)
        _validate.positive(epsilon=self.epsilon)

    @property
    def size_scale(self) -> float:
        """Scale of the Laplace noise on the number of rows."""
        epsilon = SIZE_SHARE * self.epsilon
        return laplace_scale(1, epsilon=epsilon, denominator=COUNT_DENOMINATOR)

    @property
    def iterations_epsilon(self) -> float:
        """What all iterations together may cost."""
        return (1 - SIZE_SHARE) * self.epsilon * USABLE

    @property
    def event(self) -> ComposedEvent:
        """The number of rows, then all iterations as one release.

        How many iterations run depends on a noisy value, so no fixed list of events describes
        them. In every case the ratios sensitivity / scale add up to at most `iterations_epsilon`.
        """
        return ComposedEvent(
            parts=(
                LaplaceEvent(noise_multiplier=self.size_scale, single_count=True),
                PureEvent(epsilon=self.iterations_epsilon),
            )
        )

    def iterations(self, noisy_size: int) -> int:
        """Return how many iterations the budget carries for this many rows."""
        d = len(self.bounds)
        least_epsilon = math.sqrt(
            ERROR_CONSTANT
            * self.n_clusters**3
            / max(1, noisy_size) ** 2
            * (d + _count_weight(d)) ** 3
        )
        affordable = math.floor(self.iterations_epsilon / least_epsilon)
        return min(max(affordable, MIN_ITERATIONS), MAX_ITERATIONS)

    def iteration_scales(self, iterations: int) -> tuple[float, tuple[int, ...]]:
        """Return the Laplace scales of one iteration: of counts, and of each column's sums."""
        d = len(self.bounds)
        per_column = self.iterations_epsilon / iterations / (d + _count_weight(d))
        count_scale = laplace_scale(
            1, epsilon=_count_weight(d) * per_column, denominator=COUNT_DENOMINATOR
        )
        return count_scale, tuple(
            int(laplace_scale(bound, epsilon=per_column)) for bound in self.bounds
        )

    def noisy_sums(
        self, raw_rows: RawRows, centres: IntArray, *, iterations: int, noise: NoiseSource
    ) -> IntArray:
        """Return all that one of so many iterations releases: sums and count, shape (k', d + 1)."""
        count_scale, sum_scales = self.iteration_scales(iterations)
        noisy = raw_rows.total(partial(_clipped_nearest_sums, bounds=self.bounds, centres=centres))
        noisy[:, -1] += noise.laplace(count_scale, self.n_clusters)
        for column, scale in enumerate(sum_scales):
            noisy[:, column] += noise.laplace(scale, self.n_clusters)
        return noisy

    def release(
        self, raw_rows: IntArray | RawRows, *, noise: NoiseSource, rng: np.random.Generator
    ) -> IntArray:
        """Return the centres, shape (k', d); see `LocalClustering`."""
        rows = as_rows(raw_rows)
        noisy_size = len(rows) + int(noise.laplace(self.size_scale, 1)[0])
        iterations = self.iterations(noisy_size)
        count_scale, _ = self.iteration_scales(iterations)
        centres = to_grid(pack_spheres(self.n_clusters, self.bounds, rng=rng), self.bounds)
        for _ in range(iterations):
            noisy = self.noisy_sums(rows, centres, iterations=iterations, noise=noise)
            noisy_sums, noisy_counts = noisy[:, :-1], noisy[:, -1]
            # A count within one standard deviation of zero says nothing about where the centre is.
            useful = noisy_counts >= max(1.0, math.sqrt(2) * count_scale)
            means = noisy_sums / np.where(useful, noisy_counts, 1)[:, np.newaxis]
            centres = np.where(useful[:, np.newaxis], to_grid(means, self.bounds), centres)
        return centres


def _count_weight(d: int) -> float:
    """Return a count's budget relative to one column's sum, which minimises the error."""
    return math.cbrt(4 * d * RHO**2)


def _clipped_nearest_sums(
    raw_rows: IntArray, *, bounds: tuple[int, ...], centres: IntArray
) -> IntArray:
    return nearest_sums(clip_rows(raw_rows, bounds), centres)


def pack_spheres(
    n_centres: int, bounds: tuple[int, ...], *, rng: np.random.Generator
) -> FloatArray:
    """Return centres far from each other and from the walls of the box, shape (n_centres, d).

    Looks for the largest radius at which random spheres still fit, by halving. In a column
    narrower than the sphere the centres sit in the middle.
    """
    # Radius zero always fits, so there is a packing to return.
    packed = _try_packing(n_centres, bounds, radius=0.0, rng=rng)
    assert packed is not None
    low, high = 0.0, math.hypot(*bounds)
    for _ in range(PACKING_HALVINGS):
        radius = (low + high) / 2
        found = _try_packing(n_centres, bounds, radius=radius, rng=rng)
        if found is None:
            high = radius
        else:
            low, packed = radius, found
    return packed


def _try_packing(
    n_centres: int, bounds: tuple[int, ...], *, radius: float, rng: np.random.Generator
) -> FloatArray | None:
    room = np.maximum(np.array(bounds, dtype=np.float64) - radius, 0.0)
    centres = np.empty((n_centres, len(bounds)))
    for placed in range(n_centres):
        tries = rng.uniform(-room, room, size=(PACKING_TRIES, len(bounds)))
        gaps = np.linalg.norm(tries[:, np.newaxis] - centres[np.newaxis, :placed], axis=2)
        fits = np.flatnonzero((gaps >= 2 * radius).all(axis=1))
        if len(fits) == 0:
            return None
        centres[placed] = tries[fits[0]]
    return centres
