"""The distribution of sketch registers, as integer tables that 64-bit words are looked up in.

A register value Y of one user in one row is geometric, P(Y <= v) = F(v) = 1 - (1+gamma)^-v for
v = 1, 2, ... (paper, section 4.2). Every draw is a look-up of a uniform 64-bit word in an integer
table built with 60-digit decimals, so that all machines draw the same value from the same word.
"""

import functools
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext

import numpy as np

from splitmeans import _validate
from splitmeans._types import WordArray
from splitmeans.errors import ParameterError

# 60 digits leave about 40 correct ones after the longest sums and powers here; a table needs 20.
EXACT = Context(prec=60, Emax=MAX_EMAX, Emin=MIN_EMIN)
_ONE = Decimal(1)
# With these limits a register stays below 8,000 (it has 16 bits) and a table below 8,000 entries,
# but for the binomial table of an unusually low floor, which has up to M.
_GAMMA_RANGE = (0.01, 3.0)


@dataclass(frozen=True, kw_only=True)
class RegisterLaw:
    """The geometric law of register values, as threshold tables for 64-bit words.

    Entry i of a table is P(X <= x_i) in units of 2^-64, rounded to the nearest whole number, and a
    word w stands for x_j with j = the number of entries <= w. Entries that round to 2^64 are left
    out, so a value that is exceeded with probability below 2^-65 is the largest that occurs. A draw
    from a table of L entries is within (L+1) 2^-65 of the exact law in total variation: below
    4e-16 for every table of values, and below 2e-18 at gamma = 1.
    """

    gamma: float

    def __post_init__(self) -> None:
        _validate.finite(gamma=self.gamma)
        low, high = _GAMMA_RANGE
        if not low <= self.gamma <= high:
            raise ParameterError(f"gamma must be between {low} and {high}, got {self.gamma!r}")

    @property
    def value_table(self) -> WordArray:
        """Thresholds of one value: entry i is P(Y <= i + 1)."""
        return _maximum_table(self.gamma, 1)

    def maximum_table(self, count: int) -> WordArray:
        """Return thresholds of the maximum of `count` values: entry i is F(i + 1)^count."""
        _validate.at_least(1, count=count)
        return _maximum_table(self.gamma, count)

    def count_table(self, *, repetitions: int, floor: int) -> WordArray:
        """Return thresholds of how many of M values exceed `floor`: entry i is P(K <= i)."""
        _validate.at_least(1, repetitions=repetitions)
        _validate.at_least(0, floor=floor)
        return _count_table(self.gamma, repetitions, floor)

    def largest(self, *, floor: int, phantoms: int) -> int:
        """Return the largest value that the tables can give a register."""
        from_users = floor + self.value_table.size + 1
        return max(from_users, self.maximum_table(phantoms).size + 1)


def tails(gamma: float) -> Iterator[Decimal]:
    """Yield P(Y > v) = (1+gamma)^-v for v = 0, 1, 2, ...; to be used in the exact context."""
    ratio = 1 / (1 + Decimal(float(gamma)))
    return itertools.accumulate(itertools.repeat(ratio), lambda tail, r: tail * r, initial=_ONE)


@functools.lru_cache(maxsize=64)
def _maximum_table(gamma: float, count: int) -> WordArray:
    with localcontext(EXACT):
        return _thresholds((1 - tail) ** count for tail in itertools.islice(tails(gamma), 1, None))


@functools.lru_cache(maxsize=64)
def _count_table(gamma: float, repetitions: int, floor: int) -> WordArray:
    with localcontext(EXACT):
        above = next(itertools.islice(tails(gamma), floor, None))
        return _thresholds(_binomial_cdf(repetitions, above))


def _binomial_cdf(trials: int, success: Decimal) -> Iterator[Decimal]:
    """Yield P(K <= j) for j below `trials`; the last one is 1, which a table leaves out."""
    if success == 1:
        yield from itertools.repeat(Decimal(0), trials)
        return
    odds = success / (1 - success)
    mass = total = (1 - success) ** trials
    for count in range(trials):
        yield total
        mass = mass * (trials - count) / (count + 1) * odds
        total += mass


def _thresholds(cdf: Iterable[Decimal]) -> WordArray:
    scaled = (int((probability * 2**64).to_integral_value()) for probability in cdf)
    table = np.array(list(itertools.takewhile(lambda t: t < 2**64, scaled)), dtype=np.uint64)
    table.setflags(write=False)
    return table
