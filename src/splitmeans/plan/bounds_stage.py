"""The stage in which parties learn bounds of columns, with noise: its law and what it releases.

A party counts the values of all its private columns in bins, in `ROUNDS` rounds whose bins follow
from the noisy counts of the rounds before (`party.range_search`), and releases what the last of
them tell: two bounds a column. Everything between is post-processing of noisy counts, so releasing
the bounds alone costs no more than releasing the counts.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from splitmeans import _validate
from splitmeans._types import NoiseLine
from splitmeans.errors import ParameterError, ProtocolError
from splitmeans.local.law import COUNT_UNITS, gaussian_event, mu_scale, whole_root
from splitmeans.plan.stages import Stage, stage_of_laws
from splitmeans.privacy.events import ComposedEvent
from splitmeans.study import Column, PartySpec, Study
from splitmeans.study.raw_layout import raw_places

BOUNDS = "bounds"

# Shares of mu^2 of the rounds. The first finds the scale; then five zoom in where all values are
# close together, and look at quantiles where they are not; the last looks at quantiles.
ROUNDS = (0.5, 0.06, 0.06, 0.06, 0.06, 0.06, 0.2)

# What a party says of how a column went, beside its bounds.
FOUND, NARROW, UNCLEAR = 0, 1, 2
_STATES = {
    FOUND: "learned",
    NARROW: "nearly all values are the same, and others too few to see beside the noise",
    UNCLEAR: "too few different values beside the noise, so the bounds may be far off",
}

# Mantissa and exponent of both bounds, and the state.
_NUMBERS = 5
_MANTISSA_BITS = 53
# Of the numbers between which bounds are learned, and of the smallest distance to zero.
_MOST_EXPONENT = 1074

# No search ends beyond the first number, nor with bounds closer to each other than the others, in
# own units and as a part of the larger bound (`party.range_search`).
_MOST_BOUND, _LEAST_WIDTH, _CLOSEST = 2.0**52, 2.0**-32, 1e-10

# Noise of so many deviations, as a share of all users: quantiles are off by about as much.
_DEVIATIONS = 5


@dataclass(frozen=True, kw_only=True)
class LearnedBounds:
    """What a party released of one column."""

    low: float
    high: float
    state: int

    @property
    def remark(self) -> str:
        """How it went, for people."""
        return _STATES[self.state]


@dataclass(frozen=True, kw_only=True)
class PrivateColumn:
    """Where a column is in a row as it is read, and limits that its bounds keep."""

    TAG: ClassVar[str] = "PrivateColumn"

    place: int
    low: float | None
    high: float | None


@dataclass(frozen=True, kw_only=True)
class BoundsLaw:
    """Counts of the values of all private columns of a party, in rounds of bins.

    Guarantee: for adding or removing one row, mu-Gaussian privacy. In every round a row is in at
    most one bin of each column, so it moves the vector of all counts by sqrt(columns) at most;
    replacing its values moves two counts of each column. Bins follow from earlier rounds' noisy
    counts alone.

    `mu` is the cost of all rounds together.
    """

    TAG: ClassVar[str] = "BoundsLaw"

    columns: tuple[PrivateColumn, ...]
    mu: float

    def __post_init__(self) -> None:
        _validate.positive(mu=self.mu)
        if not self.columns:
            raise ParameterError("columns must be one or more columns whose bounds are learned")

    @property
    def length(self) -> int:
        """Five whole numbers a column."""
        return _NUMBERS * len(self.columns)

    @property
    def scales(self) -> tuple[int, ...]:
        """Scale of the noise on every count in each round, in 1/COUNT_UNITS of a user."""
        return tuple(
            mu_scale(self._sensitivity(1), mu=self.mu * math.sqrt(share)) for share in ROUNDS
        )

    @property
    def event(self) -> ComposedEvent:
        """All rounds, each the counts of all columns as one vector."""
        return self._event(1)

    @property
    def replaced_event(self) -> ComposedEvent:
        """The same where two counts of each column move."""
        return self._event(2)

    @property
    def deviation(self) -> float:
        """Standard deviation, in users, of a count of the first round; later ones add up to it."""
        return self.scales[0] / COUNT_UNITS

    def noise_lines(self) -> Iterator[NoiseLine]:
        """Yield the noise in users."""
        yield "values in a bin of a column", self.deviation, "users"

    @property
    def assumed(self) -> tuple[int, ...]:
        """Values that stand for those of a run, where a plan is made before one."""
        found = (
            LearnedBounds(low=_below(column), high=_above(column), state=FOUND)
            for column in self.columns
        )
        return encode_bounds(tuple(found))

    def check(self, values: Sequence[int]) -> None:
        """Refuse values that no party releases.

        Raises:
            ProtocolError: They are no bounds, or beyond the study's limits.
        """
        for own, column in zip(decode_bounds(values), self.columns, strict=True):
            within = _at_least(own.low, column.low) and _at_least(column.high, own.high)
            largest = max(abs(own.low), abs(own.high))
            is_range = own.high - own.low >= max(_LEAST_WIDTH, _CLOSEST * largest)
            if own.state not in _STATES or not is_range or not within or largest > _MOST_BOUND:
                raise ProtocolError(
                    "learned bounds must be a lower and a higher number within the study's limits, "
                    f"at most {_MOST_BOUND:g} and at least {_CLOSEST:g} of them apart"
                )

    def _sensitivity(self, bins: int) -> int:
        return whole_root(bins * len(self.columns) * COUNT_UNITS**2)

    def _event(self, bins: int) -> ComposedEvent:
        return ComposedEvent(
            parts=tuple(
                gaussian_event(
                    scale,
                    sensitivity=self._sensitivity(bins),
                    coordinates=bins * len(self.columns),
                )
                for scale in self.scales
            )
        )


def private_columns(party: PartySpec) -> tuple[PrivateColumn, ...]:
    """Return the columns of a party whose bounds are learned."""
    return tuple(
        PrivateColumn(place=place.start, low=column.low, high=column.high)
        for column, place in zip(party.columns, raw_places(party), strict=True)
        if column.is_private
    )


def bounds_stage(study: Study, mus: Sequence[float]) -> Stage | None:
    """Return the stage of a study, None where all bounds are public."""
    laws = {
        party.name: BoundsLaw(columns=columns, mu=mu)
        for party, mu in zip(study.parties, mus, strict=True)
        if (columns := private_columns(party))
    }
    return stage_of_laws(BOUNDS, "bounds of columns", laws)


def noise_share(law: BoundsLaw, *, users: int) -> float:
    """Return the noise that decides about the quality of bounds, as a share of all users."""
    return _DEVIATIONS * law.deviation / max(users, 1)


def encode_bounds(found: Sequence[LearnedBounds]) -> tuple[int, ...]:
    """Return bounds as whole numbers, exactly: mantissa and exponent of each, and the state."""
    values: list[int] = []
    for own in found:
        for end in (own.low, own.high):
            mantissa, exponent = math.frexp(end)
            values += [int(math.ldexp(mantissa, _MANTISSA_BITS)), exponent]
        values.append(own.state)
    return tuple(values)


def decode_bounds(values: Sequence[int]) -> tuple[LearnedBounds, ...]:
    """Return the bounds of whole numbers.

    Raises:
        ProtocolError: They are no floats.
    """
    found = []
    for at in range(0, len(values), _NUMBERS):
        *ends, state = values[at : at + _NUMBERS]
        try:
            low, high = _float(ends[0], ends[1]), _float(ends[2], ends[3])
        except OverflowError:
            raise ProtocolError("learned bounds must be finite numbers") from None
        found.append(LearnedBounds(low=low, high=high, state=state))
    return tuple(found)


def _float(mantissa: int, exponent: int) -> float:
    if abs(exponent) > _MOST_EXPONENT:
        raise OverflowError
    return math.ldexp(mantissa, exponent - _MANTISSA_BITS)


def with_bounds(party: PartySpec, learned: Sequence[LearnedBounds]) -> tuple[Column, ...]:
    """Return the columns of a party with learned bounds in their places."""
    following = iter(learned)
    return tuple(
        _settled(column, next(following)) if column.is_private else column
        for column in party.columns
    )


def _settled(column: Column, own: LearnedBounds) -> Column:
    return replace(column, bounds=None, low=own.low, high=own.high)


def _below(column: PrivateColumn) -> float:
    if column.low is not None:
        return column.low
    return -1.0 if column.high is None else column.high - 2 * max(abs(column.high), 1.0)


def _above(column: PrivateColumn) -> float:
    if column.high is not None:
        return column.high
    return 1.0 if column.low is None else column.low + 2 * max(abs(column.low), 1.0)


def _at_least(value: float | None, least: float | None) -> bool:
    return value is None or least is None or value >= least
