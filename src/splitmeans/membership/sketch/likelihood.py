"""Maximum likelihood of set sizes behind floored registers, one set or a pair of sets at a time.

With F the law of one value, a register of n elements is at most x with probability F(x)^n, and for
two sets of a and b elements that share w

    P(A <= x, B <= y) = F(min(x, y))^w F(x)^(a-w) F(y)^(b-w),    x, y >= floor.

Where A < B the smaller register is all of the first set's and the larger all of what only the
second has, so a row enters the likelihood of w through its larger register and which of the two it
is: three histograms per pair hold all there is to know. All functions work on many sets or pairs at
once; probabilities are kept as logarithms of F and of its steps, so nothing cancels.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from splitmeans._types import FloatArray, IntArray, RegisterArray
from splitmeans.kernels.tallies import tally_columns
from splitmeans.privacy.register_law import log_cdf, log_cdf_step

# Halvings of an interval. For sizes what is left of it is below the rounding of doubles; for an
# overlap it is 1e-11 of the smaller set.
_HALVINGS = 50
_PAIR_HALVINGS = 32
# No set is taken to be smaller, nor an overlap closer to its limit: there slopes are infinite.
_LEAST = 1e-9
# Overlaps that are tried first, so that the search starts at the highest of several peaks.
_STARTS = np.linspace(0.0, 1.0, 33)[1:-1]


@dataclass(frozen=True, kw_only=True)
class RegisterScale:
    """The values that registers of a message take, with the law at each.

    Attributes:
        floor: The lowest value.
        log_f: log F(v) for v = floor, floor + 1, ..., shape (V,).
        step: log F(v) - log F(v-1), shape (V,); infinite at the floor, which takes all below it.
    """

    floor: int
    log_f: FloatArray
    step: FloatArray

    @classmethod
    def of(cls, *, gamma: float, floor: int, largest: int) -> "RegisterScale":
        """Return the scale from the floor to the largest value; a floor of 0 counts as 1."""
        values = np.arange(max(floor, 1), largest + 1)
        step = log_cdf_step(values, gamma=gamma)
        step[0] = np.inf
        return cls(floor=int(values[0]), log_f=log_cdf(values, gamma=gamma), step=step)

    @property
    def size(self) -> int:
        """The number of values, V."""
        return self.log_f.size


def tally(registers: RegisterArray, scale: RegisterScale) -> IntArray:
    """Count each column's values, shape (k, V); `registers` has shape (M, k)."""
    return np.stack(
        [np.bincount(column, minlength=scale.size) for column in (registers - scale.floor).T]
    )


class PairTally(NamedTuple):
    """Rows of each pair of columns by their larger register, each of shape (k_1, k_2, V)."""

    first: IntArray
    second: IntArray
    equal: IntArray


def tally_pairs(one: RegisterArray, other: RegisterArray, scale: RegisterScale) -> PairTally:
    """Count the rows of every pair of columns by which register is larger, and its value."""
    first, second, equal = tally_columns(one, other, floor=scale.floor, size=scale.size)
    return PairTally(first=first, second=second, equal=equal)


def set_sizes(counts: IntArray, scale: RegisterScale) -> FloatArray:
    """Return the most likely number of elements behind each row of `counts`, shape (k,).

    The log-likelihood is concave; its slope falls from infinity to a negative number, or is
    negative from the start if all registers are at the floor, where the answer is 0.
    """
    # In logarithms the interval from e^-20 to e^30 takes in all that 16-bit registers can show.
    low, high = np.full(len(counts), -20.0), np.full(len(counts), 30.0)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        rising = size_score(np.exp(middle), counts, scale) > 0
        low, high = np.where(rising, middle, low), np.where(rising, high, middle)
    return np.asarray(np.where(counts[:, 1:].any(axis=1), np.exp((low + high) / 2), 0.0))


def size_score(sizes: FloatArray, counts: IntArray, scale: RegisterScale) -> FloatArray:
    """Return the slope of the log-likelihood of `sizes`, shape (k,)."""
    return np.asarray((counts * _slope(sizes[:, None], scale)).sum(axis=-1))


def shared_sizes(
    a: FloatArray, b: FloatArray, tallies: PairTally, scale: RegisterScale
) -> FloatArray:
    """Return the most likely number of shared elements w of each pair, shape (k_1, k_2).

    `a` and `b` are the elements of each first and each second set, shapes (k_1,) and (k_2,); a
    negative number counts as none.
    """
    first, second = np.broadcast_arrays(np.maximum(a, _LEAST)[:, None], np.maximum(b, _LEAST))
    most = np.minimum(first, second) * (1 - _LEAST)
    used = np.flatnonzero(sum(part.sum(axis=(0, 1)) for part in tallies))
    tallies = PairTally(*(part[:, :, used] for part in tallies))
    scale = RegisterScale(floor=scale.floor, log_f=scale.log_f[used], step=scale.step[used])
    starts = np.stack(
        [pair_log_likelihood(s * most, first, second, tallies, scale) for s in _STARTS]
    )
    best = starts.argmax(axis=0)
    padded = np.concatenate([[0.0], _STARTS, [1.0]])
    low, high = padded[best] * most, padded[best + 2] * most
    for _ in range(_PAIR_HALVINGS):
        middle = (low + high) / 2
        rising = pair_score(middle, first, second, tallies, scale) > 0
        low, high = np.where(rising, middle, low), np.where(rising, high, middle)
    return np.asarray((low + high) / 2)


def pair_log_likelihood(
    w: FloatArray, a: FloatArray, b: FloatArray, tallies: PairTally, scale: RegisterScale
) -> FloatArray:
    """Return the log-likelihood of w up to what does not depend on w, shape that of w."""
    w, a, b = w[..., None], a[..., None], b[..., None]
    with np.errstate(divide="ignore"):
        terms = (
            tallies.first * _log_mass(a - w, scale)
            + tallies.second * _log_mass(b - w, scale)
            + tallies.equal * ((a + b - w) * scale.log_f + np.log(_both(w, a, b, scale)))
        )
    return np.asarray(terms.sum(axis=-1))


def pair_score(
    w: FloatArray, a: FloatArray, b: FloatArray, tallies: PairTally, scale: RegisterScale
) -> FloatArray:
    """Return the slope of `pair_log_likelihood` in w."""
    w, a, b = w[..., None], a[..., None], b[..., None]
    with np.errstate(invalid="ignore"):
        gain = scale.step * np.exp(-(a + b - w) * scale.step) / _both(w, a, b, scale)
    gain = np.where(np.isinf(scale.step), 0.0, gain)
    terms = (
        tallies.equal * (gain - scale.log_f)
        - tallies.first * _slope(a - w, scale)
        - tallies.second * _slope(b - w, scale)
    )
    return np.asarray(terms.sum(axis=-1))


def _both(w: FloatArray, a: FloatArray, b: FloatArray, scale: RegisterScale) -> FloatArray:
    """Return P(A = B = v) / F(v)^(a+b-w): each set's own top, or one that both share."""
    with np.errstate(invalid="ignore"):
        shared = np.exp(-(a + b - w) * scale.step) * -np.expm1(-w * scale.step)
        apart = np.expm1(-a * scale.step) * np.expm1(-b * scale.step)
    return np.where(np.isinf(scale.step), 1.0, apart + shared)


def _log_mass(n: FloatArray, scale: RegisterScale) -> FloatArray:
    """Return log P(register of n elements = v)."""
    return np.asarray(n * scale.log_f + np.log(-np.expm1(-n * scale.step)))


def _slope(n: FloatArray, scale: RegisterScale) -> FloatArray:
    """Return the derivative of `_log_mass` in n."""
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        gain = scale.step / np.expm1(n * scale.step)
    return scale.log_f + np.where(np.isinf(scale.step), 0.0, gain)
