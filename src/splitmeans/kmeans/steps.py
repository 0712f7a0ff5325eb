"""Lloyd's steps until they come to rest, most points left alone in most of them.

Most points keep their centre from one step to the next. What is known of a point after a step, how
far its own centre is at most and every other one at least, stays true when centres move if the
moves are added and taken off (Hamerly, "Making k-means even faster", 2010). Only points for which
that does not settle it are compared with all centres again. The few centres that moved farthest are
compared with every point, so that it is the others' small moves that are taken off: after a centre
or two were put elsewhere little else is computed.

Labels are those of exact distances (`kernels/lloyd.py` has the loops, `kernels/steps.py` puts them
together). A mean is of sums to which points were added and from which they were taken as they came
and went, so it differs from a fresh mean in its last digits.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from splitmeans._types import FloatArray, LabelArray
from splitmeans.kernels import steps
from splitmeans.kernels.points import Points

_STEPS = 300


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


class Sums(NamedTuple):
    """Sums of the points of each of k centres.

    Attributes:
        features: Of the weighted points, shape (k, D).
        totals: Their weight, shape (k,).
        counts: Their number, shape (k,).
    """

    features: FloatArray
    totals: FloatArray
    counts: FloatArray

    def means(self, otherwise: FloatArray) -> FloatArray:
        """Return the mean of each centre's points; of a centre without points what is given."""
        filled, totals = self.counts[:, np.newaxis] > 0, self.totals[:, np.newaxis]
        return np.divide(self.features, totals, out=otherwise.copy(), where=filled)


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
    loss, _ = _run(points, centres, before.copy(), near, tolerance=tolerance, most_steps=_STEPS)
    return centres, loss, near


def nearest_of_all(points: Points, centres: FloatArray) -> tuple[Nearest, float, Sums]:
    """Return the nearest centre of every point (lowest index on ties), tight bounds, loss, sums."""
    own = np.array(centres, dtype=np.float64, order="C")
    found = _nothing(points.n)
    loss, sums = _run(points, own, own.copy(), found, tolerance=0.0, most_steps=0)
    return found, loss, sums


def _run(
    points: Points,
    centres: FloatArray,
    before: FloatArray,
    near: Nearest,
    *,
    tolerance: float,
    most_steps: int,
) -> tuple[float, Sums]:
    """Take steps; `centres`, `before` and `near` are changed."""
    sums = np.empty((len(centres), points.n_features + 2))
    loss = steps.to_rest(
        points.numbers,
        points.single,
        points.codes,
        points.firsts,
        points.spans,
        points.weights,
        points.squares,
        points.largest,
        tolerance,
        most_steps,
        centres,
        before,
        *near,
        sums,
    )
    return float(loss), Sums(sums[:, :-2], sums[:, -2], sums[:, -1])


def _nothing(n: int) -> Nearest:
    """Return that nothing is known of n points."""
    return Nearest(
        np.full(n, -1, dtype=np.int32),
        np.full(n, np.inf, dtype=np.float32),
        np.zeros(n, dtype=np.float32),
    )
