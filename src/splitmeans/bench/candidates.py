"""Local clustering candidates of the shoot-out, all as functions with the same arguments.

`tree-lloyd`, `dplsf` and `dplloyd` are the library's. The other three exist for comparison only:
`radius-lloyd` (Lloyd's steps with a radius, started without looking at data), `grid` (the cell
histogram alone, clustered) and `evolution` (candidate points that multiply where noisy votes say
so, histograms only, after the idea of private evolution).
"""

import math
from typing import Protocol

import numpy as np

from splitmeans._types import FloatArray, IntArray
from splitmeans.grid.weighted_kmeans import weighted_kmeans
from splitmeans.kernels.assign import nearest
from splitmeans.local.cells import CellHistogram
from splitmeans.local.lloyd import pack_spheres
from splitmeans.local.mechanism import (
    COUNT_UNITS,
    gaussian_counts,
    l2_sensitivity,
    mu_scale,
    to_grid,
)
from splitmeans.local.mechanisms import make_local
from splitmeans.local.radius_lloyd import RadiusLloyd
from splitmeans.local.rows import clip_rows
from splitmeans.local.tree_lloyd import starting_points
from splitmeans.privacy.noise import NoiseSource

# Evolution: generations, and candidates per centre wanted.
GENERATIONS = 6
CANDIDATES_PER_CENTRE = 8


class Candidate(Protocol):
    """A private local clustering of cost mu."""

    def __call__(
        self,
        raw_rows: IntArray,
        bounds: tuple[int, ...],
        /,
        *,
        n_clusters: int,
        mu: float,
        noise: NoiseSource,
        rng: np.random.Generator,
    ) -> IntArray:
        """Return centres on the grid, shape (k', d)."""
        ...


def _library(method: str) -> Candidate:
    def cluster(
        raw_rows: IntArray,
        bounds: tuple[int, ...],
        /,
        *,
        n_clusters: int,
        mu: float,
        noise: NoiseSource,
        rng: np.random.Generator,
    ) -> IntArray:
        mechanism = make_local(method, n_clusters=n_clusters, bounds=bounds, mu=mu)
        return mechanism.release(raw_rows, noise=noise, rng=rng)

    return cluster


def radius_lloyd(
    raw_rows: IntArray,
    bounds: tuple[int, ...],
    /,
    *,
    n_clusters: int,
    mu: float,
    noise: NoiseSource,
    rng: np.random.Generator,
) -> IntArray:
    """Start from packed spheres, which know nothing of the data, and take five steps."""
    start = pack_spheres(n_clusters, bounds, rng=rng)
    spreads = np.full(n_clusters, float(l2_sensitivity(bounds)) ** 2 / 4)
    steps = RadiusLloyd(bounds=bounds, mu=mu, steps=5)
    return steps.release(raw_rows, centres=start, spreads=spreads, noise=noise)


def grid(
    raw_rows: IntArray,
    bounds: tuple[int, ...],
    /,
    *,
    n_clusters: int,
    mu: float,
    noise: NoiseSource,
    rng: np.random.Generator,
) -> IntArray:
    """Spend everything on the cell histogram and cluster it."""
    cells = CellHistogram(bounds=bounds, mu=mu, min_cells=2 * n_clusters)
    released = cells.release(raw_rows, noise=noise)
    return to_grid(starting_points(released, n_clusters=n_clusters, rng=rng)[0], bounds)


def evolution(
    raw_rows: IntArray,
    bounds: tuple[int, ...],
    /,
    *,
    n_clusters: int,
    mu: float,
    noise: NoiseSource,
    rng: np.random.Generator,
) -> IntArray:
    """Let candidates that rows vote for have offspring ever closer to them; cluster the last.

    A generation is one histogram of sensitivity 1: a row votes for its nearest candidate.
    """
    rows = clip_rows(raw_rows, bounds)
    limits = np.array(bounds, dtype=np.float64)
    scale = mu_scale(COUNT_UNITS, mu=mu / math.sqrt(GENERATIONS))
    size = CANDIDATES_PER_CENTRE * n_clusters
    candidates = to_grid(rng.uniform(-limits, limits, (size, len(bounds))), bounds)
    for generation in range(1, GENERATIONS + 1):
        raw_votes = np.bincount(nearest(rows, candidates), minlength=size)
        noisy_votes = gaussian_counts(raw_votes, scale=scale, noise=noise)
        weights = _thresholded(noisy_votes, deviation=scale / COUNT_UNITS)
        if generation < GENERATIONS:
            parents = rng.choice(size, size=size, p=weights / weights.sum())
            step = limits * 2.0 ** -(generation - 1) / 2
            offspring = candidates[parents] + rng.uniform(-1, 1, candidates.shape) * step
            # The first child of a parent is the parent itself, so that nothing found is lost.
            kept, first = np.unique(parents, return_index=True)
            offspring[first] = candidates[kept]
            candidates = to_grid(offspring, bounds)
    centres = weighted_kmeans(
        candidates.astype(np.float64), weights, n_clusters=n_clusters, rng=rng
    )
    return to_grid(centres, bounds)


def _thresholded(noisy_votes: FloatArray, *, deviation: float) -> FloatArray:
    kept = np.where(noisy_votes > 2 * deviation, noisy_votes, 0.0)
    return kept if kept.any() else np.ones(len(noisy_votes))


CANDIDATES: dict[str, Candidate] = {
    "tree-lloyd": _library("tree-lloyd"),
    "dplsf": _library("dplsf"),
    "dplloyd": _library("dplloyd"),
    "radius-lloyd": radius_lloyd,
    "grid": grid,
    "evolution": evolution,
}
