"""Laws of the privacy loss on a grid: made from pairs of laws, composed, and read.

An outcome that has probability p under one law and q under the other has the loss log(p / q). A
law on the grid shares p between the two grid points beside the loss, so that neither law's total
changes. That can only tell the two laws better apart (joining the two shares again gives back the
outcome), so delta of the law on the grid is an upper bound, and the least one on this grid: its
curve joins the true one's points linearly in e^epsilon.

Everything here rounds towards more loss in exact arithmetic; `pld.NUMERICAL_MARGIN` covers
floating point. Only NumPy is needed: each participant of a run accounts for itself, and loading an
accounting library would take longer than the run.
"""

import math
from typing import NamedTuple

import numpy as np

from splitmeans._types import FloatArray
from splitmeans.kernels.normal import normal_tails

# Mass beyond both ends of a law that is given up: at the top counted as infinite loss, at the
# bottom moved up. A run composes some dozens of laws, so that 10^-13 is never reached.
_CUT = 1e-15
# Standard deviations at which a normal law is cut: 10^-17 lies beyond.
_NORMAL_REACH = 8.5
# A composed law of many copies is followed at least this many standard deviations to both sides,
# and further until what lies beyond is negligible; what remains is bounded and counted as infinite.
_REACH = 14
_NEGLIGIBLE = 1e-14
_LARGEST_WINDOW = 2**22
# e^this and e^-this are floats.
_LARGEST_EXPONENT = 700.0


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


def from_laws(upper: FloatArray, lower: FloatArray, *, width: float) -> LossGrid:
    """Return the loss log(upper / lower) under `upper`, of two laws on the same finite set."""
    both = (upper > 0) & (lower > 0)
    losses = np.log(upper[both]) - np.log(lower[both])
    infinite = float(upper[~(lower > 0)].sum())
    return _on_grid(losses, upper[both], infinite=infinite, width=width)


def from_normal(mu: float, *, width: float) -> LossGrid:
    """Return the loss between two normal laws of deviation 1 whose means are `mu` apart.

    It is normal itself, with mean mu^2 / 2 and deviation mu under the one law, and mean -mu^2 / 2
    under the other. All outcomes between two grid points are shared at once, like one outcome.
    """
    reach = mu**2 / 2 + _NORMAL_REACH * mu
    start, stop = math.floor((mu**2 - reach) / width), math.ceil(reach / width)
    edges: FloatArray = np.arange(start, stop + 1, dtype=np.float64) * width
    upper, beyond = _normal_parts((edges - mu**2 / 2) / mu)
    lower, _ = _normal_parts((edges + mu**2 / 2) / mu)
    above = (upper - lower * np.exp(edges[:-1])) / -math.expm1(-width)
    above = np.clip(above, 0.0, upper)
    mass = np.append(upper - above, 0.0)
    mass[1:] += above
    mass[0] += max(0.0, 1.0 - beyond - float(upper.sum()))  # what lies below the first edge
    return LossGrid(start=start, mass=mass, infinite=beyond, width=width)


def regrid(grid: LossGrid, *, width: float) -> LossGrid:
    """Return the law on a coarser grid."""
    seen = grid.mass > 0
    return _on_grid(grid.losses[seen], grid.mass[seen], infinite=grid.infinite, width=width)


def compose(one: LossGrid, other: LossGrid) -> LossGrid:
    """Return the loss of two independent releases, both on grids of the same width."""
    size = len(one.mass) + len(other.mass) - 1
    fast = 1 << (size - 1).bit_length()
    transformed = np.fft.rfft(one.mass, fast) * np.fft.rfft(other.mass, fast)
    mass = np.maximum(np.fft.irfft(transformed, fast)[:size], 0.0)
    infinite = one.infinite + other.infinite - one.infinite * other.infinite
    return _cut(
        LossGrid(start=one.start + other.start, mass=mass, infinite=infinite, width=one.width)
    )


def compose_many(one: LossGrid, count: int) -> LossGrid:
    """Return the loss of `count` independent copies, by one Fourier transform."""
    losses, kept = one.losses, float(one.mass.sum())
    mean = float(one.mass @ losses) / kept
    spread = float(one.mass @ ((losses - mean) ** 2)) / kept
    deviation = math.sqrt(max(spread, one.width**2))
    centre = round(count * mean / one.width)
    reach = math.ceil(_REACH * deviation * math.sqrt(count) / one.width) + len(one.mass)
    size = 1 << math.ceil(math.log2(2 * reach + 1))
    while True:
        start = centre - size // 2
        outside = _mass_beyond(one, count, low=start * one.width, high=(start + size) * one.width)
        # Rare large losses have longer tails than their deviation tells.
        if outside <= _NEGLIGIBLE or size >= _LARGEST_WINDOW:
            break
        size *= 2
    # Cells are taken modulo `size`, so that the composed law is centred in the window.
    padded = np.zeros(size)
    np.add.at(padded, (one.start + np.arange(len(one.mass))) % size, one.mass)
    composed = np.fft.irfft(np.fft.rfft(padded) ** count, n=size)
    mass = np.maximum(composed[(start + np.arange(size)) % size], 0.0)
    infinite = min(1.0, -math.expm1(count * math.log1p(-one.infinite)) + outside)
    return _cut(LossGrid(start=start, mass=mass, infinite=infinite, width=one.width))


def delta_at(grid: LossGrid, epsilon: float) -> float:
    """Return delta at this epsilon: E max(0, 1 - e^(epsilon - loss))."""
    over = max(0, math.floor(epsilon / grid.width) + 1 - grid.start)
    gains = -np.expm1(epsilon - grid.losses[over:])
    return min(1.0, grid.infinite + float(grid.mass[over:] @ np.maximum(gains, 0.0)))


def epsilon_at(grid: LossGrid, delta: float) -> float:
    """Return the least epsilon >= 0 at which delta is at most this; infinite if there is none."""
    if delta_at(grid, 0.0) <= delta:
        return 0.0
    if grid.infinite > delta:
        return math.inf
    # From a cell on: T - e^(epsilon - loss) W + infinite, with the sums of p and of p e^(loss - its
    # own loss) from there.
    losses = grid.losses
    tail = np.cumsum(grid.mass[::-1])[::-1]
    weighted = _weighted_tail(grid)
    at_cell = tail - weighted + grid.infinite
    # Delta is still above at the last such cell; the answer lies between it and the next one.
    first = int(np.flatnonzero((losses > 0) & (at_cell <= delta))[0])
    epsilon = losses[first] + math.log((tail[first] + grid.infinite - delta) / weighted[first])
    return max(0.0, min(float(epsilon), float(losses[first])))


def _weighted_tail(grid: LossGrid) -> FloatArray:
    """Return for each cell the sum of p_j e^(loss - loss_j) over itself and all cells above."""
    losses = grid.losses
    if np.abs(losses[[0, -1]]).max() < _LARGEST_EXPONENT:
        return np.asarray(np.exp(losses) * np.cumsum((grid.mass * np.exp(-losses))[::-1])[::-1])
    # The same from cell to cell, where e^loss is no float. Loaded here: few need it.
    from scipy.signal import lfilter

    found = lfilter([1.0], [1.0, -math.exp(-grid.width)], grid.mass[::-1])
    return np.asarray(found[::-1], dtype=np.float64)


def _on_grid(losses: FloatArray, mass: FloatArray, *, infinite: float, width: float) -> LossGrid:
    cells = np.floor(losses / width).astype(np.int64)
    start = int(cells.min())
    share = np.clip(np.expm1(cells * width - losses) / math.expm1(-width), 0.0, 1.0)
    places, size = cells - start, int(cells.max()) - start + 2
    shared = np.bincount(places, weights=mass * (1 - share), minlength=size).astype(np.float64)
    shared += np.bincount(places + 1, weights=mass * share, minlength=size)
    return LossGrid(start=start, mass=shared, infinite=infinite, width=width)


def _normal_parts(edges: FloatArray) -> tuple[FloatArray, float]:
    """Return the normal mass between consecutive edges, and beyond the last one."""
    # The smaller side's mass has full relative precision, so differences are taken of it alone.
    tails = normal_tails(np.abs(edges))
    first, second = tails[:-1], tails[1:]
    right, left = edges[:-1] >= 0, edges[1:] <= 0
    between = np.where(right, first - second, np.where(left, second - first, 1 - first - second))
    beyond = tails[-1] if edges[-1] >= 0 else 1 - tails[-1]
    return between, float(beyond)


def _cut(grid: LossGrid) -> LossGrid:
    """Give up negligible ends, which rounding errors of the transform would keep alive."""
    below = int(np.searchsorted(np.cumsum(grid.mass), _CUT))
    above = int(np.searchsorted(np.cumsum(grid.mass[::-1]), _CUT))
    stop = max(len(grid.mass) - above, below + 1)
    mass = grid.mass[below:stop].copy()
    mass[0] += float(grid.mass[:below].sum())
    infinite = min(1.0, grid.infinite + float(grid.mass[stop:].sum()))
    return LossGrid(start=grid.start + below, mass=mass, infinite=infinite, width=grid.width)


def _mass_beyond(one: LossGrid, count: int, *, low: float, high: float) -> float:
    """Chernoff bound on the mass of the composed loss outside [low, high)."""
    seen = one.mass > 0
    losses, mass = one.losses[seen], one.mass[seen]
    typical = math.sqrt(count) * max(one.width, math.sqrt(float(mass @ (losses**2))))
    # Where a rare loss is far above the typical total, small orders give the better bound.
    lowest = 0.1 / max(typical, float(np.abs(losses).max()))
    orders = np.geomspace(lowest, 1e5 / typical, 61)
    total = 0.0
    for sign, limit in ((1.0, high), (-1.0, -low)):
        top = float((sign * losses).max())
        exponent = 0.0
        for order in orders:
            moment = order * top + math.log(float(mass @ np.exp(order * (sign * losses - top))))
            exponent = min(exponent, count * moment - order * limit)
        total += math.exp(exponent)
    return total
