"""Public law of the sketch: how registers are distributed, and the published parameters.

A register value Y of one user in one row is geometric, P(Y <= v) = F(v) = 1 - (1+gamma)^-v for
v = 1, 2, ... (paper, section 4.2). Every draw is a look-up of a uniform 64-bit word in an integer
table built with 60-digit decimals, so that all machines draw the same value from the same word.
"""

import functools
import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal, localcontext
from typing import ClassVar

from splitmeans import _validate
from splitmeans._types import WordArray
from splitmeans.errors import ParameterError, PrivacyError
from splitmeans.membership.registers.law import EXACT, RegisterLaw, tails
from splitmeans.privacy.events import PublishedSketchEvent

_LEAST_EPSILON = 1e-9
_MOST_REPETITIONS = 65_536


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
        with localcontext(EXACT):
            exact = 1 / (_epsilon_prime(self.epsilon, self.delta, self.repetitions).exp() - 1)
            return int(exact.to_integral_value(rounding=ROUND_CEILING))

    @functools.cached_property
    def floor(self) -> int:
        """Smallest register value: the least v with (1+gamma)^-v <= 1 - e^-epsilon'."""
        with localcontext(EXACT):
            bound = 1 - (-_epsilon_prime(self.epsilon, self.delta, self.repetitions)).exp()
            return next(v for v, tail in enumerate(tails(self.gamma)) if tail <= bound)

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
    with localcontext(EXACT):
        return Decimal(float(epsilon)) / (
            4 * (int(repetitions) * -Decimal(float(delta)).ln()).sqrt()
        )
