"""Exact discrete Laplace and Gaussian noise of any scale, in whole numbers: no rounding anywhere.

The samplers are those of Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential
Privacy" (2020). Scales are fractions and every decision compares a uniform whole number.
`kernels/discrete_gaussian.py` has the same distribution for the scales of most draws, compiled.
"""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from splitmeans import _validate
from splitmeans._types import IntArray
from splitmeans.errors import ParameterError

LARGEST_SCALE = 2.0**55
"""Of either kind of noise: a draw beyond 64 bits has a probability below exp(-255)."""

# Bytes that are asked for at once.
_BLOCK_BYTES = 1 << 12


class RandomBytes:
    """An endless tape of uniform bytes.

    Args:
        more: Returns the given number of further bytes.
    """

    def __init__(self, more: Callable[[int], bytes]) -> None:
        self._more = more
        self._bytes, self._used = b"", 0

    def take(self, n_bytes: int) -> bytes:
        """Return the next bytes."""
        end = self._used + n_bytes
        if end > len(self._bytes):
            fresh = self._more(max(_BLOCK_BYTES, n_bytes))
            self._bytes, self._used, end = self._bytes[self._used :] + fresh, 0, n_bytes
        taken, self._used = self._bytes[self._used : end], end
        return taken

    def below(self, bound: int) -> int:
        """Return a uniform number from 0 to bound - 1; numbers beyond are rejected."""
        n_bits = (bound - 1).bit_length()
        n_bytes, spare = -(-n_bits // 8), -n_bits % 8
        while True:
            number = int.from_bytes(self.take(n_bytes), "little") >> spare
            if number < bound:
                return number


def laplace(scale: float, size: int, source: RandomBytes) -> IntArray:
    """Return integers with P(x) proportional to exp(-|x| / scale), shape (size,)."""
    exact = _checked(scale)
    return np.array([draw_laplace(exact, source) for _ in range(size)], dtype=np.int64)


def gaussian(scale: float, size: int, source: RandomBytes) -> IntArray:
    """Return integers with P(x) proportional to exp(-x^2 / (2 scale^2)), shape (size,)."""
    exact = _checked(scale)
    return np.array([draw_gaussian(exact, source) for _ in range(size)], dtype=np.int64)


def _checked(scale: float) -> Fraction:
    _validate.positive(scale=scale)
    if scale > LARGEST_SCALE:
        raise ParameterError(
            f"the scale of noise must be at most 2^55, got {scale:g}: draws would leave 64-bit "
            "integers; choose a larger epsilon"
        )
    return Fraction(float(scale))


def draw_gaussian(scale: Fraction, source: RandomBytes) -> int:
    """Algorithm 3: Laplace noise of whole scale, kept with the right probability."""
    variance = scale * scale
    whole = math.floor(scale) + 1
    while True:
        drawn = draw_laplace(Fraction(whole), source)
        # (|y| - variance / whole)^2 / (2 variance) in whole numbers.
        gap = abs(drawn) * whole * variance.denominator - variance.numerator
        below = 2 * variance.numerator * variance.denominator * whole * whole
        if coin(gap * gap, below, source):
            return drawn


def draw_laplace(scale: Fraction, source: RandomBytes) -> int:
    """Algorithm 2: P(x) proportional to exp(-|x| / scale)."""
    t, s = scale.numerator, scale.denominator
    while True:
        part = source.below(t)
        if not coin(part, t, source):
            continue
        whole = 0
        while coin(1, 1, source):
            whole += 1
        size = (part + t * whole) // s
        is_negative = source.below(2)
        if not (is_negative and size == 0):  # zero would come twice
            return -size if is_negative else size


def coin(numerator: int, denominator: int, source: RandomBytes) -> bool:
    """Algorithm 1: True with probability exp(-numerator / denominator)."""
    while numerator > denominator:
        if not coin(1, 1, source):
            return False
        numerator -= denominator
    tries = 1
    while source.below(denominator * tries) < numerator:
        tries += 1
    return tries % 2 == 1
