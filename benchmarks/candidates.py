"""Local clustering candidates of the shoot-out, all as functions of the same things.

`guided-lloyd` is the protocol's, `dplsf` and `dplloyd` are the paper's as published, with all of
their epsilon pure. The other two are for comparison only: `survey` (guided-lloyd without its
rounds: synthetic points alone, clustered) and `evolution` (candidate points that multiply where
noisy votes say so, histograms only, after the idea of private evolution).
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from splitmeans._types import FloatArray, IntArray
from splitmeans.kernels.assign import nearest
from splitmeans.kmeans.weighted_kmeans import weighted_kmeans
from splitmeans.local.guided_lloyd import GuidedLloyd
from splitmeans.local.law import COUNT_UNITS, gaussian_counts, mu_scale, to_grid
from splitmeans.local.survey import ColumnSurvey
from splitmeans.local.synthetic import draw_points
from splitmeans.paper.dplloyd import dplloyd
from splitmeans.paper.dplsf import dplsf
from splitmeans.privacy.noise import NoiseSource
from splitmeans.study.features import GRID_UNITS
from splitmeans.study.methods import N_POINTS

# Evolution: generations, and candidates per centre wanted.
GENERATIONS = 6
CANDIDATES_PER_CENTRE = 8


@dataclass(frozen=True, kw_only=True, eq=False)
class Given:
    """What a candidate gets: rows on the grid with their bounds, k', its cost, and chance.

    `mu` is that of a Gaussian release which costs `epsilon` at the delta of the comparison.
    """

    raw_rows: IntArray
    bounds: tuple[int, ...]
    n_clusters: int
    epsilon: float
    mu: float
    noise: NoiseSource
    rng: np.random.Generator


# Returns centres on the grid, shape (k', d).
Candidate = Callable[[Given], IntArray]


def _guided_lloyd(given: Given) -> IntArray:
    mechanism = GuidedLloyd(n_clusters=given.n_clusters, bounds=given.bounds, mu=given.mu)
    return mechanism.release(given.raw_rows, noise=given.noise, rng=given.rng).centres


def _published(given: Given, *, algorithm: Callable[..., FloatArray]) -> IntArray:
    centres = algorithm(
        given.raw_rows / GRID_UNITS,
        given.n_clusters,
        epsilon=given.epsilon,
        noise=given.noise,
        rng=given.rng,
    )
    return to_grid(centres * GRID_UNITS, given.bounds)


def _survey(given: Given) -> IntArray:
    """Spend everything on the survey and cluster the points drawn from it."""
    survey = ColumnSurvey(bounds=given.bounds, mu=given.mu)
    found = survey.release(given.raw_rows, noise=given.noise)
    points = draw_points(found, bounds=given.bounds, n_points=N_POINTS, rng=given.rng)
    weights = np.ones(len(points))
    centres = weighted_kmeans(points, weights, n_clusters=given.n_clusters, rng=given.rng)
    return to_grid(centres, given.bounds)


def _evolution(given: Given) -> IntArray:
    """Let candidates that rows vote for have offspring ever closer to them; cluster the last.

    A generation is one histogram of sensitivity 1: a row votes for its nearest candidate.
    """
    bounds, rng = given.bounds, given.rng
    rows = given.raw_rows
    limits = np.array(bounds, dtype=np.float64)
    scale = mu_scale(COUNT_UNITS, mu=given.mu / math.sqrt(GENERATIONS))
    size = CANDIDATES_PER_CENTRE * given.n_clusters
    candidates = to_grid(rng.uniform(-limits, limits, (size, len(bounds))), bounds)
    for generation in range(1, GENERATIONS + 1):
        raw_votes = np.bincount(nearest(rows, candidates), minlength=size)
        noisy_votes = gaussian_counts(raw_votes, scale=scale, noise=given.noise)
        weights = _thresholded(noisy_votes, deviation=scale / COUNT_UNITS)
        if generation < GENERATIONS:
            parents = rng.choice(size, size=size, p=weights / weights.sum())
            step = limits * 2.0 ** -(generation - 1) / 2
            offspring = candidates[parents] + rng.uniform(-1, 1, candidates.shape) * step
            # The first child of a parent is the parent itself, so that nothing found is lost.
            kept, first = np.unique(parents, return_index=True)
            offspring[first] = candidates[kept]
            candidates = to_grid(offspring, bounds)
    points = candidates.astype(np.float64)
    return to_grid(weighted_kmeans(points, weights, n_clusters=given.n_clusters, rng=rng), bounds)


def _thresholded(noisy_votes: FloatArray, *, deviation: float) -> FloatArray:
    kept = np.where(noisy_votes > 2 * deviation, noisy_votes, 0.0)
    return kept if kept.any() else np.ones(len(noisy_votes))


CANDIDATES: dict[str, Candidate] = {
    "guided-lloyd": _guided_lloyd,
    "dplsf": functools.partial(_published, algorithm=dplsf),
    "dplloyd": functools.partial(_published, algorithm=dplloyd),
    "survey": _survey,
    "evolution": _evolution,
}
