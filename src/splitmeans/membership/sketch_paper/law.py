"""Public law of the sketch: how registers are distributed, and the published parameters.

A register value Y of one user in one row is geometric, P(Y <= v) = F(v) = 1 - (1+gamma)^-v for
v = 1, 2, ... (paper, section 4.2). Every draw is a look-up of a uniform 64-bit word in an integer
table built with 60-digit decimals, so that all machines draw the same value from the same word.
"""

import functools
import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, Context, Decimal, localcontext
from typing import ClassVar

import numpy as np

from splitmeans import _validate
from splitmeans._types import WordArray
from splitmeans.errors import ParameterError, PrivacyError
from splitmeans.privacy.events import PublishedSketchEvent

# 60 digits leave about 40 correct ones after the longest sums and powers here; a table needs 20.
_EXACT = Context(prec=60, Emax=MAX_EMAX, Emin=MIN_EMIN)
_ONE = Decimal(1)
# With these limits a register stays below 8,000 (it has 16 bits) and a table below 8,000 entries,
# but for the binomial table of an unusually low floor, which has up to M.
_GAMMA_RANGE = (0.01, 3.0)
_LEAST_EPSILON = 1e-9
_MOST_REPETITIONS = 65_536


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


@dataclass(frozen=True, kw_only=True)
class SketchPaperLaw:
    """The membership sketch as published (paper, Algorithms 2 and 3), one party's share.

    Guarantee: the paper's theorem on Algorithm 3 states (epsilon, delta) for adding or removing one
    user and for one party's sketch alone. Sketches of several parties share hash keys; their joint
    cost is not the sum of the parties' costs (docs/concepts/published-argument.md).

    Attributes:
        epsilon: The paper's epsilon_2.
        delta: The paper's delta_2.
        gamma: Growth of the geometric law; smaller is finer.
        repetitions: M, the number of rows.
    """

    TAG: ClassVar[str] = "PublishedSketch"

    epsilon: float
    delta: float
    gamma: float
    repetitions: int

    def __post_init__(self) -> None:
        _validate.positive(epsilon=self.epsilon)
        _validate.open_unit(delta=self.delta)
        _validate.at_least(1, repetitions=self.repetitions)
        if self.repetitions > _MOST_REPETITIONS:
            raise ParameterError(
                f"repetitions must be <= {_MOST_REPETITIONS}, got {self.repetitions}"
            )
        if self.epsilon < _LEAST_EPSILON:
            raise ParameterError(f"epsilon must be >= {_LEAST_EPSILON}, got {self.epsilon!r}")
        most = 2 * math.log(1 / self.delta)
        if self.epsilon > most:
            raise PrivacyError(
                f"epsilon of the published sketch must be <= 2 ln(1/delta) = {most:.4g} for its "
                f"privacy lemma to hold, got {self.epsilon!r}"
            )
        RegisterLaw(gamma=self.gamma)

    @property
    def registers(self) -> RegisterLaw:
        """The law of the register values."""
        return RegisterLaw(gamma=self.gamma)

    @functools.cached_property
    def phantoms(self) -> int:
        """Phantom users per cluster: n_p = ceil(1 / (e^epsilon' - 1))."""
        with localcontext(_EXACT):
            exact = 1 / (_epsilon_prime(self.epsilon, self.delta, self.repetitions).exp() - 1)
            return int(exact.to_integral_value(rounding=ROUND_CEILING))

    @functools.cached_property
    def floor(self) -> int:
        """Smallest register value: the least v with (1+gamma)^-v <= 1 - e^-epsilon'."""
        with localcontext(_EXACT):
            bound = 1 - (-_epsilon_prime(self.epsilon, self.delta, self.repetitions)).exp()
            return next(v for v, tail in enumerate(_tails(self.gamma)) if tail <= bound)

    @property
    def phantom_table(self) -> WordArray:
        """Thresholds of the maximum of all phantoms of a cluster in one row."""
        return self.registers.maximum_table(self.phantoms)

    @property
    def largest_register(self) -> int:
        """Largest value that the tables can give a register."""
        return self.registers.largest(floor=self.floor, phantoms=self.phantoms)

    @property
    def event(self) -> PublishedSketchEvent:
        """What the release of one party's sketch does to privacy, as the paper accounts for it."""
        return PublishedSketchEvent(
            repetitions=self.repetitions,
            gamma=self.gamma,
            phantoms=self.phantoms,
            floor=self.floor,
            claimed_epsilon=self.epsilon,
            claimed_delta=self.delta,
        )


def _epsilon_prime(epsilon: float, delta: float, repetitions: int) -> Decimal:
    # Decimals, not floats: every party must find the same phantoms and floor on every machine.
    with localcontext(_EXACT):
        return Decimal(float(epsilon)) / (
            4 * (int(repetitions) * -Decimal(float(delta)).ln()).sqrt()
        )


def _tails(gamma: float) -> Iterator[Decimal]:
    """Yield P(Y > v) = (1+gamma)^-v for v = 0, 1, 2, ...; to be used in the exact context."""
    ratio = 1 / (1 + Decimal(float(gamma)))
    return itertools.accumulate(itertools.repeat(ratio), lambda tail, r: tail * r, initial=_ONE)


@functools.lru_cache(maxsize=64)
def _maximum_table(gamma: float, count: int) -> WordArray:
    with localcontext(_EXACT):
        return _thresholds((1 - tail) ** count for tail in itertools.islice(_tails(gamma), 1, None))


@functools.lru_cache(maxsize=64)
def _count_table(gamma: float, repetitions: int, floor: int) -> WordArray:
    with localcontext(_EXACT):
        above = next(itertools.islice(_tails(gamma), floor, None))
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
