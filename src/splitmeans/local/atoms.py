"""Values that many rows share: points near one are moved onto it. Post-processing, no row is seen.

A bin of a histogram tells how many rows it has, not where in it they are. People write round
numbers: hours are whole, fares have halves, many gains are nothing. Two signs of that show in
released counts of narrow bins:

    steps    bins in which no multiple of a unit lies are as good as empty: all values are multiples
    an atom  one bin has far more than those beside it: the roundest number in it has the excess

Where neither shows, points stay spread over their bins.
"""

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from splitmeans._types import FloatArray, IntArray

# Units that are tried, times powers of ten, the roundest first.
_UNITS = (10.0, 5.0, 2.5)
_POWERS = range(15, -7, -1)
# Bins without a multiple of the unit must be worth this share of the rows, were they even, and have
# a tenth of that at most, beside noise.
_LEAST_SHARE, _MOST_LEFT = 0.04, 0.1
# An atom has this many times what the bins beside it say, and so many deviations more.
_TIMES, _DEVIATIONS = 2.5, 4.0
# Bins on each side that an atom is compared with.
_BESIDE = 2


@dataclass(frozen=True, kw_only=True, eq=False)
class Histogram:
    """A released histogram of a column of numbers, in its own units.

    Attributes:
        ends: Where bins begin and end, ascending, shape (bins + 1,).
        shares: Share of the rows in each.
        even: Share of each bin as if there were no atoms: of points that came before.
        deviation: Standard deviation of the noise in a share.
    """

    ends: FloatArray
    shares: FloatArray
    even: FloatArray
    deviation: float

    @property
    def step(self) -> float | None:
        """The largest unit of which all values seem to be multiples; None if there is none."""
        for unit in _units(float(self.ends[-1] - self.ends[0])):
            empty = ~_has_multiple(self.ends, unit)
            expected = float(self.even[empty].sum())
            if expected < _LEAST_SHARE:
                continue
            found = float(self.shares[empty].sum())
            chance = 2 * self.deviation * math.sqrt(int(empty.sum()))
            if found <= _MOST_LEFT * expected + min(chance, _MOST_LEFT * expected):
                return unit
        return None

    def atoms(self) -> list[tuple[int, float, float]]:
        """Return bins with an atom, its place and what part of the bin's rows it has."""
        found = []
        widths = np.diff(self.ends)
        for place, share in enumerate(self.shares):
            near = [
                other
                for other in range(place - _BESIDE, place + _BESIDE + 1)
                if other != place and 0 <= other < len(widths)
            ]
            # Both by width and by where points were: widths alone mislead where a tail begins.
            beside = float(self.shares[near].sum())
            room, points = float(widths[near].sum()), float(self.even[near].sum())
            if min(room, points, float(widths[place])) <= 0:
                continue
            rest = beside * max(float(widths[place]) / room, float(self.even[place]) / points)
            if share > _TIMES * rest and share - rest > _DEVIATIONS * self.deviation:
                at = _roundest(float(self.ends[place]), float(self.ends[place + 1]))
                found.append((place, at, 1 - rest / float(share)))
        return found


def on_atoms(values: FloatArray, histogram: Histogram, *, rng: np.random.Generator) -> FloatArray:
    """Return values in the same bins, on steps or atoms where the histogram shows some.

    Args:
        values: Values in own units, shape (n,), within the ends.
        histogram: What was released.
        rng: Chooses which values of a bin are at its atom.
    """
    inner = histogram.ends[1:-1]
    bins = np.searchsorted(inner, values, side="right")
    lows, highs = histogram.ends[bins], histogram.ends[bins + 1]
    step = histogram.step
    if step is not None:
        # The nearest multiple that is in the bin; a bin without one keeps its few values.
        first, last = np.ceil(lows / step), np.floor(np.nextafter(highs, lows) / step)
        last = np.where(highs == histogram.ends[-1], np.floor(highs / step), last)
        nearest = np.clip(np.rint(values / step), first, last) * step
        return np.where(first <= last, nearest, values)
    moved = values.copy()
    for place, at, part in histogram.atoms():
        inside = np.flatnonzero(bins == place)
        chosen = rng.permutation(inside)[: round(part * len(inside))]
        moved[chosen] = at
    return moved


def _units(span: float) -> list[float]:
    """Return units up to a column's span, from the largest to a millionth of it."""
    every = [unit * 10.0**power for power in _POWERS for unit in _UNITS]
    return [unit for unit in every if span * 1e-6 <= unit <= span]


def _has_multiple(ends: FloatArray, unit: float) -> IntArray:
    """Say which bins hold a multiple; a bin holds its lower end, and the last one both."""
    first = np.ceil(ends[:-1] / unit - 1e-9)
    return np.asarray(
        [
            (one * unit < high - 1e-9 * unit) or (high == ends[-1] and one * unit <= high)
            for one, (_, high) in zip(first, pairwise(ends), strict=True)
        ]
    )


def _roundest(low: float, high: float) -> float:
    """Return the roundest number from low to below high; of equally round ones the middle one."""
    middle = (low + high) / 2
    for power in _POWERS:
        for unit in _UNITS:
            size = unit * 10.0**power
            nearest = round(middle / size) * size
            for tried in (nearest, nearest - size, nearest + size):
                if low <= tried < high:
                    return tried
    return middle
