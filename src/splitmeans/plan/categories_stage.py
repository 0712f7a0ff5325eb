"""The stage in which parties learn categories of columns, with noise: its law, what it releases.

A party counts the users of every category in its open columns, adds noise, and releases the names
of those above a threshold, and nothing else of the counts. A category that one user alone has is
there only because of that user; the threshold is so high that noise lifts one there with a
probability that is charged. Names are text from outside: few, short, printable.
"""

import math
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import ClassVar

from splitmeans import _validate
from splitmeans._types import NoiseLine
from splitmeans.errors import ParameterError, ProtocolError
from splitmeans.local.law import COUNT_UNITS, gaussian_event, mu_scale, whole_root
from splitmeans.plan.stages import Stage, stage_of_laws
from splitmeans.privacy.events import ComposedEvent, RareEvent
from splitmeans.privacy.split import category_delta
from splitmeans.study import Column, PartySpec, Study
from splitmeans.study.parties import MISSING_LEVEL, MOST_NAME_BYTES, MOST_NAMES, OTHER_LEVEL
from splitmeans.study.raw_layout import raw_places

CATEGORIES = "categories"

# Bytes of a name that fit a whole number, and numbers of a name: its length, then its bytes.
_BYTES = 6
_NUMBERS = 1 + MOST_NAME_BYTES // _BYTES

# Where a column has no other category: a choice needs two.
_NOTHING_ELSE = "(nothing else)"

# The tail of the discrete law may be this much above that of the normal one, at these scales.
_TAIL_SLACK = 1.001


@dataclass(frozen=True, kw_only=True)
class OpenColumn:
    """Where a column is in a row as it is read, its name, and categories that the study lists."""

    TAG: ClassVar[str] = "OpenColumn"

    place: int
    name: str
    listed: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class CategoriesLaw:
    """Names of the categories with more users than a threshold, all open columns of a party.

    Guarantee: for adding or removing one row, mu-Gaussian privacy but for outcomes of probability
    `shown` for each column. A row is in one category of each column, so it moves the counts of
    categories that others have too by sqrt(columns) at most, and it may bring one of its own in
    each column, whose count of 1 passes the threshold with that probability.

    `mu` is the cost of the counts, `shown` the probability with which a category of one user may
    show.
    """

    TAG: ClassVar[str] = "CategoriesLaw"

    columns: tuple[OpenColumn, ...]
    mu: float
    shown: float

    def __post_init__(self) -> None:
        _validate.positive(mu=self.mu)
        _validate.open_unit(shown=self.shown)
        if not self.columns:
            raise ParameterError("columns must be one or more columns whose categories are learned")

    @property
    def length(self) -> int:
        """So many numbers for each name that a column can have."""
        return len(self.columns) * MOST_NAMES * _NUMBERS

    @property
    def scale(self) -> int:
        """Scale of the noise on every count, in 1/COUNT_UNITS of a user."""
        return mu_scale(self._sensitivity(1), mu=self.mu)

    @property
    def threshold(self) -> float:
        """How many users, with noise, a category has more than to be released."""
        deviations = -NormalDist().inv_cdf(self.shown / _TAIL_SLACK)
        return 1 + deviations * self.scale / COUNT_UNITS

    @property
    def event(self) -> ComposedEvent:
        """The counts, and categories that one user alone has."""
        return self._event(1)

    @property
    def replaced_event(self) -> ComposedEvent:
        """The same where two counts of each column move, and two categories may show."""
        return self._event(2)

    def noise_lines(self) -> Iterator[NoiseLine]:
        """Yield the noise in users, and the threshold."""
        yield "users of a category", self.scale / COUNT_UNITS, "users"
        yield "threshold of a category", self.threshold, "users"

    @property
    def assumed(self) -> tuple[int, ...]:
        """Values that stand for those of a run: as many names as a column can have."""
        names = tuple(f"category {number + 1}" for number in range(MOST_NAMES))
        return encode_names([names] * len(self.columns))

    def check(self, values: Sequence[int]) -> None:
        """Refuse values that no party releases.

        Raises:
            ProtocolError: They are no names that a column can have.
        """
        for names, column in zip(decode_names(values), self.columns, strict=True):
            taken = {unicodedata.normalize("NFC", name) for name in column.listed}
            if len(set(names)) != len(names) or taken & set(names):
                raise ProtocolError("learned categories must differ from each other and the list")
            if not all(is_name(name) for name in names):
                raise ProtocolError(
                    f"learned categories must be printable text of at most {MOST_NAME_BYTES} bytes"
                )

    def _sensitivity(self, counts: int) -> int:
        return whole_root(counts * len(self.columns) * COUNT_UNITS**2)

    def _event(self, counts: int) -> ComposedEvent:
        n_counts = counts * len(self.columns)
        moved = gaussian_event(
            self.scale, sensitivity=self._sensitivity(counts), coordinates=n_counts
        )
        return ComposedEvent(parts=(moved, RareEvent(probability=n_counts * self.shown)))


def is_name(text: str) -> bool:
    """Whether a category can be learned under this name; all others stay with "(other)"."""
    return (
        bool(text.strip())
        and text == text.strip()
        and text.isprintable()
        and len(text.encode(errors="replace")) <= MOST_NAME_BYTES
        and unicodedata.is_normalized("NFC", text)
        and text not in (OTHER_LEVEL, MISSING_LEVEL, _NOTHING_ELSE)
    )


def open_columns(party: PartySpec) -> tuple[OpenColumn, ...]:
    """Return the columns of a party whose categories are learned."""
    return tuple(
        OpenColumn(place=place.start, name=column.name, listed=tuple(column.categories))
        for column, place in zip(party.columns, raw_places(party), strict=True)
        if column.is_open
    )


def categories_stage(study: Study, mus: Sequence[float]) -> Stage | None:
    """Return the stage of a study, None where all categories are public."""
    shown = category_delta(study)
    laws = {
        party.name: CategoriesLaw(columns=columns, mu=mu, shown=shown)
        for party, mu in zip(study.parties, mus, strict=True)
        if (columns := open_columns(party))
    }
    return stage_of_laws(CATEGORIES, "categories of columns", laws)


def encode_names(found: Sequence[Sequence[str]]) -> tuple[int, ...]:
    """Return the names of each column as whole numbers, as many whatever the names are."""
    values: list[int] = []
    for names in found:
        for at in range(MOST_NAMES):
            data = names[at].encode() if at < len(names) else b""
            padded = data.ljust(MOST_NAME_BYTES, b"\0")
            values.append(len(data))
            values += [
                int.from_bytes(padded[start : start + _BYTES], "big")
                for start in range(0, MOST_NAME_BYTES, _BYTES)
            ]
    return tuple(values)


def decode_names(values: Sequence[int]) -> tuple[tuple[str, ...], ...]:
    """Return the names of each column.

    Raises:
        ProtocolError: They are no text.
    """
    found = []
    width = MOST_NAMES * _NUMBERS
    for column in range(0, len(values), width):
        names = []
        for at in range(column, column + width, _NUMBERS):
            length, *numbers = values[at : at + _NUMBERS]
            if not 0 <= length <= MOST_NAME_BYTES or not all(
                0 <= number < 2 ** (8 * _BYTES) for number in numbers
            ):
                raise ProtocolError("learned categories must be text")
            data = b"".join(number.to_bytes(_BYTES, "big") for number in numbers)
            if any(data[length:]):
                raise ProtocolError("learned categories must be text and nothing behind it")
            if length:
                try:
                    names.append(data[:length].decode())
                except UnicodeDecodeError:
                    raise ProtocolError("learned categories must be text") from None
        found.append(tuple(names))
    return tuple(found)


def with_categories(party: PartySpec, learned: Sequence[Sequence[str]]) -> tuple[Column, ...]:
    """Return the columns of a party with learned categories in their places."""
    following = iter(learned)
    return tuple(
        _settled(column, next(following)) if column.is_open else column for column in party.columns
    )


def _settled(column: Column, names: Sequence[str]) -> Column:
    known = (*column.categories, *names)
    rest = (OTHER_LEVEL,) if known else (_NOTHING_ELSE, OTHER_LEVEL)
    return replace(column, others=None, categories=(*known, *rest))


def threshold_share(law: CategoriesLaw, *, users: int) -> float:
    """Return the threshold as a share of all users."""
    return law.threshold / max(users, 1)


def threshold_text(law: CategoriesLaw) -> str:
    """Return from how many users on a category is learned, for people."""
    return f"{math.ceil(law.threshold):,}"
