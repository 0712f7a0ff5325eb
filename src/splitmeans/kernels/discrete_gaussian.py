"""Exact discrete Gaussian noise of any scale s >= 1, in 64-bit whole numbers, from uniform words.

P(x) is proportional to exp(-x^2 / (2 s^2)) for all integers x. Every step below compares uniform
whole numbers; there is no rounding anywhere. A scale is a number in double precision, and so a
fraction a / b of whole numbers, b a power of two. The method is that of Karney, "Sampling exactly
from the normal distribution" (2016): with k the whole part of |x| / s and t the rest

    x^2 / (2 s^2) = k / 2 + k (k - 1) / 2 + t (2 k + t) / 2

1.  k is the number of coins of exp(-1/2) that fall before one does not, kept if k (k - 1) more
    coins fall: P(k) is proportional to exp(-k^2 / 2).
2.  j is uniform below s rounded up, and so is the sign; |x| is j above the first integer that is
    k s or more, so t = (b |x| - k a) / a. A draw of t >= 1 is thrown away: that x has another k.
3.  The draw is kept with probability exp(-t (2 k + t) / 2): if k + 1 coins of exp(-g) fall, with
    g = t (2 k + t) / (2 k + 2) <= 1.
4.  Minus zero is thrown away: zero would come twice.

A coin of exp(-g), g <= 1, is the coin of Forsythe and von Neumann: how often in a row an event of
probability g / 1, g / 2, g / 3, ... happens is even with probability exp(-g), and such an event is
that several uniform numbers lie below given ones.

A draw is a function of an endless tape of words. Where the tape at hand ends within a draw, that
draw is made again from where it began on a longer tape, so its law does not depend on lengths.
"""

from collections.abc import Callable

import numpy as np

from splitmeans._types import IntArray, WordArray
from splitmeans.kernels.compiled import kernel

# a and b are below 2^53, so all products stay below 2^62 for k up to 200; P(k > 100) < 2^-7000.
LARGEST_SCALE = 2**48

# About what a draw takes; more is asked for where it does not do.
_WORDS_A_DRAW = 24


def discrete_gaussian(scale: float, size: int, words: Callable[[int], WordArray]) -> IntArray:
    """Return draws, shape (size,); inputs already validated.

    Args:
        scale: Between 1 and LARGEST_SCALE.
        size: Number of draws.
        words: Returns fresh uniform words, as many as it is asked for.
    """
    above, below = float(scale).as_integer_ratio()
    drawn = np.empty(size, dtype=np.int64)
    done, tape = 0, words(0)
    while done < size:
        tape = np.concatenate([tape, words(_WORDS_A_DRAW * (size - done) + _WORDS_A_DRAW)])
        done, used = _fill(tape, np.int64(above), np.int64(below), np.int64(done), drawn)
        tape = tape[used:]
    return drawn


@kernel
def _fill(tape, a, b, done, drawn):  # type: ignore[no-untyped-def]
    """Fill `drawn` (size,) (OUT) from `done` on; return how many there are, and the words used."""
    used = np.int64(0)
    while done < drawn.size:
        value, at = _draw(tape, used, a, b)
        if at > tape.size:
            break
        drawn[done] = value
        done += 1
        used = at
    return done, used


# Functions below return a result and where the tape goes on; beyond its end the result is void.


@kernel
def _draw(tape, at, a, b):  # type: ignore[no-untyped-def]
    n_sizes = (a + b - 1) // b
    while at <= tape.size:
        k = np.int64(0)
        falls, at = _coin(tape, at, np.int64(1), np.int64(2), np.int64(1), np.int64(1))
        while falls and at <= tape.size:
            k += 1
            falls, at = _coin(tape, at, np.int64(1), np.int64(2), np.int64(1), np.int64(1))
        kept, at = _coins(tape, at, k * (k - 1), np.int64(1), np.int64(2), np.int64(1), np.int64(1))
        if not kept:
            continue
        j, at = _below(tape, at, n_sizes)
        negative, at = _below(tape, at, np.int64(2))
        size = (k * a + b - 1) // b + j
        rest = b * size - k * a
        if rest >= a:
            continue
        # t = rest / a, and (2 k + t) / (2 k + 2) with both multiplied by a.
        kept, at = _coins(tape, at, k + 1, rest, a, 2 * k * a + rest, (2 * k + 2) * a)
        if kept and not (negative == 1 and size == 0):
            return (-size if negative == 1 else size), at
    return np.int64(0), at


@kernel
def _coins(tape, at, n, a, b, c, d):  # type: ignore[no-untyped-def]
    """Whether n coins of exp(-(a / b) (c / d)) all fall."""
    for _ in range(n):
        falls, at = _coin(tape, at, a, b, c, d)
        if not falls or at > tape.size:
            return False, at
    return True, at


@kernel
def _coin(tape, at, a, b, c, d):  # type: ignore[no-untyped-def]
    """Whether a coin of exp(-(a / b) (c / d)) falls; neither fraction is above 1."""
    turn = np.int64(1)
    while at <= tape.size:
        below, at = _below(tape, at, b)
        if below >= a:
            break
        below, at = _below(tape, at, d)
        if below >= c:
            break
        below, at = _below(tape, at, turn)
        if below >= 1:
            break
        turn += 1
    return turn % 2 == 1, at


@kernel
def _below(tape, at, bound):  # type: ignore[no-untyped-def]
    """A uniform number from 0 to bound - 1; what lies beyond is thrown away."""
    if bound == 1:
        return np.int64(0), at
    mask = bound - 1
    for shift in (1, 2, 4, 8, 16, 32):
        mask |= mask >> shift
    while at < tape.size:
        value = np.int64(tape[at] & np.uint64(mask))
        at += 1
        if value < bound:
            return value, at
    return np.int64(0), tape.size + 1
