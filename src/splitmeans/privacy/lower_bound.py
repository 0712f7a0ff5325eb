"""A lower bound on what releases cost, so that a stated epsilon has two sides.

`privacy.pld` rounds every loss up; here every loss is rounded down. Both are about the same pairs
of laws (Gaussian noise as if it were continuous), so the true epsilon of those pairs lies between.
What rounding down takes from many equal releases is given back on average: n independent errors in
[0, w) add up to no less than n times their mean minus 5 w sqrt(n), except with probability e^-50
(Hoeffding).
"""

import functools
import math
from collections.abc import Iterable

import numpy as np

from splitmeans._types import FloatArray
from splitmeans.kernels.normal import normal_tails
from splitmeans.privacy.events import CellSketchEvent, Event, GaussianEvent
from splitmeans.privacy.losses import LossGrid, compose, compose_many, epsilon_at
from splitmeans.privacy.pld import FINE, flatten, gap_of, grouped, laws_of

_DEVIATIONS = 5
_LARGEST_GRID = 2**19
# Deviations at which a normal loss is cut, as in `privacy.losses`.
_NORMAL_REACH = 8.5


def epsilon_at_least(events: Iterable[Event], delta: float, *, interval: float = FINE) -> float:
    """Return an epsilon that no accounting of these events can be below; infinite if none is."""
    parts = tuple(flatten(events))
    if not parts:
        return 0.0
    gap = gap_of(parts)
    # What is drawn may be that much nearer together than the laws that are composed.
    composed = [_composed(grouped(parts), direction, interval) for direction in (0, 1)]
    allowed = math.exp(gap.loss) * delta + gap.delta(0.0)
    epsilon = max(epsilon_at(grid, allowed) for grid in composed)
    allowed = math.exp(gap.loss) * delta + gap.delta(epsilon)
    return max(0.0, max(epsilon_at(grid, min(allowed, 1.0)) for grid in composed) - gap.loss)


def _composed(groups: tuple[tuple[Event, int], ...], direction: int, interval: float) -> LossGrid:
    parts = [_many(event, count, direction, interval) for event, count in groups]
    return functools.reduce(compose, parts)


def _many(event: Event, count: int, direction: int, interval: float) -> LossGrid:
    if isinstance(event, GaussianEvent):
        return _normal(1 / event.noise_multiplier, interval)
    if isinstance(event, CellSketchEvent):
        count *= event.repetitions
    upper, lower = laws_of(event)[direction]
    both = (upper > 0) & (lower > 0)
    losses, mass = np.log(upper[both]) - np.log(lower[both]), upper[both]
    infinite = float(upper[~(lower > 0)].sum())
    if count == 1:
        return _floored(losses, mass, infinite=infinite, width=interval)
    deviation = math.sqrt(max(float(mass @ (losses**2)), interval**2))
    root = math.sqrt(count)
    width = max(interval / root, 28 * deviation * root / _LARGEST_GRID)
    one = _floored(losses, mass, infinite=infinite, width=width)
    error = float(mass @ (losses - np.floor(losses / width) * width)) / float(mass.sum())
    given_back = max(0.0, count * error - _DEVIATIONS * width * root)
    many = compose_many(one, count)
    return _floored(
        many.losses + given_back,
        many.mass,
        infinite=-math.expm1(count * math.log1p(-infinite)),
        width=interval,
    )


def _normal(mu: float, width: float) -> LossGrid:
    reach = mu**2 / 2 + _NORMAL_REACH * mu
    start, stop = math.floor((mu**2 - reach) / width), math.ceil(reach / width)
    edges = (np.arange(start, stop + 1) * width - mu**2 / 2) / mu
    above = normal_tails(np.asarray(edges, dtype=np.float64))
    return LossGrid(start=start, mass=above[:-1] - above[1:], infinite=0.0, width=width)


def _floored(losses: FloatArray, mass: FloatArray, *, infinite: float, width: float) -> LossGrid:
    cells = np.floor(losses / width).astype(np.int64)
    start = int(cells.min())
    shared = np.bincount(cells - start, weights=mass).astype(np.float64)
    return LossGrid(start=start, mass=shared, infinite=infinite, width=width)
