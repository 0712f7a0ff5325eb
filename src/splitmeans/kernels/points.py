"""Points with columns of numbers and columns of levels, as the loops of k-means read them.

A column of L levels stands for L features, of which a point has one at the top (`span`) and all
others at zero. So a point is a code for each such column; its distance from a centre is the
centre's length in these features and one look-up.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from splitmeans._types import FloatArray, IntArray
from splitmeans.kernels.screen import empty_columns


class Points(NamedTuple):
    """n points with p columns of numbers and q columns of levels.

    Centres have features: the numbers, then the levels of each column.

    Attributes:
        numbers: Shape (n, p), contiguous.
        single: The same by column in single precision, padded; see `screen.Single`.
        codes: The level of each point, by column, shape (q, n), int32.
        firsts: Where each column's levels begin among all levels, shape (q,).
        spans: The feature of the level that a point has; of all others it is 0. Shape (q,).
        n_levels: Levels of all columns together.
        weights: Shape (n,), all positive.
        squares: Squared length of each point, shape (n,).
        largest: No number is larger than this.
    """

    numbers: FloatArray
    single: npt.NDArray[np.float32]
    codes: npt.NDArray[np.int32]
    firsts: IntArray
    spans: FloatArray
    n_levels: int
    weights: FloatArray
    squares: npt.NDArray[np.float32]
    largest: float

    @property
    def n(self) -> int:
        """Number of points."""
        return len(self.weights)

    @property
    def n_features(self) -> int:
        """Features of a centre."""
        return int(self.numbers.shape[1]) + self.n_levels

    @property
    def span_of_level(self) -> FloatArray:
        """The span of each level's column, shape (n_levels,)."""
        return np.repeat(self.spans, np.diff(self.firsts, append=self.n_levels))

    def drawn(self, chosen: IntArray) -> "Points":
        """Return some points, each of weight 1."""
        return self._replace(
            numbers=np.ascontiguousarray(self.numbers[chosen]),
            single=np.ascontiguousarray(self.single[:, chosen]),
            codes=np.ascontiguousarray(self.codes[:, chosen]),
            weights=np.ones(len(chosen)),
            squares=np.ascontiguousarray(self.squares[chosen]),
        )

    def features(self, chosen: IntArray) -> FloatArray:
        """Return all features of some points, shape (m, D)."""
        p = self.numbers.shape[1]
        found = np.zeros((len(chosen), self.n_features))
        found[:, :p] = self.numbers[chosen]
        for first, span, own in zip(self.firsts, self.spans, self.codes, strict=True):
            found[np.arange(len(chosen)), p + first + own[chosen]] = span
        return found


def as_points(
    numbers: FloatArray,
    weights: FloatArray,
    *,
    codes: npt.NDArray[np.int32] | None = None,
    levels: tuple[int, ...] = (),
    spans: tuple[float, ...] = (),
) -> Points:
    """Return points for the loops of k-means.

    Args:
        numbers: Columns of numbers, shape (n, p).
        weights: Shape (n,).
        codes: Levels, shape (n, q); none if not given.
        levels: Number of levels of each of the q columns.
        spans: What the feature of a point's level is, for each of the q columns.
    """
    n, p = numbers.shape
    rows = np.ascontiguousarray(numbers, dtype=np.float64)
    single = empty_columns(max(p, 1), n)
    # What single precision cannot hold is compared in double precision.
    with np.errstate(over="ignore"):
        single[:p, :n] = rows.T
        squares = np.square(rows).sum(axis=1) + float(np.square(spans).sum())
        lengths = squares.astype(np.float32)
    own = np.empty((0, n), dtype=np.int32) if codes is None else codes.T
    return Points(
        numbers=rows,
        single=single,
        codes=np.ascontiguousarray(own, dtype=np.int32),
        firsts=np.concatenate([[0], np.cumsum(levels)[:-1]]).astype(np.int64)[: len(levels)],
        spans=np.array(spans, dtype=np.float64),
        n_levels=int(sum(levels)),
        weights=np.ascontiguousarray(weights, dtype=np.float64),
        squares=lengths,
        largest=float(np.abs(rows).max(initial=0.0)),
    )
