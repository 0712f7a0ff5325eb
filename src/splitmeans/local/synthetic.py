"""Synthetic points of a party, from its survey: post-processing, no row is looked at.

Points are drawn from a Gaussian copula: normal scores with the released correlation, brought to
each column's released histogram. Where cells were counted the points are weighted to them.
"""

import numpy as np

from splitmeans._types import FloatArray
from splitmeans.kmeans.simplex import project_to_simplex
from splitmeans.local.survey import CellCounts, Survey, cells_of, normal_scores

# Directions in which noise leaves less variance than this get it.
_LEAST_VARIANCE = 0.02


def draw_points(
    survey: Survey, *, bounds: tuple[int, ...], n_points: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Return points in grid units, shape (n_points, d), and their weights, shape (n_points,).

    The weights add up to the number of rows.
    """
    d, n_bins = survey.shares.shape
    factor = np.linalg.cholesky(_correlation(survey))
    scores = rng.standard_normal((n_points, d)) @ factor.T
    places = np.empty((n_points, d))  # in bins
    edges = np.concatenate([np.zeros((d, 1)), np.cumsum(survey.shares, axis=1)], axis=1)
    for column in range(d):
        # Bins without rows have edges at one place; a hair's breadth keeps them in order.
        at = normal_scores(edges[column]) + np.arange(n_bins + 1) * 1e-9
        places[:, column] = np.interp(scores[:, column], at, np.arange(n_bins + 1.0))
    weights = np.full(n_points, survey.size / n_points)
    if survey.cells is not None:
        weights = _weighted_to_cells(places, weights, survey.cells, size=survey.size)
    return (places / n_bins * 2 - 1) * np.array(bounds), weights


def _correlation(survey: Survey) -> FloatArray:
    """Return a valid correlation matrix: noisy entries shrunk by how much of them is noise."""
    d = len(survey.correlation)
    off_diagonal = ~np.eye(d, dtype=bool)
    if d == 1:
        return np.eye(1)
    noise = np.square(survey.correlation_deviation)
    surplus = np.square(survey.correlation) - noise
    signal = max(float(surplus[off_diagonal].mean()), 1e-9)
    shrunk = np.where(off_diagonal, survey.correlation * signal / (signal + noise), 1.0)
    values, vectors = np.linalg.eigh(np.clip(shrunk, -1.0, 1.0))
    mended = (vectors * np.maximum(values, _LEAST_VARIANCE)) @ vectors.T
    scale = np.sqrt(np.diag(mended))
    return np.asarray(mended / np.outer(scale, scale) + 1e-9 * np.eye(d))


def _weighted_to_cells(
    places: FloatArray, weights: FloatArray, cells: CellCounts, *, size: float
) -> FloatArray:
    """Weight the points of each cell to its count, as far as that is more than noise."""
    n_bins = len(cells.columns[0].interval_of_bin)
    bins = np.clip(places.astype(np.int64), 0, n_bins - 1)
    cell = cells_of(bins, cells.columns)
    before = np.bincount(cell, weights=weights, minlength=len(cells.noisy_counts))
    off = cells.noisy_counts - before
    signal = max(float(np.mean(np.square(off))) - cells.deviation**2, 0.0)
    gain = signal / (signal + cells.deviation**2)
    after = project_to_simplex(before + gain * off, total=size)
    # What the points cannot say, because none is in the cell, is left to the rounds.
    factors = np.divide(after, before, out=np.zeros_like(after), where=before > 0)
    weighted = weights * factors[cell]
    return np.asarray(weighted * (size / max(float(weighted.sum()), 1e-9)))
