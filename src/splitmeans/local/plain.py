"""Plain k-means at a party: no privacy, for baselines (the paper, section 3.2)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from splitmeans._types import IntArray
from splitmeans.engine.walk import RawRows
from splitmeans.grid.weighted_kmeans import weighted_kmeans
from splitmeans.local.mechanism import check_public, clip_rows, to_grid
from splitmeans.privacy.events import NonPrivateEvent
from splitmeans.privacy.noise import NoiseSource


@dataclass(frozen=True, kw_only=True)
class PlainKMeans:
    """Exact k-means centres of the rows.

    Guarantee: none. The centres are released as they are.
    """

    TAG: ClassVar[str] = "PlainKMeans"

    n_clusters: int
    bounds: tuple[int, ...]

    def __post_init__(self) -> None:
        check_public(n_clusters=self.n_clusters, bounds=self.bounds)

    @property
    def event(self) -> NonPrivateEvent:
        """A release without protection."""
        return NonPrivateEvent(reason="local centres are computed without noise")

    def release(
        self, raw_rows: IntArray | RawRows, *, noise: NoiseSource, rng: np.random.Generator
    ) -> IntArray:
        """Return the centres, shape (k', d); `noise` is not used."""
        rows = clip_rows(raw_rows, self.bounds).astype(np.float64)
        centres = weighted_kmeans(rows, np.ones(len(rows)), n_clusters=self.n_clusters, rng=rng)
        return to_grid(centres, self.bounds)
