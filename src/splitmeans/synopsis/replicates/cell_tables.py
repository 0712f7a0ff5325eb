"""What the true cells may have been, given the cells that the server published.

The server counts every cell with Gaussian noise of a known size, sets cells that could be noise to
zero, and scales the others so that the total stays right. Seen from its result, a published zero
may hold a few users, and a small published cell may be noise that got through. So every cell is
taken to be empty with some probability and otherwise to have an exponentially distributed number of
users. Both constants are fitted to the published table (expectation maximisation), and tables are
drawn from what the cells can be then.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from splitmeans._types import FloatArray, IntArray

_STEPS = 30
# Cut cells are drawn from a list of sizes up to this many deviations.
_SIZES = np.linspace(0.02, 8.0, 400)
# Neither "all cells are empty" nor "none is" can be learned from a table.
_LEAST_SHARE = 1e-3
# Users in cut cells, as a share of all: the server does not cut more than half.
_MOST_CUT = 0.6
_LOG_2PI = math.log(2 * math.pi)


@dataclass(frozen=True, kw_only=True, eq=False)
class PossibleCells:
    """Laws of the true cells of one table.

    Attributes:
        shape: Shape of the table.
        total: Published users of all cells.
        kept: Which cells were published with users, shape (cells,).
        centre: For each of them the location of the truncated normal law of its users if it is not
            empty.
        deviation: Standard deviation of the noise of a cell, the scale of that law.
        filled: For each of them the probability of not being empty.
        cut_filled: The same for a cell published as zero.
        cut_law: Probabilities of `_SIZES` deviations of users in such a cell that is not empty.
    """

    shape: tuple[int, ...]
    total: float
    kept: npt.NDArray[np.bool_]
    centre: FloatArray
    deviation: float
    filled: FloatArray
    cut_filled: float
    cut_law: FloatArray

    def draw(self, rng: np.random.Generator) -> FloatArray:
        """Draw one table, shape (k'_1, ...)."""
        from scipy.special import ndtr, ndtri

        users = np.zeros(len(self.kept))
        below = ndtr(-self.centre / self.deviation)
        uniform = below + rng.random(len(below)) * (1 - below)
        # A law so far below zero that nothing is left of it above is at zero.
        high = np.where(uniform < 1, ndtri(np.minimum(uniform, 1 - 1e-16)), -np.inf)
        drawn = np.maximum(self.centre + self.deviation * high, 0.0)
        users[self.kept] = np.where(rng.random(len(drawn)) < self.filled, drawn, 0.0)
        n_cut = int(np.count_nonzero(~self.kept))
        sizes = _SIZES[_positions(self.cut_law, n_cut, rng=rng)] * self.deviation
        users[~self.kept] = np.where(rng.random(n_cut) < self.cut_filled, sizes, 0.0)
        # Of all cells together more is known than the sum of what is known of each: scaling kept
        # the total, which has the noise of all cells.
        total = self.total + self.deviation * math.sqrt(len(users)) * rng.standard_normal()
        found = float(users.sum())
        if found > 0:
            users *= max(total, 0.0) / found
        return users.reshape(self.shape)


def possible_cells(published: FloatArray, *, deviation: float, cut: float) -> PossibleCells:
    """Fit the law of the true cells to a published table.

    Args:
        published: Users of each cell after cutting and scaling, zero or more.
        deviation: Standard deviation of the noise of a cell before that, above zero.
        cut: Cells below this many deviations were set to zero.
    """
    from scipy.special import log_ndtr, ndtr  # few need it, and it takes long to load

    cells = published.ravel()
    kept = cells > 0
    total, n_cut = float(cells.sum()), int(np.count_nonzero(~kept))
    empty, mean = 0.5, max(deviation, total / max(1, int(kept.sum())))
    lost = 0.0
    for _ in range(_STEPS):
        noisy = cells[kept] * (1 - lost)
        # Exponential prior times normal likelihood: a normal law, moved down and cut at zero.
        centre = noisy - deviation**2 / mean
        if_filled = deviation**2 / (2 * mean**2) - noisy / mean - math.log(mean)
        if_filled += log_ndtr(centre / deviation)
        if_empty = -np.square(noisy / deviation) / 2 - _LOG_2PI / 2 - math.log(deviation)
        odds = math.log(empty) + if_empty - math.log1p(-empty) - if_filled
        filled = 1 / (1 + np.exp(np.clip(odds, -700, 700)))
        expected = centre + deviation * np.exp(
            -np.square(centre / deviation) / 2
            - _LOG_2PI / 2
            - np.maximum(log_ndtr(centre / deviation), -700)
        )
        # A cut cell had a noisy count below the threshold, whatever it was.
        sizes = _SIZES * deviation
        cut_law = np.exp(-sizes / mean) / mean * ndtr(cut - _SIZES)
        chance = (1 - empty) * float(cut_law.sum()) * (sizes[1] - sizes[0])
        cut_filled = chance / (chance + empty * float(ndtr(cut)))
        cut_law /= cut_law.sum()
        in_cut = n_cut * cut_filled * float(cut_law @ sizes)

        n_filled = float(filled.sum()) + n_cut * cut_filled
        empty = min(max(1 - n_filled / len(cells), _LEAST_SHARE), 1 - _LEAST_SHARE)
        mean = max((float(filled @ np.maximum(expected, 0.0)) + in_cut) / n_filled, deviation / 20)
        lost = min(in_cut / total, _MOST_CUT) if total > 0 else 0.0
    return PossibleCells(
        shape=published.shape,
        total=total,
        kept=kept,
        centre=centre,
        deviation=deviation,
        filled=filled,
        cut_filled=cut_filled,
        cut_law=cut_law,
    )


def _positions(law: FloatArray, n: int, *, rng: np.random.Generator) -> IntArray:
    edges = np.cumsum(law)
    found = np.searchsorted(edges, rng.random(n) * edges[-1])
    return np.asarray(np.minimum(found, len(law) - 1), dtype=np.int64)
