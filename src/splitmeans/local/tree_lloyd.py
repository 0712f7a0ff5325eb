"""Tree-Lloyd: starting points from a noisy histogram, then Lloyd's steps with a radius.

The default under tight accounting. The first form of this algorithm started from a hash tree and
gave it its name. A histogram over cells that fit the columns (`cells.py`) starts better on average
and by far on real tables; the hash tree is a little better only for a few far-apart round clusters
in 4 to 8 columns (docs/local-clustering.md).
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from splitmeans import _validate
from splitmeans._types import FloatArray, IntArray
from splitmeans.engine.walk import RawRows
from splitmeans.grid.weighted_kmeans import weighted_kmeans
from splitmeans.local.cells import CellHistogram, Cells
from splitmeans.local.mechanism import check_public
from splitmeans.local.radius_lloyd import RadiusLloyd
from splitmeans.privacy.events import ComposedEvent
from splitmeans.privacy.noise import NoiseSource

# Share of mu^2 for the histogram, by measurement (docs/local-clustering.md).
START_SHARE = 0.4


@dataclass(frozen=True, kw_only=True)
class TreeLloyd:
    """A cell histogram for the start, Lloyd's steps with a radius for the rest.

    Guarantee: for adding or removing one row, mu-Gaussian privacy: `start_share` of mu^2 for the
    histogram, the rest for the steps; see `CellHistogram` and `RadiusLloyd`.

    Attributes:
        n_clusters: Number of centres, k'.
        bounds: Largest grid integer of each column.
        mu: Cost of one release.
        steps: Number of Lloyd's steps.
        start_share: Share of mu^2 for the histogram.
    """

    TAG: ClassVar[str] = "TreeLloyd"

    n_clusters: int
    bounds: tuple[int, ...]
    mu: float
    steps: int = 4
    start_share: float = START_SHARE

    def __post_init__(self) -> None:
        check_public(n_clusters=self.n_clusters, bounds=self.bounds)
        _validate.positive(mu=self.mu)
        _validate.at_least(1, steps=self.steps)
        _validate.open_unit(start_share=self.start_share)

    @property
    def start(self) -> CellHistogram:
        """The first part."""
        return CellHistogram(
            bounds=self.bounds,
            mu=self.mu * math.sqrt(self.start_share),
            min_cells=2 * self.n_clusters,
        )

    @property
    def lloyd(self) -> RadiusLloyd:
        """The second part."""
        mu = self.mu * math.sqrt(1 - self.start_share)
        return RadiusLloyd(bounds=self.bounds, mu=mu, steps=self.steps)

    @property
    def event(self) -> ComposedEvent:
        """The histogram's releases, then the steps."""
        return ComposedEvent(parts=(*self.start.event.parts, *self.lloyd.event.parts))

    def release(
        self, raw_rows: IntArray | RawRows, *, noise: NoiseSource, rng: np.random.Generator
    ) -> IntArray:
        """Return the centres, shape (k', d); see `LocalClustering`."""
        cells = self.start.release(raw_rows, noise=noise)
        centres, spreads = starting_points(cells, n_clusters=self.n_clusters, rng=rng)
        return self.lloyd.release(raw_rows, centres=centres, spreads=spreads, noise=noise)


def starting_points(
    cells: Cells, *, n_clusters: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Cluster the cells; return centres, shape (k', d), and mean squared distances, shape (k',)."""
    weights = cells.weights
    if np.count_nonzero(weights) <= n_clusters:
        # Too few cells stand out for a clustering: take the most likely others along.
        weights = np.zeros(len(cells.weights))
        likely = np.argsort(-cells.noisy_counts, kind="stable")[: 2 * n_clusters]
        weights[likely] = np.maximum(cells.noisy_counts[likely], 1.0)
    centres = weighted_kmeans(cells.points, weights, n_clusters=n_clusters, rng=rng)
    squares = ((cells.points[:, np.newaxis] - centres[np.newaxis]) ** 2).sum(axis=2)
    nearest = squares.argmin(axis=1)
    errors = squares[np.arange(len(nearest)), nearest] + cells.spreads
    totals = np.bincount(nearest, weights=weights, minlength=n_clusters)
    spreads = np.bincount(nearest, weights=weights * errors, minlength=n_clusters)
    # A centre without weight (one of several equal ones) gets the average.
    average = spreads.sum() / max(totals.sum(), 1e-9)
    return centres, np.where(totals > 0, spreads / np.maximum(totals, 1e-9), average)
