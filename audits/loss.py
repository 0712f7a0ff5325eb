"""A proved lower bound on the privacy loss of many independent rows.

The accountant (`privacy.pld`) rounds towards more loss, as a guarantee must. To show that a claim
is broken one needs the other side: every step here rounds towards less loss, so that the true cost
is at least what is returned.
"""

import functools
import math
from dataclasses import dataclass

import numpy as np
from scipy import fft

from splitmeans import _validate
from splitmeans._types import FloatArray

# Steps of the grid that total losses are rounded to.
GRID_POINTS = 2**21
# Probability that the rounding correction is too large; and that a total falls below the grid, or
# above it (those are only lost). All are tiny beside a delta of 10^-5.
_CORRECTION_FAILURE = 1e-10
_BELOW_GRID = 1e-14
_ABOVE_GRID = 1e-8
# Rounding errors of the Fourier transforms, added up over the grid, stay below this.
_NUMERICAL = 1e-9
# Orders at which Chernoff's bound is tried.
_ORDERS = np.geomspace(1e-3, 1e4, 120)


@dataclass(frozen=True, kw_only=True, eq=False)
class LossBound:
    """Law of a total loss that the true total loss exceeds, except with probability `failure`."""

    losses: FloatArray
    probabilities: FloatArray
    failure: float

    @functools.cached_property
    def _tails(self) -> tuple[FloatArray, FloatArray]:
        """For every place: the sums of p and of p e^-loss from there on."""
        tilted = self.probabilities * np.exp(-self.losses)
        return np.cumsum(self.probabilities[::-1])[::-1], np.cumsum(tilted[::-1])[::-1]

    def delta(self, epsilon: float) -> float:
        """Return a lower bound on delta at this epsilon: E max(0, 1 - e^(epsilon - loss))."""
        place = int(np.searchsorted(self.losses, epsilon, side="right"))
        if place == self.losses.size:
            return 0.0
        there, away = (float(tail[place]) for tail in self._tails)
        return max(0.0, there - math.exp(epsilon) * away - self.failure)

    def epsilon(self, delta: float) -> float:
        """Return a lower bound on epsilon at this delta, to within 10^-6."""
        low, high = 0.0, float(self.losses[-1])
        if self.delta(low) <= delta:
            return 0.0
        while high - low > 1e-6:
            middle = (low + high) / 2
            low, high = (middle, high) if self.delta(middle) > delta else (low, middle)
        return low


def compose_rows(
    one: FloatArray, other: FloatArray, *, rows: int, points: int = GRID_POINTS
) -> LossBound:
    """Bound the total of log(one / other) under `one`, over independent rows, from below.

    `one` and `other` are probabilities on the same finite set. Each row's loss is rounded down to a
    grid of width h. What rounding took off is a sum of independent values in [0, h). By Hoeffding's
    inequality it is at least its mean minus h sqrt(rows ln(1/f) / 2), except with probability f,
    and that much is given back. The result is within twice that of the true law.

    `points` must be well above `rows`, so that rounding stays small beside the spread of totals.
    """
    _validate.at_least(16 * rows, points=points)
    seen = one > 0
    p = one[seen]
    with np.errstate(divide="ignore"):
        loss = np.log(p) - np.log(other[seen])
    low, high = _range(p, loss, rows=rows, points=points)
    width = (high - low) / (points - 1)
    loss = np.minimum(loss, high)
    step = np.floor(loss / width).astype(np.int64)
    taken_off = np.clip(loss - step * width, 0.0, width)

    row = np.bincount(step % points, weights=p, minlength=points)
    total = fft.irfft(fft.rfft(row) ** rows, n=points)
    # Totals above the grid come back lower down, which only loses loss; the range is such that
    # totals below it, which would come back as large ones, hardly ever happen.
    first = math.floor(low / width)
    on_grid = np.maximum(np.roll(total, -(first % points)), 0.0)
    spread = width * math.sqrt(rows * math.log(1 / _CORRECTION_FAILURE) / 2)
    given_back = max(0.0, rows * float(p @ taken_off) - spread)
    return LossBound(
        losses=np.asarray((first + np.arange(points)) * width + given_back, dtype=np.float64),
        probabilities=on_grid,
        failure=_CORRECTION_FAILURE + _BELOW_GRID + _NUMERICAL,
    )


def _range(p: FloatArray, loss: FloatArray, *, rows: int, points: int) -> tuple[float, float]:
    """Return where totals lie, by Chernoff's bound; the last step of rounding down is included."""
    finite = np.minimum(loss, loss[np.isfinite(loss)].max() + 1.0)
    mass = np.log(p)
    up = [rows * _log_sum(mass + s * finite) - math.log(_ABOVE_GRID) for s in _ORDERS]
    down = [rows * _log_sum(mass - s * finite) - math.log(_BELOW_GRID) for s in _ORDERS]
    high = min(value / s for value, s in zip(up, _ORDERS, strict=True))
    low = -min(value / s for value, s in zip(down, _ORDERS, strict=True))
    # Rounding each row down moves the total by at most one grid width per row.
    margin = 2 * rows * (high - low) / points
    return low - margin, high + margin


def _log_sum(values: FloatArray) -> float:
    top = float(values.max())
    return top + math.log(float(np.exp(values - top).sum()))
