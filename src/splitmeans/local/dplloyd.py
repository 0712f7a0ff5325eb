"""DPLloyd: Lloyd's iterations with noisy counts and sums (the paper, section 3.5).

After Su, Cao, Li, Bertino and Jin, "Differentially Private K-Means Clustering" (CODASPY 2016):
initial centres are spread over the box without looking at data, and their error analysis gives the
number of iterations and how an iteration's budget is divided. They take the number of rows as
public; here it is private, so a small share of the budget releases a noisy one first.
"""

import math
from functools import partial

import numpy as np

from splitmeans._types import FloatArray, IntArray
from splitmeans.kernels.assign import nearest_sums
from splitmeans.local.law import to_grid
from splitmeans.local.laws.dplloyd import DpLloydLaw
from splitmeans.local.rows import LocalRelease, clip_rows
from splitmeans.privacy.noise import NoiseSource
from splitmeans.table.walk.interface import RawRows
from splitmeans.table.walk.memory import as_rows

# Sphere packing: a radius is too large when this many random points in a row do not fit.
PACKING_TRIES = 100
PACKING_HALVINGS = 20


class DpLloyd(DpLloydLaw):
    """Lloyd's algorithm on noisy counts and sums; for what it costs see the law."""

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
    ) -> LocalRelease:
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
        return LocalRelease.of_centres(centres)


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
