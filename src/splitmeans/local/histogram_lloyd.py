"""Histogram-Lloyd: starting points from a noisy histogram, then Lloyd's steps with a radius.

The default under tight accounting. The first form of this algorithm started from a hash tree
and was called "tree-lloyd", which studies may still say. A histogram over cells that fit the
columns (`cells.py`) starts better on average and by far on real tables; the hash tree is a little
better only for a few far-apart round clusters in 4 to 8 columns (docs/local-clustering.md).
"""

import numpy as np

from splitmeans._types import FloatArray, IntArray
from splitmeans.kmeans.weighted_kmeans import weighted_kmeans
from splitmeans.local.cells import CellHistogram, Cells
from splitmeans.local.laws.histogram_lloyd import HistogramLloydLaw
from splitmeans.local.radius_lloyd import RadiusLloyd
from splitmeans.privacy.noise import NoiseSource
from splitmeans.table.walk.interface import RawRows


class HistogramLloyd(HistogramLloydLaw):
    """A cell histogram for the start, Lloyd's steps with a radius for the rest."""

    @property
    def start(self) -> CellHistogram:
        """The first part."""
        law = super().start
        return CellHistogram(bounds=law.bounds, mu=law.mu, min_cells=law.min_cells)

    @property
    def lloyd(self) -> RadiusLloyd:
        """The second part."""
        law = super().lloyd
        return RadiusLloyd(bounds=law.bounds, mu=law.mu, steps=law.steps)

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
