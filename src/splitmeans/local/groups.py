"""Whether a party's synthetic points lie in groups, or fill space without gaps.

Groups are told by comparing the points with others that have the same columns and the same
correlation of normal scores, but no groups (a Gaussian copula): many clusters explain points in
groups far better (the gap statistic of Tibshirani, Walther and Hastie, 2001, with a reference that
keeps dependence). Released points are all that it looks at.
"""

import math

import numpy as np

from splitmeans._types import FloatArray, IntArray
from splitmeans.kmeans.nearest import nearest_centres
from splitmeans.kmeans.weighted_kmeans import weighted_kmeans
from splitmeans.local.survey import normal_scores
from splitmeans.study.coding import Coding

# Logarithm of the ratio of losses from which on points are taken to lie in groups. Measured at each
# party's columns: 0.12 to 1.4 on mixed Gaussian data, 0.02 to 0.19 where there are no gaps (heavy
# tails, uneven clusters).
_IN_GROUPS = 0.25
# Points that are looked at.
_POINTS = 4096


def lie_in_groups(
    points: IntArray, *, coding: Coding, n_clusters: int, rng: np.random.Generator
) -> bool:
    """Return whether so many clusters explain points, shape (n, d), far better than chance would.

    Args:
        points: Features of points that stand for equally many rows, on the grid.
        coding: How rows are coded.
        n_clusters: Number of clusters.
        rng: Draws the points without groups, and starts k-means.
    """
    codes = coding.codes(points[:_POINTS])
    if codes.shape[1] < 2:
        return False
    without = coding.features(_without_groups(codes, rng=rng))
    found, by_chance = (
        _loss(own.astype(np.float64), coding, n_clusters=n_clusters, rng=rng)
        for own in (points[:_POINTS], without)
    )
    return by_chance > 0 and (found <= 0 or math.log(by_chance / found) >= _IN_GROUPS)


def _without_groups(codes: IntArray, *, rng: np.random.Generator) -> IntArray:
    """Return rows of codes with the same columns, whose normal scores are normal together."""
    n, c = codes.shape
    # Equal values in an order by chance.
    order = np.argsort(codes + rng.random(codes.shape), axis=0)
    shares = (np.arange(n) + 0.5) / n
    scores = np.empty(codes.shape)
    np.put_along_axis(scores, order, np.repeat(normal_scores(shares)[:, np.newaxis], c, axis=1), 0)
    correlation = np.corrcoef(scores.T) + 1e-9 * np.eye(c)
    drawn = rng.standard_normal(codes.shape) @ np.linalg.cholesky(correlation).T
    ranks = np.argsort(np.argsort(drawn, axis=0), axis=0)
    return np.take_along_axis(np.sort(codes, axis=0), ranks, axis=0)


def _loss(
    points: FloatArray, coding: Coding, *, n_clusters: int, rng: np.random.Generator
) -> float:
    """Return the mean squared distance of points to the nearest of so many centres."""
    centres = weighted_kmeans(
        points,
        np.ones(len(points)),
        n_clusters=n_clusters,
        rng=rng,
        starts=1,
    )
    return float(np.square(points - centres[nearest_centres(points, centres)]).sum(axis=1).mean())
