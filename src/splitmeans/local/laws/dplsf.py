"""Public laws of DPLSF, the hash trees: as published, and for tight accounting.

See `local.dplsf_paper` and `local.dplsf`.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from splitmeans import _validate
from splitmeans._types import NoiseLine
from splitmeans.errors import ParameterError
from splitmeans.local.law import (
    COUNT_DENOMINATOR,
    COUNT_UNITS,
    LAPLACE,
    LocalMethod,
    check_public,
    gaussian_event,
    gaussian_scale,
    l2_sensitivity,
    laplace_scale,
    mu_scale,
)
from splitmeans.privacy.events import ComposedEvent, LaplaceEvent
from splitmeans.study.features import GRID_UNITS
from splitmeans.study.methods import DPLSF

# Noise on a leaf sum has length about sqrt(d) * sigma; spread over 10 sqrt(d) sigma rows it moves
# the mean by a tenth of the data's radius.
LOW_NOISE_FACTOR = 10

# Of a row; times 16 standard deviations of a hyperplane's normal, 2^20 units each: below 2^63.
_MAX_L1 = 2**38


@dataclass(frozen=True, kw_only=True)
class DplsfPaperLaw:
    """Noisy means of the leaves of a hash tree, clustered.

    Guarantee: for adding or removing one row, counts cost (1 - sum_share) * epsilon over all
    levels and leaf sums cost sum_share * epsilon (with Gaussian sums: and delta). Rows are clipped
    to `bounds`; a row is in at most one leaf, so the sums have L1 sensitivity sum(bounds).

    Attributes:
        n_clusters: Number of centres, k'.
        bounds: Largest grid integer of each column.
        epsilon: Cost of one release.
        delta: The delta of Gaussian sums; None for Laplace sums.
        depth: Number of hash bits, and of levels below the root.
        sum_share: Share of epsilon for the leaf sums.
        sums: "laplace" or "gaussian", the noise on leaf sums.
    """

    TAG: ClassVar[str] = "LshTree"

    n_clusters: int
    bounds: tuple[int, ...]
    epsilon: float
    delta: float | None = None
    depth: int = 20
    sum_share: float = 0.8
    sums: str = "laplace"

    def __post_init__(self) -> None:
        check_public(n_clusters=self.n_clusters, bounds=self.bounds)
        _validate.positive(epsilon=self.epsilon)
        _validate.at_least(1, depth=self.depth)
        _validate.open_unit(sum_share=self.sum_share)
        _validate.one_of(("laplace", "gaussian"), sums=self.sums)
        if self.sums == "gaussian":
            _validate.open_unit(delta=self.delta)
        elif self.delta is not None:
            raise ParameterError(f"delta must be None with Laplace sums, got {self.delta!r}")
        check_hash_range(self.bounds)

    @property
    def count_scale(self) -> float:
        """Scale of the Laplace noise on every node's count."""
        per_level = (1 - self.sum_share) * self.epsilon / (self.depth + 1)
        return laplace_scale(1, epsilon=per_level, denominator=COUNT_DENOMINATOR)

    @property
    def sum_scale(self) -> int:
        """Scale of the noise on every coordinate of a leaf's sum, in grid units."""
        epsilon = self.sum_share * self.epsilon
        if self.delta is not None:
            return gaussian_scale(self.bounds, epsilon=epsilon, delta=self.delta)
        return int(laplace_scale(sum(self.bounds), epsilon=epsilon))

    @property
    def low_noise_points(self) -> int:
        """Number of rows in a leaf above which the noise on its mean is small."""
        if self.sums == "gaussian":
            # Google's sigma is relative to the radius of the data.
            sigma = self.sum_scale / l2_sensitivity(self.bounds)
        else:
            # The paper's sigma is that of the noise itself, where an attribute fills [-1, 1].
            sigma = math.sqrt(2) * self.sum_scale / max(self.bounds)
        return math.floor(LOW_NOISE_FACTOR * math.sqrt(len(self.bounds)) * sigma)

    @property
    def event(self) -> ComposedEvent:
        """One count release per level, then the leaf sums."""
        level = LaplaceEvent(noise_multiplier=self.count_scale, single_count=True)
        levels = (level,) * (self.depth + 1)
        if self.delta is not None:
            gaussian = gaussian_event(
                self.sum_scale,
                sensitivity=l2_sensitivity(self.bounds),
                coordinates=len(self.bounds),
                delta=self.delta,
            )
            return ComposedEvent(parts=(*levels, gaussian))
        laplace = LaplaceEvent(noise_multiplier=self.sum_scale / sum(self.bounds))
        return ComposedEvent(parts=(*levels, laplace))

    def noise_lines(self, users: int) -> Iterator[NoiseLine]:
        """Yield the noise of a release; see `LocalLaw`."""
        yield "each count of the tree", LAPLACE * self.count_scale, "users"
        of_sums = LAPLACE if self.sums == "laplace" else 1.0
        yield "each coordinate of a leaf's sum", of_sums * self.sum_scale / GRID_UNITS, "box"


@dataclass(frozen=True, kw_only=True)
class DplsfLaw:
    """Noisy means of the leaves of a hash tree, clustered; Gaussian counts and sums.

    Guarantee: for adding or removing one row, mu-Gaussian privacy. A row is in one node per level,
    so a level's counts have L2 sensitivity 1 and all `depth` + 1 levels together take
    (1 - sum_share) mu^2; a row is in at most one leaf, so the sums have L2 sensitivity
    sqrt(sum(bounds^2)) and take sum_share mu^2.

    Attributes:
        n_clusters: Number of centres, k'.
        bounds: Largest grid integer of each column.
        mu: Cost of one release.
        depth: Number of hash bits, and of levels below the root.
        sum_share: Share of mu^2 for the leaf sums; 0.5 and 0.7 measured the same, 0.3 and 0.85
            worse (docs/local-clustering.md).
    """

    TAG: ClassVar[str] = "GaussianTree"

    n_clusters: int
    bounds: tuple[int, ...]
    mu: float
    depth: int = 20
    sum_share: float = 0.5

    def __post_init__(self) -> None:
        check_public(n_clusters=self.n_clusters, bounds=self.bounds)
        _validate.positive(mu=self.mu)
        _validate.at_least(1, depth=self.depth)
        _validate.open_unit(sum_share=self.sum_share)
        check_hash_range(self.bounds)

    @property
    def count_scale(self) -> int:
        """Scale of the Gaussian noise on every node's count, in 1/COUNT_UNITS of a row."""
        per_level = self.mu * math.sqrt((1 - self.sum_share) / (self.depth + 1))
        return mu_scale(COUNT_UNITS, mu=per_level)

    @property
    def sum_scale(self) -> int:
        """Scale of the noise on every coordinate of a leaf's sum, in grid units."""
        return mu_scale(l2_sensitivity(self.bounds), mu=self.mu * math.sqrt(self.sum_share))

    @property
    def low_noise_points(self) -> int:
        """Number of rows in a leaf above which the noise on its mean is small."""
        sigma = self.sum_scale / l2_sensitivity(self.bounds)
        return math.floor(LOW_NOISE_FACTOR * math.sqrt(len(self.bounds)) * sigma)

    @property
    def event(self) -> ComposedEvent:
        """One count release per level, then the leaf sums."""
        level = gaussian_event(self.count_scale, sensitivity=COUNT_UNITS, coordinates=1)
        sums = gaussian_event(
            self.sum_scale,
            sensitivity=l2_sensitivity(self.bounds),
            coordinates=len(self.bounds),
        )
        return ComposedEvent(parts=(*(level,) * (self.depth + 1), sums))

    def noise_lines(self, users: int) -> Iterator[NoiseLine]:
        """Yield the noise of a release; see `LocalLaw`."""
        yield "each count of the tree", self.count_scale / COUNT_UNITS, "users"
        yield "each coordinate of a leaf's sum", self.sum_scale / GRID_UNITS, "box"


def check_hash_range(bounds: tuple[int, ...]) -> None:
    """Check that hashes of rows inside these bounds are exact in 64 bits."""
    if sum(bounds) >= _MAX_L1:
        raise ParameterError(f"bounds must add up to less than 2^38, got {sum(bounds)}")


METHOD = LocalMethod(facts=DPLSF, tight=DplsfLaw, published=DplsfPaperLaw)
