"""Weights under which synthetic points agree with all that the rows answered, in every round.

A round moves the points of each of its clusters by what it was told alone (`correction.py`), and so
undoes part of what the rounds before had told of the same rows. But every answer of every round is
a sum over rows, and stays true: of points with weights it is a linear function of the weights. Here
they are those that all answers together make most plausible: least squares in deviations of the
noise, and as near as that allows to the weights before (relative entropy). A mean that no single
round knows well, such as that of a segment that lies in several clusters, then has what all of them
say of it. Post-processing; docs/local-clustering.md has what it is worth.

Counts and columns of numbers take part. Columns of levels go along with them: with their shares as
answers too losses were the same on three tables, and hundreds of levels took ten times as long.

The minimum is found in the dual: one slope for each answer, and points weighted by the exponential
of their features' products with the slopes of their clusters.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from splitmeans._types import FloatArray, IntArray
from splitmeans.kernels.tilting import tilted_sums
from splitmeans.kmeans.nearest import nearest_centres
from splitmeans.local.correction import Answer
from splitmeans.local.descent import lowest
from splitmeans.study.coding import Coding

# The weights before are worth a sample of so many rows: what is known of the points' shape does not
# grow with the table. Of 100, 300 and 1,000 this was best or second on nine of eleven settings, and
# what answers are off by is then about their noise. Many columns take more to be held in place: of
# 300 to 10,000 with 50 columns 3,000 was best at epsilon 1. So do more clusters than two dozen:
# with 300 rows 55 clusters of uneven ones were followed into their noise (1.24 of the loss of
# central k-means, without all of this 1.18, now 1.19).
_WORTH, _WORTH_TO_COLUMN, _WORTH_TO_SQUARED_CLUSTERS = 300.0, 60.0, 0.5
# Within a cluster points have a shape of their own, so answers are taken to be off by this share of
# what its rows add up to besides their noise: where there is next to none, points would be weighted
# to death to agree with the last digit.
_SHAPE = 0.1
# Noise below this share of that is none.
_PRECISE = 0.1
_MOST_STEPS = 25
# One of so many points tells the units of slopes.
_POINTS_TO_UNIT = 4
# No share is below this before.
_SMALLEST = 1e-100


@dataclass(frozen=True, kw_only=True, eq=False)
class Asked:
    """A round: its centres, shape (k, d), and what the rows answered about each."""

    centres: FloatArray
    answer: Answer


def agreeing_shares(
    points: FloatArray,
    weights: FloatArray,
    rounds: Sequence[Asked],
    *,
    coding: Coding,
    present: FloatArray,
    size: float,
) -> FloatArray:
    """Return the share of all rows that each of the points stands for, shape (n,).

    Args:
        points: Shape (n, d), in grid units.
        weights: About how many rows each stands for, shape (n,), zero or more.
        rounds: What was asked, at least one round.
        coding: Which features are numbers.
        present: Share of the rows that have a value, for each feature, shape (d,).
        size: Number of rows.
    """
    if _is_precise(rounds[-1].answer):
        return np.asarray(weights / weights.sum())
    firsts = np.cumsum([0, *(len(asked.centres) for asked in rounds)])
    nearest = [nearest_centres(points, asked.centres).astype(np.int64) for asked in rounds]
    of_rounds = [
        _features(points, asked, own, coding=coding, present=present)
        for asked, own in zip(rounds, nearest, strict=True)
    ]
    # Row after row, as the kernel was compiled for.
    features = np.ascontiguousarray(np.stack(of_rounds, axis=1))
    groups = np.stack([own + first for own, first in zip(nearest, firsts, strict=False)], axis=1)
    answers = np.concatenate([_answers(asked.answer, coding=coding) for asked in rounds])
    worth = min(_worth(len(coding.number_features), len(rounds[-1].centres)), size)
    logs = np.log(np.maximum(weights / weights.sum(), _SMALLEST))
    # Features are of all rows together, and slopes such that this is the exponent.
    features *= size / worth
    units = _units(features, groups, np.exp(logs), n_groups=len(answers), worth=worth)

    def slopes_at(place: FloatArray) -> FloatArray:
        return np.asarray(np.einsum("kij,ki->kj", units, place.reshape(answers.shape)))

    def dual(place: FloatArray) -> tuple[float, FloatArray]:
        slopes = slopes_at(place)
        total, _, means = tilted_sums(features, groups, slopes, logs)
        value = 0.5 * np.square(slopes).sum() - (slopes * answers).sum() + worth * total
        return float(value), np.einsum(
            "kij,kj->ki", units, slopes - answers + worth * means
        ).ravel()

    place = lowest(dual, np.zeros(answers.size), most_steps=_MOST_STEPS)
    return tilted_sums(features, groups, slopes_at(place), logs)[1]


def _worth(n_numbers: int, n_clusters: int) -> float:
    """Return how many rows the weights before are worth."""
    return max(_WORTH, _WORTH_TO_COLUMN * n_numbers, _WORTH_TO_SQUARED_CLUSTERS * n_clusters**2)


def _is_precise(answer: Answer) -> bool:
    """Whether a round's noise is so far below what shapes are off by that others add nothing."""
    _, offset, _ = _deviations(answer)
    return float(np.median(answer.offset_deviations / offset)) < _PRECISE


def _features(
    points: FloatArray, asked: Asked, nearest: IntArray, *, coding: Coding, present: FloatArray
) -> FloatArray:
    """Return what each point adds to its cluster's answers, in deviations of their noise, (n, m).

    Points are clipped as the rows were.
    """
    answer = asked.answer
    offsets = points - asked.centres[nearest]
    lengths = np.sqrt(np.square(offsets).sum(axis=1))
    shorter = np.minimum(1.0, answer.radii[nearest] / np.maximum(lengths, 1e-9))
    numbers = coding.number_features
    clipped = offsets[:, numbers] * shorter[:, np.newaxis]
    # A row without a value adds nothing to either.
    squares = np.square(clipped) * present[numbers]
    clipped *= present[numbers]
    if answer.squares.shape[1] < squares.shape[1]:
        squares = squares.sum(axis=1, keepdims=True)
    count, offset, square = (own[nearest][:, np.newaxis] for own in _deviations(answer))
    return np.concatenate([1 / count, clipped / offset, squares / square], axis=1)


def _answers(answer: Answer, *, coding: Coding) -> FloatArray:
    """Return a round's answers in deviations of their noise, shape (k, m)."""
    count, offset, square = (own[:, np.newaxis] for own in _deviations(answer))
    offsets = answer.offsets[:, coding.number_features] / offset
    return np.concatenate(
        [answer.counts[:, np.newaxis] / count, offsets, answer.squares / square], axis=1
    )


def _deviations(answer: Answer) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return how far count, offsets and squares may be off, each of shape (k,)."""
    own = _SHAPE * np.maximum(answer.counts, 0.0)
    spread = answer.radii / math.sqrt(answer.offsets.shape[1])
    return (
        np.hypot(answer.count_deviations, own),
        np.hypot(answer.offset_deviations, own * spread),
        np.hypot(answer.square_deviations, own * np.square(spread)),
    )


def _units(
    features: FloatArray, groups: IntArray, shares: FloatArray, *, n_groups: int, worth: float
) -> FloatArray:
    """Return units for the slopes of each group, shape (k, m, m), in which the dual is even.

    In these, its second derivatives at the start are 1 within a group and 0 for two slopes of it:
    the inverse of their Cholesky factor, from some of the points. Without, it takes twice the
    steps.
    """
    width = features.shape[2]
    squares = np.zeros((n_groups, width, width))
    some = slice(None, None, _POINTS_TO_UNIT)
    shares = shares[some] / shares[some].sum()
    for own, of_groups in zip(np.moveaxis(features, 1, 0), groups.T, strict=True):
        order = np.argsort(of_groups[some], kind="stable")
        rows, in_order = own[some][order], of_groups[some][order]
        weighted = shares[order][:, np.newaxis] * rows
        present, firsts = np.unique(in_order, return_index=True)
        for group, start, end in zip(present, firsts, [*firsts[1:], len(rows)], strict=True):
            means = weighted[start:end].sum(axis=0)
            product = weighted[start:end].T @ rows[start:end]
            squares[group] = product - np.outer(means, means)
    curved = np.eye(width) + worth * squares
    try:
        return np.linalg.inv(np.linalg.cholesky(curved))
    except np.linalg.LinAlgError:
        # Next to no noise beside very many rows. The diagonal is as valid, and takes more steps.
        diagonals = np.maximum(np.einsum("kii->ki", curved), 1.0)
        return np.asarray(np.eye(width) / np.sqrt(diagonals)[:, np.newaxis, :])
