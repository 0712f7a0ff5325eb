"""DPLSF under tight accounting: the hash tree of `dplsf_paper.py` with Gaussian noise alone."""

import numpy as np

from splitmeans._types import IntArray
from splitmeans.kmeans.weighted_kmeans import weighted_kmeans
from splitmeans.local.dplsf_paper import (
    Leaf,
    exact_sums,
    grow,
    leaf_means,
    random_normals,
    sim_hash,
)
from splitmeans.local.law import to_grid
from splitmeans.local.laws.dplsf import DplsfLaw
from splitmeans.local.rows import LocalRelease, clip_rows
from splitmeans.privacy.noise import NoiseSource
from splitmeans.table.walk.interface import RawRows


class Dplsf(DplsfLaw):
    """Noisy means of the leaves of a hash tree, clustered; for what they cost see the law."""

    def release(
        self, raw_rows: IntArray | RawRows, *, noise: NoiseSource, rng: np.random.Generator
    ) -> LocalRelease:
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
        return LocalRelease.of_centres(to_grid(centres, self.bounds))

    def leaf_sums(self, raw_rows: IntArray, leaves: list[Leaf], *, noise: NoiseSource) -> IntArray:
        """Return the noisy sums of leaves' rows, shape (leaves, d); see `DplsfPaper.leaf_sums`."""
        raw_sums = exact_sums(raw_rows, leaves)
        return raw_sums + noise.gaussian(self.sum_scale, raw_sums.size).reshape(raw_sums.shape)
