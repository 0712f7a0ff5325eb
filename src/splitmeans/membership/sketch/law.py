"""Public law of the cell sketch: registers with phantoms in every cell.

The proof is in docs/concepts/guarantee.md.

A cell is one label of each party of a group. Registers are those of the published sketch; what
differs is where the phantoms are, and that is what makes one proof cover all parties.
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from typing import ClassVar

import numpy as np

from splitmeans import _validate
from splitmeans._types import WordArray
from splitmeans.errors import ParameterError, PrivacyError
from splitmeans.membership.sketch.registers import RegisterLaw
from splitmeans.privacy.events import CellSketchEvent
from splitmeans.privacy.register_law import row_divergences

_MOST_REPETITIONS = 65_536
_MOST_PHANTOMS = 2**40
# Users of the whole study per unit of (1+gamma)^floor: a union of all users then stays at the
# floor in one row of e^10.
_USERS_PER_FLOOR = 10
# Keeps rounding in the divergence on the side of privacy; its relative error is below 1e-12.
_DIVERGENCE_MARGIN = 1 + 1e-9
_EXACT = Context(prec=60, Emax=MAX_EMAX, Emin=MIN_EMIN)


@dataclass(frozen=True, kw_only=True)
class SketchLaw:
    """The membership sketch of one group of parties, with `phantoms` in each of its cells.

    Guarantee: for adding or removing one user, at all parties of a group or at some of them, the
    registers of ALL its parties together cost `event` once, and groups have independent keys, so
    they compose. "Absent" is one more label of each party in the cells, and all-absent is none; so
    a user at one party alone is in a cell with phantoms like every other. Proof: fix
    a row, and let Z_c be the largest value among users and phantoms of cell c, or the floor. A
    party's register for label a is the maximum of Z_c over the cells with its label a; so the
    registers of all parties are one function of the Z_c, and a user changes the law of one Z_c.
    That Z_c is the maximum of the phantoms, of the user or not, and of other users, who are the
    same in both cases: a function of the pair (F^phantoms, F^(phantoms+1)) and independent
    values. Rows are independent, given keys that the server does not know.

    The realised law is that of 64-bit table look-ups: up to 2^-64 for each threshold of each row,
    bounded by `privacy.register_law.table_slack`.

    Attributes:
        repetitions: M, the number of rows.
        gamma: Growth of the geometric law; smaller is finer.
        phantoms: Phantom users in every cell, n_p, at least one.
        floor: Smallest register value, a public number that may not depend on the data.
    """

    TAG: ClassVar[str] = "CellSketch"

    repetitions: int
    gamma: float
    phantoms: int
    floor: int

    def __post_init__(self) -> None:
        _validate.at_least(1, repetitions=self.repetitions, phantoms=self.phantoms)
        _validate.at_least(0, floor=self.floor)
        if self.repetitions > _MOST_REPETITIONS:
            raise ParameterError(
                f"repetitions must be <= {_MOST_REPETITIONS}, got {self.repetitions}"
            )
        RegisterLaw(gamma=self.gamma)
        if self.largest_register > np.iinfo(np.uint16).max:
            raise ParameterError(f"floor must leave registers within 16 bits, got {self.floor}")

    @property
    def registers(self) -> RegisterLaw:
        """The law of the register values."""
        return RegisterLaw(gamma=self.gamma)

    @property
    def phantom_table(self) -> WordArray:
        """Thresholds of the maximum of all phantoms of a cell in one row."""
        return self.registers.maximum_table(self.phantoms)

    @property
    def largest_register(self) -> int:
        """Largest value that the tables can give a register."""
        return self.registers.largest(floor=self.floor, phantoms=self.phantoms)

    @property
    def event(self) -> CellSketchEvent:
        """What the release of a group's registers, those of all its parties, does to privacy."""
        return CellSketchEvent(
            repetitions=self.repetitions,
            gamma=self.gamma,
            phantoms=self.phantoms,
            floor=self.floor,
        )

    def labels_of(self, widths: Sequence[int]) -> tuple[int, ...]:
        """Return how many labels each party has in the cells: k', and one more for absent."""
        return tuple(width + 1 for width in widths)

    def shared_phantoms(self, others: Sequence[int]) -> int:
        """Return how many phantoms carry given labels of some parties of a group.

        `others` are the numbers of clusters of the group's other parties.
        """
        return self.phantoms * math.prod(self.labels_of(others))


def phantoms_for(mu: float, *, repetitions: int, gamma: float, floor: int) -> int:
    """Return the fewest phantoms per cell with which M rows cost no more than mu-Gaussian privacy.

    "No more" is in the mean of the privacy loss: 2 M max(D(p||q), D(q||p)) <= mu^2 for the pair of
    laws that a user moves a row between. What a run costs is calculated exactly by the accountant.
    More phantoms never cost more: a maximum with one more independent value is post-processing.
    """
    _validate.positive(mu=mu)

    @functools.cache
    def fits(count: int) -> bool:
        event = CellSketchEvent(repetitions=repetitions, gamma=gamma, phantoms=count, floor=floor)
        return 2 * repetitions * max(row_divergences(event)) * _DIVERGENCE_MARGIN <= mu**2

    high = 1
    while not fits(high):
        high *= 2
        if high > _MOST_PHANTOMS:
            raise PrivacyError(f"mu={mu:g} needs more than {_MOST_PHANTOMS} phantoms per cell")
    low = high // 2  # does not fit, or is zero
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


def floor_for(expected_users: float, *, gamma: float) -> int:
    """Return the floor for about this many users: the largest with (1+gamma)^floor <= users / 10.

    `expected_users` must be public: a rough figure agreed beforehand, never a count of rows.
    """
    _validate.positive(expected_users=expected_users)
    RegisterLaw(gamma=gamma)
    # Decimals, so that every machine finds the same floor.
    with localcontext(_EXACT):
        growth = 1 + Decimal(float(gamma))
        power = growth
        limit = Decimal(float(expected_users)) / _USERS_PER_FLOOR
        floor = 0
        while power <= limit:
            floor += 1
            power *= growth
    return floor
