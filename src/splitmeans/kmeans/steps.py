"""Lloyd's steps until they come to rest, most points left alone in most of them.

Most points keep their centre from one step to the next. What is known of a point after a step, how
far its own centre is at most and every other one at least, stays true when centres move if the
moves are added and taken off (Hamerly, "Making k-means even faster", 2010). Only points for which
that does not settle it are compared with all centres again. The few centres that moved farthest are
compared with every point, so that it is the others' small moves that are taken off: after a centre
or two were put elsewhere little else is computed.

Labels are those of exact distances (`kernels/lloyd.py`). A mean is of sums to which points were
added and from which they were taken as they came and went, so it differs from a fresh mean in its
last digits.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from splitmeans._types import FloatArray, IntArray, LabelArray
from splitmeans.kernels import lloyd
from splitmeans.kernels.points import Points

_STEPS = 300
# Of so many centres one is compared with every point in a step: those that moved farthest.
_CENTRES_TO_MOVER = 8
# Scores beyond this may overflow in single precision, and say nothing.
_TOO_LARGE = 1e37
# Sums are made anew when this many times a cluster's weight has left it.
_STALE = 1e3


class Nearest(NamedTuple):
    """What is known of each point's nearest centres; bounds are rounded to the safe side.

    Attributes:
        labels: The nearest one, shape (n,), -1 where nothing is known.
        upper: The distance to it is no more than this, shape (n,).
        lower: The distance to any other is no less than this, shape (n,).
    """

    labels: LabelArray
    upper: npt.NDArray[np.float32]
    lower: npt.NDArray[np.float32]

    def copy(self) -> "Nearest":
        """Return a copy, which steps may change."""
        return Nearest(self.labels.copy(), self.upper.copy(), self.lower.copy())


class _Centres(NamedTuple):
    """Centres as they are compared with points; see `kernels.lloyd.prepare`."""

    exact: FloatArray
    singles: npt.NDArray[np.float32]
    halves: npt.NDArray[np.float32]
    level_squares: FloatArray
    moves: npt.NDArray[np.float32]
    free: npt.NDArray[np.float32]
    slack: np.float32


def steps_to_rest(
    points: Points,
    *,
    start: FloatArray,
    tolerance: float,
    known: Nearest | None = None,
    known_of: FloatArray | None = None,
) -> tuple[FloatArray, float, Nearest]:
    """Move centres to the means of their points until they rest.

    A centre without points starts anew where the loss is largest.

    Args:
        points: The points.
        start: Starting centres, shape (k, D).
        tolerance: Stop once the squared shifts of all centres add up to no more than this.
        known: What is known of the points and `known_of`; it is changed. Nothing, if not given.
        known_of: Centres of which `start` differs in a few, shape (k, D).

    Returns:
        The centres, the weighted sum of squared distances to them, and what is known then.
    """
    centres = np.array(start, dtype=np.float64, order="C")
    before = centres if known_of is None else known_of
    near = _nothing(points.n) if known is None else known
    sums = Sums(points, len(centres))
    resting = False
    for step in range(_STEPS + 1):
        prepared = _prepared(points, centres, before)
        if near.labels[0] >= 0 and prepared.slack < _TOO_LARGE:
            asked = _unsettled(points, prepared, near)
        else:
            asked = np.arange(points.n)
        _compare(points, prepared, near, asked=asked)
        changed = sums.moved(asked, near.labels)
        if resting or changed == 0 or step == _STEPS:
            break
        before, centres = centres, sums.means(centres)
        lost = np.flatnonzero(sums.counts == 0)
        if len(lost):
            costs = points.weights * _own_distances(points, prepared, near.labels)
            centres[lost] = points.features(np.argsort(-costs, kind="stable")[: len(lost)])
        resting = float(np.square(centres - before).sum()) <= tolerance
    loss = float((points.weights * _own_distances(points, prepared, near.labels)).sum())
    return centres, loss, near


def nearest_of_all(points: Points, centres: FloatArray) -> tuple[Nearest, float]:
    """Return the nearest centre of every point (lowest index on ties), tight bounds, the loss."""
    own = np.ascontiguousarray(centres, dtype=np.float64)
    found = _nothing(points.n)
    prepared = _prepared(points, own, own)
    _compare(points, prepared, found, asked=np.arange(points.n))
    return found, float((points.weights * _own_distances(points, prepared, found.labels)).sum())


class Sums:
    """Sums of the points of each centre, kept while points come and go."""

    def __init__(self, points: Points, k: int) -> None:
        self.points = points
        self._labels = np.full(points.n, -1, dtype=np.int32)
        self._sums = np.zeros((k, points.n_features + 2))
        self._left = np.zeros(k)
        self._fresh = True

    @property
    def counts(self) -> FloatArray:
        """Number of points of each centre."""
        return np.asarray(self._sums[:, -1])

    @property
    def totals(self) -> FloatArray:
        """Weight of each centre."""
        return np.asarray(self._sums[:, -2])

    def moved(self, asked: IntArray, labels: LabelArray) -> int:
        """Take in the labels of the points `asked`, all others have theirs; count the changes."""
        if self._fresh:
            asked, self._fresh = np.arange(self.points.n), False
        given = self.points
        changed = lloyd.move_points(
            given.numbers,
            given.codes,
            given.firsts,
            given.spans,
            given.weights,
            asked,
            self._labels,
            labels,
            self._sums,
            self._left,
        )
        if (self._left > _STALE * self.totals).any():
            # Differences of large sums say little about small ones.
            self._labels[:], self._sums[:], self._left[:] = -1, 0.0, 0.0
            self._fresh = True
            self.moved(asked, labels)
        return int(changed)

    def means(self, otherwise: FloatArray) -> FloatArray:
        """Return the mean of each centre's points; of a centre without points what is given."""
        filled, totals = self.counts[:, np.newaxis] > 0, self.totals[:, np.newaxis]
        return np.divide(self._sums[:, :-2], totals, out=otherwise.copy(), where=filled)


def _nothing(n: int) -> Nearest:
    """Return that nothing is known of n points."""
    return Nearest(
        np.full(n, -1, dtype=np.int32),
        np.full(n, np.inf, dtype=np.float32),
        np.zeros(n, dtype=np.float32),
    )


def _prepared(points: Points, centres: FloatArray, before: FloatArray) -> _Centres:
    k = len(centres)
    singles = np.zeros((k, len(points.single) + points.n_levels), dtype=np.float32)
    halves, moves, free = np.empty((3, k), dtype=np.float32)
    level_squares = np.empty(k)
    slack = lloyd.prepare(
        centres,
        before,
        points.numbers,
        points.spans,
        points.firsts,
        points.largest,
        singles,
        halves,
        level_squares,
        moves,
        free,
    )
    # Beyond what single precision holds no score is certain.
    bound = np.float32(slack if slack < _TOO_LARGE else np.inf)
    return _Centres(centres, singles, halves, level_squares, moves, free, bound)


def _unsettled(points: Points, centres: _Centres, near: Nearest) -> IntArray:
    """Carry what is known over to centres that have moved; return points that it leaves open."""
    n_far = len(centres.moves) // _CENTRES_TO_MOVER
    order = np.argsort(-centres.moves, kind="stable")
    best = np.full(points.n, np.inf, dtype=np.float32)
    if n_far:
        best, _, _ = _scan(points.single, points.codes, points, centres, order[:n_far], near.labels)
    asked = np.empty(points.n, dtype=np.int64)
    n_asked = lloyd.unsettled(
        near.labels,
        near.upper,
        near.lower,
        points.squares,
        best,
        centres.slack,
        centres.moves,
        centres.moves[order[n_far]],
        centres.free,
        asked,
    )
    return asked[:n_asked]


def _compare(points: Points, centres: _Centres, near: Nearest, *, asked: IntArray) -> None:
    """Compare these points with all centres."""
    columns, codes = points.single, points.codes
    if len(asked) < points.n:
        columns, codes = np.take(columns, asked, axis=1), np.take(codes, asked, axis=1)
    all_centres = np.arange(len(centres.exact))
    no_label = np.full(len(asked), -1, dtype=np.int32)
    best, second, which = _scan(columns, codes, points, centres, all_centres, no_label)
    lloyd.settle(
        points.numbers,
        points.codes,
        points.firsts,
        points.spans,
        centres.exact,
        centres.level_squares,
        points.squares,
        centres.slack,
        asked,
        best,
        second,
        which,
        near.labels,
        near.upper,
        near.lower,
    )


def _scan(
    columns: npt.NDArray[np.float32],
    codes: npt.NDArray[np.int32],
    points: Points,
    centres: _Centres,
    chosen: IntArray,
    own: LabelArray,
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32], LabelArray]:
    best, second = np.empty((2, len(own)), dtype=np.float32)
    which = np.empty(len(own), dtype=np.int32)
    lloyd.scan(
        columns,
        codes,
        points.firsts,
        centres.singles,
        centres.halves,
        chosen,
        own,
        best,
        second,
        which,
    )
    return best, second, which


def _own_distances(points: Points, centres: _Centres, labels: LabelArray) -> FloatArray:
    out = np.empty(points.n)
    lloyd.own_distances(
        points.numbers,
        points.codes,
        points.firsts,
        points.spans,
        centres.exact,
        centres.level_squares,
        labels,
        out,
    )
    return out
