"""Synthetic points of a party, from its survey: post-processing, no row is looked at.

Points are drawn from a Gaussian copula: normal scores with the released correlation, brought to
each column's released histogram. How many lie in which cell follows the released cells as far as
these are more than noise; within a cell scores are drawn one column after the other, each between
the edges of the cell, given those before.
"""

import math

import numpy as np

from splitmeans._types import FloatArray, IntArray
from splitmeans.kmeans.draws import draw_evenly
from splitmeans.local.survey import CellCounts, Survey, cells_of, normal_scores
from splitmeans.shrinkage import shrinkage

# Directions in which noise leaves less variance than this get it.
_LEAST_VARIANCE = 0.02

# A cell with more than this many deviations of its noise has rows.
_STANDING_OUT = 2.5

# Normal scores beyond this do not occur; between, shares are looked up in a table.
_OUTER_SCORE = 8.0
_TABLE = np.linspace(-_OUTER_SCORE, _OUTER_SCORE, 4001)
_SHARES = np.array([(1 + math.erf(score / math.sqrt(2))) / 2 for score in _TABLE])


def draw_points(
    survey: Survey, *, bounds: tuple[int, ...], n_points: int, rng: np.random.Generator
) -> FloatArray:
    """Return features of points in grid units, shape (n_points, d), each for equally many rows.

    Every point has one level of each column of levels.
    """
    correlation = _correlation(survey)
    c = len(correlation)
    factor = np.asarray(np.linalg.cholesky(correlation).T, dtype=np.float64)
    scores = rng.standard_normal((n_points, c)) @ factor
    edges = [np.concatenate([[0.0], np.cumsum(own)]) for own in survey.shares]
    places = _places(scores, edges)
    if survey.cells is not None:
        cut = [len(column.points) > 1 for column in survey.cells.columns]
        complete = survey.size * float(np.prod(survey.present[cut]))
        wanted = _believed_cells(places, survey.cells, size=complete)
        cells = draw_evenly(wanted, n_points, rng=rng)
        scores = _scores_in_cells(cells, survey.cells, edges, correlation, rng=rng)
        places = _places(scores, edges)
    return _features(places, survey, bounds=bounds)


def _features(places: FloatArray, survey: Survey, *, bounds: tuple[int, ...]) -> FloatArray:
    """Return the features of points at these places of each column, shape (n, d)."""
    columns = []
    first = 0
    for own, shares, order in zip(places.T, survey.shares, survey.orders, strict=True):
        n_bins = len(shares)
        if order is None:
            columns.append(((own / n_bins * 2 - 1) * bounds[first])[:, np.newaxis])
            first += 1
            continue
        level = order[np.minimum(own.astype(np.int64), n_bins - 1)]
        chosen = level[:, np.newaxis] == np.arange(n_bins)
        columns.append(np.where(chosen, float(bounds[first]), -float(bounds[first])))
        first += n_bins
    return np.concatenate(columns, axis=1)


def _places(scores: FloatArray, edges: list[FloatArray]) -> FloatArray:
    """Return where scores are in each column's histogram, in bins, shape (n, c).

    Args:
        scores: Shape (n, c).
        edges: For each column the share of the rows below each edge of a bin.
    """
    columns = []
    for own, below in zip(scores.T, edges, strict=True):
        n_edges = len(below)
        # Bins without rows have edges at one place; a hair's breadth keeps them in order.
        at = normal_scores(below) + np.arange(n_edges) * 1e-9
        columns.append(np.interp(own, at, np.arange(float(n_edges))))
    return np.stack(columns, axis=1)


def _correlation(survey: Survey) -> FloatArray:
    """Return a valid correlation matrix: noisy entries shrunk by how much of them is noise."""
    d = len(survey.correlation)
    off_diagonal = ~np.eye(d, dtype=bool)
    if d == 1:
        return np.eye(1)
    shrunk = np.eye(d)
    noisy = survey.correlation[off_diagonal]
    deviations = np.broadcast_to(survey.correlation_deviation, (d, d))[off_diagonal]
    shrunk[off_diagonal] = noisy * shrinkage(noisy, deviations)
    values, vectors = np.linalg.eigh(np.clip(shrunk, -1.0, 1.0))
    mended = (vectors * np.maximum(values, _LEAST_VARIANCE)) @ vectors.T
    scale = np.sqrt(np.diag(mended))
    return np.asarray(mended / np.outer(scale, scale) + 1e-9 * np.eye(d))


def _believed_cells(places: FloatArray, cells: CellCounts, *, size: float) -> FloatArray:
    """Return the rows of each cell, between the counts and what the copula makes of the columns."""
    last_bins = [len(column.interval_of_bin) - 1 for column in cells.columns]
    bins = np.clip(places.astype(np.int64), 0, last_bins)
    found = cells_of(bins, cells.columns)
    expected = np.bincount(found, minlength=len(cells.noisy_counts)) * (size / len(places))
    # Cells that stand out have the rows that were counted; the others share what is left as the
    # columns say. Where clusters are apart from each other nothing is left, and points between
    # them, which the columns alone would allow, are not made.
    counted = np.where(
        cells.noisy_counts > _STANDING_OUT * cells.deviation, cells.noisy_counts, 0.0
    )
    rest = np.where(counted > 0, 0.0, expected)
    left = max(size - float(counted.sum()), 0.0)
    if rest.sum() > 0:
        counted += rest * (left / float(rest.sum()))
    return np.asarray(counted if counted.sum() > 0 else expected)


def _scores_in_cells(
    cells: IntArray,
    counts: CellCounts,
    edges: list[FloatArray],
    correlation: FloatArray,
    *,
    rng: np.random.Generator,
) -> FloatArray:
    """Draw scores of points in these cells, shape (n, d).

    Columns that are cut come first, so that those that are not follow them.
    """
    d = len(counts.columns)
    widths = [len(column.points) for column in counts.columns]
    order = sorted(range(d), key=lambda column: widths[column] == 1)
    factor = np.linalg.cholesky(correlation[np.ix_(order, order)])
    intervals = _intervals_of(cells, widths)
    drawn, scores = np.zeros((len(cells), d)), np.empty((len(cells), d))
    for at, column in enumerate(order):
        known = drawn[:, :at] @ factor[at, :at]
        own = rng.random(len(cells))
        if widths[column] > 1:
            limits = normal_scores(edges[column][counts.columns[column].edges])
            limits[0], limits[-1] = -_OUTER_SCORE, _OUTER_SCORE
            low, high = (
                np.interp(
                    (limits[intervals[:, column] + side] - known) / factor[at, at], _TABLE, _SHARES
                )
                for side in (0, 1)
            )
            own = low + own * (high - low)
        drawn[:, at] = np.interp(own, _SHARES, _TABLE)
        scores[:, column] = known + factor[at, at] * drawn[:, at]
        if widths[column] > 1:
            # Where the edges are so far out that the table has nothing between them.
            inside = (limits[intervals[:, column]], limits[intervals[:, column] + 1])
            scores[:, column] = np.clip(scores[:, column], *inside)
            drawn[:, at] = (scores[:, column] - known) / factor[at, at]
    return scores


def _intervals_of(cells: IntArray, widths: list[int]) -> IntArray:
    """Return which interval of each column cells are in, shape (n, d); last column fastest."""
    columns = []
    for width in reversed(widths):
        columns.append(cells % width)
        cells = cells // width
    return np.stack(columns[::-1], axis=1)
