"""DPLSF under tight accounting: the hash tree of `lsh_tree.py` with Gaussian noise throughout."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from splitmeans import _validate
from splitmeans._types import IntArray
from splitmeans.engine.walk import RawRows
from splitmeans.grid.weighted_kmeans import weighted_kmeans
from splitmeans.local.lsh_tree import (
    LOW_NOISE_FACTOR,
    Leaf,
    check_hash_range,
    exact_sums,
    grow,
    leaf_means,
    random_normals,
    sim_hash,
)
from splitmeans.local.mechanism import (
    COUNT_UNITS,
    check_public,
    clip_rows,
    gaussian_event,
    l2_sensitivity,
    mu_scale,
    to_grid,
)
from splitmeans.privacy.events import ComposedEvent
from splitmeans.privacy.noise import NoiseSource


@dataclass(frozen=True, kw_only=True)
class GaussianTree:
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

    def release(
        self, raw_rows: IntArray | RawRows, *, noise: NoiseSource, rng: np.random.Generator
    ) -> IntArray:
        """Return the centres, shape (k', d); see `LocalClustering`."""
        rows = clip_rows(raw_rows, self.bounds)
        leaves = grow(
            sim_hash(rows, random_normals(self.depth, self.bounds, rng=rng)),
            count_scale=self.count_scale,
            low_noise_points=self.low_noise_points,
            n_clusters=self.n_clusters,
            noise=noise,
            law="gaussian",
        )
        noisy_sums = self.leaf_sums(rows, leaves, noise=noise)
        noisy_means, noisy_counts = leaf_means(leaves, noisy_sums, bounds=self.bounds)
        centres = weighted_kmeans(noisy_means, noisy_counts, n_clusters=self.n_clusters, rng=rng)
        return to_grid(centres, self.bounds)

    def leaf_sums(self, raw_rows: IntArray, leaves: list[Leaf], *, noise: NoiseSource) -> IntArray:
        """Return the noisy sum of each leaf's rows, shape (leaves, d); see `LshTree.leaf_sums`."""
        raw_sums = exact_sums(raw_rows, leaves)
        return raw_sums + noise.gaussian(self.sum_scale, raw_sums.size).reshape(raw_sums.shape)
