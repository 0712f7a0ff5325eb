"""Finding columns of levels among features, so that k-means reads one code in place of them.

A column of L levels is L features, of which a point has one at the top and all others at the
bottom. Synthetic points do; centres of clusters, which are shares of levels, do not. Where every
point does, distances are the same and cost one look-up a column.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from splitmeans._types import FloatArray, IntArray
from splitmeans.kernels.points import Points, as_points

# Columns of fewer levels are read as numbers: looking up takes as long as a few products.
_FEWEST_LEVELS = 8


class CodedPoints(NamedTuple):
    """Points for the loops of k-means, and what their features are.

    Attributes:
        points: The points; features of levels are counted from the bottom.
        order: The given feature at each place of a centre, shape (D,).
        bottoms: What was taken off each feature, shape (D,), in that order.
    """

    points: Points
    order: IntArray
    bottoms: FloatArray

    def features(self, centres: FloatArray) -> FloatArray:
        """Return centres, shape (k, D), with the features as they were given."""
        found = np.empty_like(centres)
        found[:, self.order] = centres + self.bottoms
        return found

    def from_features(self, centres: FloatArray) -> FloatArray:
        """Return the opposite of `features`."""
        return np.asarray(centres[:, self.order] - self.bottoms)


def coded(points: FloatArray, weights: FloatArray, *, levels: Sequence[slice]) -> CodedPoints:
    """Return points with a code for each column of levels that is one.

    Args:
        points: All features, shape (n, D).
        weights: Shape (n,).
        levels: The features of each column of levels.
    """
    codes, spans, slices, bottoms = [], [], [], []
    for own in levels:
        if own.stop - own.start >= _FEWEST_LEVELS:
            found = _codes(points[:, own])
            if found is not None:
                code, bottom, span = found
                codes.append(code)
                spans.append(span)
                slices.append(own)
                bottoms.append(np.full(own.stop - own.start, bottom))
    if not codes:
        d = points.shape[1]
        return CodedPoints(as_points(points, weights), np.arange(d), np.zeros(d))
    is_number = np.ones(points.shape[1], dtype=bool)
    for own in slices:
        is_number[own] = False
    numbers = np.flatnonzero(is_number)
    places = [np.arange(own.start, own.stop) for own in slices]
    given = as_points(
        points[:, numbers],
        weights,
        codes=np.stack(codes, axis=1),
        levels=tuple(len(own) for own in places),
        spans=tuple(spans),
    )
    return CodedPoints(
        points=given,
        order=np.concatenate([numbers, *places]),
        bottoms=np.concatenate([np.zeros(len(numbers)), *bottoms]),
    )


def _codes(features: FloatArray) -> tuple[npt.NDArray[np.int32], float, float] | None:
    """Return the level of each point, the bottom, and how far the top is from it; None if none."""
    bottom, top = float(features.min()), float(features.max())
    if not bottom < top:
        return None
    at_top = features == top
    if not (at_top.sum(axis=1) == 1).all() or not (at_top | (features == bottom)).all():
        return None
    return at_top.argmax(axis=1).astype(np.int32), bottom, top - bottom
