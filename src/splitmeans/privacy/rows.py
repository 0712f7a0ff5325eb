"""Privacy loss of many equal, independent rows: the sketch repeats one small release M times.

A row's loss is tiny, so it lives on a grid of its own. One Fourier transform composes all rows,
which takes milliseconds where repeated library composition takes seconds.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy import special

from splitmeans._types import FloatArray

# The composed loss is followed at least this many standard deviations to both sides, and further
# until what lies beyond is negligible; what remains is bounded and counted as infinite loss.
_REACH = 14
_NEGLIGIBLE = 1e-14
_LARGEST_WINDOW = 2**22


class LossGrid(NamedTuple):
    """A privacy-loss distribution on whole multiples of `width`."""

    start: int
    mass: FloatArray
    infinite: float
    width: float

    @property
    def losses(self) -> FloatArray:
        """The loss of each cell."""
        return np.asarray((self.start + np.arange(len(self.mass))) * self.width)


def hockey_stick(upper: FloatArray, lower: FloatArray, epsilons: FloatArray) -> FloatArray:
    """Return sum max(0, upper - e^epsilon lower) for each epsilon, exactly but for rounding."""
    seen = upper > 0
    upper, lower = upper[seen], lower[seen]
    with np.errstate(divide="ignore"):
        loss = np.log(upper) - np.log(lower)
    order = np.argsort(loss)
    # Sums over all outcomes whose loss is above epsilon.
    above = np.searchsorted(loss[order], epsilons, side="right")
    upper_tail = np.append(np.cumsum(upper[order][::-1])[::-1], 0.0)[above]
    lower_tail = np.append(np.cumsum(lower[order][::-1])[::-1], 0.0)[above]
    return np.asarray(np.clip(upper_tail - np.exp(epsilons) * lower_tail, 0.0, 1.0))


def connect_dots(start: int, deltas: FloatArray, *, width: float) -> LossGrid:
    """Return the law on the grid whose curve joins the given points, linearly in e^epsilon.

    The true curve is convex in e^epsilon, so the joined one lies above it: a pessimistic law, and
    the smallest one on the grid. Point i is at epsilon = (start + i) width.
    """
    ratios = np.exp((start + np.arange(len(deltas))) * width)
    slopes = np.diff(deltas) / np.diff(ratios)
    first = (deltas[0] - 1) / ratios[0]
    steps = np.diff(np.concatenate([[first], slopes, [0.0]]))
    mass = ratios * np.maximum(steps, 0.0)
    return LossGrid(start=start, mass=mass, infinite=float(deltas[-1]), width=width)


def compose_rows(row: LossGrid, rows: int) -> LossGrid:
    """Return the loss of `rows` independent copies."""
    losses, kept = row.losses, float(row.mass.sum())
    mean = float(row.mass @ losses) / kept
    deviation = math.sqrt(max(float(row.mass @ (losses - mean) ** 2) / kept, row.width**2))
    centre = round(rows * mean / row.width)
    reach = math.ceil(_REACH * deviation * math.sqrt(rows) / row.width) + len(row.mass)
    size = 1 << math.ceil(math.log2(2 * reach + 1))
    while True:
        start = centre - size // 2
        outside = _mass_beyond(row, rows, low=start * row.width, high=(start + size) * row.width)
        # Rare large losses have longer tails than their deviation tells.
        if outside <= _NEGLIGIBLE or size >= _LARGEST_WINDOW:
            break
        size *= 2
    # Cells are taken modulo `size`, so that the composed law is centred in the window.
    padded = np.zeros(size)
    np.add.at(padded, (row.start + np.arange(len(row.mass))) % size, row.mass)
    composed = np.fft.irfft(np.fft.rfft(padded) ** rows, n=size)
    mass = np.maximum(composed[(start + np.arange(size)) % size], 0.0)
    infinite = -math.expm1(rows * math.log1p(-row.infinite)) + outside
    return LossGrid(start=start, mass=mass, infinite=min(1.0, infinite), width=row.width)


def curve(grid: LossGrid, epsilons: FloatArray) -> FloatArray:
    """Return delta at each epsilon."""
    losses = grid.losses
    above = np.searchsorted(losses, epsilons, side="right")
    tail = np.append(np.cumsum(grid.mass[::-1])[::-1], 0.0)[above]
    weighted = grid.mass * np.exp(-losses)
    weighted_tail = np.append(np.cumsum(weighted[::-1])[::-1], 0.0)[above]
    deltas = tail - np.exp(epsilons) * weighted_tail + grid.infinite
    return np.asarray(np.clip(deltas, 0.0, 1.0))


def _mass_beyond(row: LossGrid, rows: int, *, low: float, high: float) -> float:
    """Chernoff bound on the mass of the composed loss outside [low, high)."""
    losses = row.losses
    scale = 1 / (math.sqrt(rows) * max(row.width, math.sqrt(float(row.mass @ losses**2))))
    exponents = scale * np.geomspace(0.1, 1e5, 121)
    seen = row.mass > 0
    bounds = []
    for sign, limit in ((1.0, high), (-1.0, -low)):
        moments = special.logsumexp(
            np.outer(exponents, sign * losses[seen]), b=row.mass[seen], axis=1
        )
        bounds.append(math.exp(min(0.0, float(np.min(rows * moments - exponents * limit)))))
    return sum(bounds)
