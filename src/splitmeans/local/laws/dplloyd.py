"""Public law of DPLloyd; see `local.lloyd`."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from splitmeans import _validate
from splitmeans._types import NoiseLine
from splitmeans.local.law import (
    COUNT_DENOMINATOR,
    LAPLACE,
    USABLE,
    LocalMethod,
    check_public,
    laplace_scale,
)
from splitmeans.privacy.events import ComposedEvent, LaplaceEvent, PureEvent
from splitmeans.study.features import GRID_UNITS
from splitmeans.study.methods import DPLLOYD

# Share of epsilon for the number of rows; it only steers the number of iterations.
SIZE_SHARE = 0.02

# From their error analysis: rho is the typical coordinate of a centre in a box of half-width 1; the
# constant is 2 / 0.004, for a mean squared error of 0.004; beyond 7 iterations little is gained.
RHO = 0.225
ERROR_CONSTANT = 500
MIN_ITERATIONS, MAX_ITERATIONS = 2, 7


@dataclass(frozen=True, kw_only=True)
class DpLloydLaw:
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

    def noise_lines(self, users: int) -> Iterator[NoiseLine]:
        """Yield the noise of a release; see `LocalLaw`."""
        yield "number of rows", LAPLACE * self.size_scale, "users"
        steps = self.iterations(users)
        counts, sums = self.iteration_scales(steps)
        yield f"each count of {steps} steps", LAPLACE * counts, "users"
        yield f"each sum of {steps} steps", LAPLACE * max(sums) / GRID_UNITS, "box"


def _count_weight(d: int) -> float:
    """Return a count's budget relative to one column's sum, which minimises the error."""
    return math.cbrt(4 * d * RHO**2)


def _tight(*, n_clusters: int, bounds: tuple[int, ...], mu: float) -> DpLloydLaw:
    """Return the same algorithm: mu-DP composes no worse than mu-Gaussian privacy."""
    return DpLloydLaw(n_clusters=n_clusters, bounds=bounds, epsilon=mu)


METHOD = LocalMethod(facts=DPLLOYD, tight=_tight, published=DpLloydLaw)
