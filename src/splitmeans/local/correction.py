"""Moving synthetic points to agree with what the rows answered, as far as that is more than noise.

Every part of an answer (count, mean, spread) is compared with the same of the points of the
cluster, and shrunk towards it by how much of the differences is noise. Post-processing.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from splitmeans._types import FloatArray, IntArray
from splitmeans.kmeans.nearest import nearest_centres
from splitmeans.local.level_moves import moved_levels
from splitmeans.shrinkage import shrinkage
from splitmeans.study.coding import Coding

# A coordinate's spread changes by no more than this factor in a round, either way.
_MOST_STRETCH = 3.0
# A cluster keeps the rows that it had up to so many deviations of noise above its new count.
_DOUBT = 1.0
# Squares shrink to no less than this share of what they were.
_LEAST_SQUARES = 0.1
# A cluster whose offsets are together more than this many times their noise, squared, moves by
# itself: a group of rows that no point is near would otherwise be moved to no farther than clusters
# are wrong on average, and its segment be lost.
_STANDING_OUT = 3.0


@dataclass(frozen=True, kw_only=True, eq=False)
class Cluster:
    """The clusters of the points in a round.

    Attributes:
        centres: Shape (k, d).
        of_point: Cluster of each point, shape (n,).
        totals: Weight of each cluster, shape (k,).
        means: Shape (k, d).
        spreads: Mean squared distance of each cluster's points from their mean, shape (k,).
    """

    centres: FloatArray
    of_point: IntArray
    totals: FloatArray
    means: FloatArray
    spreads: FloatArray

    @classmethod
    def of_points(
        cls, points: FloatArray, weights: FloatArray, *, centres: FloatArray
    ) -> "Cluster":
        """Assign each point to its nearest centre."""
        nearest = nearest_centres(points, centres).astype(np.int64)
        totals = _sums(weights, nearest, len(centres))
        means = _means(points, weights, nearest, totals)
        # A cluster without points stays where its centre is.
        means = np.where(totals[:, np.newaxis] > 0, means, centres)
        squares = np.square(points - means[nearest]).sum(axis=1)
        inside = _sums(weights * squares, nearest, len(centres))
        everywhere = inside.sum() / max(float(totals.sum()), 1e-9)
        spreads = np.divide(inside, totals, out=np.full(len(totals), everywhere), where=totals > 0)
        return cls(centres=centres, of_point=nearest, totals=totals, means=means, spreads=spreads)


@dataclass(frozen=True, kw_only=True, eq=False)
class Answer:
    """What the rows answered for each of k clusters, with the deviation of its noise.

    Attributes:
        radii: Offsets from the centre were clipped to this length, shape (k,).
        counts: Rows, shape (k,).
        count_deviations: Shape (k,).
        offsets: Sums of clipped offsets, shape (k, d).
        offset_deviations: Of each coordinate, shape (k,).
        squares: Sums of squares of clipped offsets, shape (k, columns of numbers), or of all
            columns together, shape (k, 1).
        square_deviations: Of each coordinate, shape (k,).
    """

    radii: FloatArray
    counts: FloatArray
    count_deviations: FloatArray
    offsets: FloatArray
    offset_deviations: FloatArray
    squares: FloatArray
    square_deviations: FloatArray


def corrected(
    points: FloatArray,
    weights: FloatArray,
    clusters: Cluster,
    answer: Answer,
    *,
    coding: Coding,
    present: FloatArray,
    size: float,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the points moved and weighted anew, their weights, and the clusters' new means.

    Args:
        points: Shape (n, d), in grid units.
        weights: Shape (n,).
        clusters: Their clusters.
        answer: What the rows said of each.
        coding: Which features are numbers, and which are the levels of one column.
        present: Share of the rows that have a value, for each feature, shape (d,).
        size: What the weights add up to.
        rng: Draws the points whose levels change.
    """
    nearest, before = clusters.of_point, clusters.totals
    off = answer.counts - before
    totals = np.maximum(before + shrinkage(off, answer.count_deviations) * off, 0.0)
    # Points that are gone never come back, so they go only as far as answers are beyond noise.
    not_refuted = answer.counts + _DOUBT * answer.count_deviations
    totals = np.maximum(totals, np.minimum(before, not_refuted))
    if totals.sum() <= 0:
        totals = before
    totals = totals * (size / max(float(totals.sum()), 1e-9))

    # Points are clipped as the rows were, so that like is compared with like.
    offsets = points - clusters.centres[nearest]
    lengths = np.sqrt(np.square(offsets).sum(axis=1))
    shorter = np.minimum(1.0, answer.radii[nearest] / np.maximum(lengths, 1e-9))
    clipped = offsets * shorter[:, np.newaxis]
    rows = np.maximum(totals, 1.0)[:, np.newaxis]
    unit = np.sqrt(np.maximum(clusters.spreads, 1.0))[:, np.newaxis]

    # Rows without a value add nothing to a sum, so a sum is of fewer rows.
    there = rows * present
    inside = _means(clipped, weights, nearest, before)
    shift = answer.offsets / there - inside
    noise = answer.offset_deviations[:, np.newaxis] / there / unit
    numbers = coding.number_features
    # Apart for each column of levels: of many levels most have next to no signal.
    columns = (np.arange(own.start, own.stop) for _, own in coding.categorical)
    for own in (numbers, *columns):
        shift[:, own] *= offset_weights(shift[:, own] / unit, noise[:, own])

    squares = _means(np.square(clipped[:, numbers]), weights, nearest, before)
    wanted = _shrunk_squares(squares, answer, rows=there[:, numbers], unit=unit)
    # Squares are about the centre: what the mean is off by is in them, and is no spread.
    around = squares - np.square(inside[:, numbers])
    wanted = wanted - np.square(inside[:, numbers] + shift[:, numbers])
    wanted = np.maximum(wanted, _LEAST_SQUARES * around)
    stretch = np.sqrt(np.divide(wanted, around, out=np.ones_like(wanted), where=around > 0))
    stretch = np.clip(stretch, 1 / _MOST_STRETCH, _MOST_STRETCH)

    limits = np.array(coding.bounds, dtype=np.float64)[numbers]
    means = clusters.means[:, numbers][nearest]
    moved = points.copy()
    moved[:, numbers] = np.clip(
        means + (points[:, numbers] - means) * stretch[nearest] + shift[:, numbers][nearest],
        -limits,
        limits,
    )
    for _, levels in coding.categorical:
        moved[:, levels] = moved_levels(
            points[:, levels],
            weights,
            nearest,
            shift[:, levels],
            bound=float(coding.bounds[levels.start]),
            rng=rng,
        )
    factors = np.divide(totals, before, out=np.zeros_like(totals), where=before > 0)
    weighted = weights * factors[nearest]
    if weighted.sum() <= 0:
        weighted = weights
    weighted = weighted * (size / weighted.sum())
    new_totals = _sums(weighted, nearest, len(before))
    new_means = _means(moved, weighted, nearest, new_totals)
    # A cluster that has lost its points keeps its place.
    return moved, weighted, np.where(new_totals[:, np.newaxis] > 0, new_means, clusters.centres)


def offset_weights(offsets: FloatArray, deviations: FloatArray) -> FloatArray:
    """Return the weight of each offset, shape (k, d): more of a cluster's that stand out."""
    noise = _STANDING_OUT * np.square(deviations).sum(axis=1, keepdims=True)
    lengths = np.square(offsets).sum(axis=1, keepdims=True)
    alone = 1 - np.divide(noise, lengths, out=np.ones_like(noise), where=lengths > 0)
    return np.asarray(np.maximum(shrinkage(offsets, deviations), alone))


def _shrunk_squares(
    squares: FloatArray, answer: Answer, *, rows: FloatArray, unit: FloatArray
) -> FloatArray:
    """Return the mean squares of each cluster's coordinates, shape (k, d).

    From coarse to fine: of all clusters together, of each, of each coordinate, if the rows were
    asked for those. What is coarse has little noise.

    Args:
        squares: Mean squares of the points, clipped as the rows were.
        answer: What the rows said.
        rows: Rows of each cluster that have a value, shape (k, columns of numbers).
        unit: Root mean square distance in each cluster, shape (k, 1).
    """
    if squares.shape[1] == 0:
        return squares
    together = answer.squares.shape[1] < squares.shape[1]
    if together:
        rows = rows.mean(axis=1, keepdims=True)
    counted = answer.squares / rows
    deviations = answer.square_deviations[:, np.newaxis] / rows
    total = float((rows * squares).sum())
    change = answer.squares.sum() - total
    noise = answer.squares.shape[1] * np.square(answer.square_deviations).sum()
    if total > 0:
        squares = squares * _factor(1 + change * shrinkage(change, np.sqrt(noise)) / total)
    of_cluster = squares.sum(axis=1, keepdims=True)
    off = (counted.sum(axis=1, keepdims=True) - of_cluster) / unit**2
    of_sums = np.sqrt(np.square(deviations).sum(axis=1, keepdims=True))
    off *= shrinkage(off, of_sums / unit**2)
    ratios = np.divide(off * unit**2, of_cluster, out=np.zeros_like(off), where=of_cluster > 0)
    squares = squares * _factor(1 + ratios)
    if together:
        return np.asarray(squares)
    single = counted - squares
    single *= shrinkage(single / unit**2, deviations / unit**2)
    return np.asarray(np.maximum(squares + single, _LEAST_SQUARES * squares))


def _factor(ratio: npt.ArrayLike) -> FloatArray:
    """Return a ratio of squares within what a round may change."""
    return np.clip(ratio, 1 / _MOST_STRETCH**2, _MOST_STRETCH**2)


def _means(
    values: FloatArray, weights: FloatArray, groups: IntArray, totals: FloatArray
) -> FloatArray:
    """Return the weighted mean of the values of each group, shape (k, d); zero without weight."""
    sums = np.zeros((len(totals), values.shape[1]))
    for place, column in enumerate(values.T):
        sums[:, place] = _sums(weights * column, groups, len(totals))
    filled = totals[:, np.newaxis] > 0
    return np.asarray(np.divide(sums, totals[:, np.newaxis], out=np.zeros_like(sums), where=filled))


def _sums(values: FloatArray, groups: IntArray, n_groups: int) -> FloatArray:
    """Return the sum of the values of each group, shape (k,)."""
    return np.asarray(np.bincount(groups, weights=values, minlength=n_groups), dtype=np.float64)
