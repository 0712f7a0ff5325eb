"""Plain k-means at a party: no privacy, for baselines (the paper, section 3.2)."""

import numpy as np

from splitmeans._types import IntArray
from splitmeans.kmeans.weighted_kmeans import weighted_kmeans
from splitmeans.local.law import to_grid
from splitmeans.local.laws.plain import PlainKMeansLaw
from splitmeans.local.rows import LocalRelease, clip_rows
from splitmeans.privacy.noise import NoiseSource
from splitmeans.table.walk.interface import RawRows


class PlainKMeans(PlainKMeansLaw):
    """Exact k-means centres of the rows: no privacy at all."""

    def release(
        self, raw_rows: IntArray | RawRows, *, noise: NoiseSource, rng: np.random.Generator
    ) -> LocalRelease:
        """Return the centres, shape (k', d); `noise` is not used."""
        rows = clip_rows(raw_rows, self.bounds).astype(np.float64)
        centres = weighted_kmeans(rows, np.ones(len(rows)), n_clusters=self.n_clusters, rng=rng)
        return LocalRelease.of_centres(to_grid(centres, self.bounds))
