"""One party of a study: its columns with their public bounds, and how its users are identified."""

import math
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from splitmeans import _validate
from splitmeans.errors import ParameterError, StudyError
from splitmeans.wire.slot import SERVER

# Within these limits a weight is far above a grid step, and distances of one column are exact.
MIN_WEIGHT, MAX_WEIGHT = 0.001, 44
# Distances of all columns are exact if there are so many features, times the largest weight
# squared: squares of differences, on a grid of 2^20 steps, add up to less than 2^53.
MAX_FEATURE_WEIGHTS = 2000

# The rule that leaves a column out for rows without a value in it.
SKIP = "skip"

# What results call the level of people whose category is missing.
MISSING_LEVEL = "(missing)"

# What results call the level of people whose category is none of the others, where a run learns
# categories; a study that lists it has everything else that it does not list there.
OTHER_LEVEL = "(other)"

# Of a column whose categories a run learns from the table, with noise.
OPEN = "open"
# The most categories of a column that are learned, and the longest, in bytes.
MOST_NAMES, MOST_NAME_BYTES = 24, 48

# Of a column whose bounds a run learns from the table, with noise.
PRIVATE = "private"
# Learned bounds lie between plus and minus this; it is below 2^50.
MOST_LEARNED = 1e15
# Limits of learned bounds are at least this part of them apart.
_CLOSEST = 1e-6


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column of a party: a number between bounds, or a choice from a public list.

    Attributes:
        name: The column's name in the party's table.
        low: Smallest value of interest; smaller ones are clipped to it.
        high: Largest value of interest; larger ones are clipped to it.
        bounds: "private" if the run learns the bounds from the table, with noise and from its
            budget; low and high, either or both, are then limits that no learned bound exceeds.
            None if low and high are the bounds.
        weight: How much the column counts in distances; its values fill [-weight, weight].
        categories: For a categorical column the public list of its values; no bounds then. "open"
            if the run learns all of them.
        others: "open" if the run learns what other categories many users have, with noise and from
            its budget; all the rest is at the level "(other)" then.
        missing: What a missing value becomes: "error" refuses the table, "midpoint" takes the
            middle of the bounds, a number takes that number, "skip" leaves the column out for that
            user: distances are over the columns that are there. For a categorical column: "error",
            "skip", "level" (a level of its own, called "(missing)"), or "spread" (an equal share
            of each category).
    """

    name: str
    low: float | None = None
    high: float | None = None
    weight: float = 1.0
    categories: Sequence[str] = ()
    missing: str | float = "error"
    bounds: str | None = None
    others: str | None = None

    def __post_init__(self) -> None:
        check_name("column name", self.name)
        where = f"column {self.name!r}"
        _validate.positive(error=StudyError, **{f"weight of {where}": self.weight})
        if not MIN_WEIGHT <= self.weight <= MAX_WEIGHT:
            raise StudyError(
                f"weight of {where} must be between {MIN_WEIGHT} and {MAX_WEIGHT}, "
                f"got {self.weight!r}"
            )
        to_builtin(self, weight=float)
        if isinstance(self.categories, str) and self.categories == OPEN:
            object.__setattr__(self, "categories", ())
            object.__setattr__(self, "others", self.others or OPEN)
        if self.is_categorical:
            self._check_categories(where)
        else:
            object.__setattr__(self, "categories", ())
            self._check_bounds(where)

    @property
    def is_private(self) -> bool:
        """Whether the run learns the column's bounds."""
        return self.bounds is not None

    @property
    def is_open(self) -> bool:
        """Whether the run learns categories of the column."""
        return self.others is not None

    @property
    def is_categorical(self) -> bool:
        """Whether the column is a choice, of a list or of what the run learns."""
        return bool(self.categories) or self.is_open

    @property
    def is_settled(self) -> bool:
        """Whether nothing of the column is left for a run to learn."""
        return not self.is_private and not self.is_open

    @property
    def most_levels(self) -> int:
        """How many features the column can have."""
        learned = MOST_NAMES + 1 if self.is_open else 0
        return max(1, len(self.levels) + learned)

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels of a categorical column, one feature each; empty for a number column."""
        own = (MISSING_LEVEL,) if self.is_categorical and self.missing == "level" else ()
        return (*self.categories, *own)

    def _check_categories(self, where: str) -> None:
        if self.low is not None or self.high is not None:
            raise StudyError(f"{where} has categories, so it must not have low or high")
        if self.bounds is not None:
            raise StudyError(f"{where} has categories, so it must not have bounds")
        if self.others is not None and self.others != OPEN:
            raise StudyError(
                f"others of {where} must be {OPEN!r} (learned by the run, with noise), got "
                f"{_validate.shown(self.others)}"
            )
        if not isinstance(self.categories, list | tuple):
            raise StudyError(f"categories of {where} must be a list of names, or {OPEN!r}")
        if not all(isinstance(category, str) for category in self.categories):
            raise StudyError(f"categories of {where} must be text; write numbers in quotes")
        object.__setattr__(self, "categories", tuple(self.categories))
        # Values are compared in this form, so two names that share it could not be told apart.
        different = {unicodedata.normalize("NFC", category) for category in self.categories}
        fewest = 0 if self.is_open else 2
        if len(different) < fewest or len(different) != len(self.categories):
            raise StudyError(f"categories of {where} must be two or more different names")
        if self.is_open and different & {OTHER_LEVEL, MISSING_LEVEL}:
            raise StudyError(
                f"categories of {where} must not list {OTHER_LEVEL!r} or {MISSING_LEVEL!r} where "
                "others are learned"
            )
        if self.missing not in ("error", SKIP, "level", "spread"):
            raise StudyError(
                f"missing of {where} must be 'error', 'skip' (the column is left out for who has "
                "none), 'level' (missing is a level of its own) or 'spread' (an equal share of "
                f"each category), got {_validate.shown(self.missing)}; categories have no middle"
            )
        if self.missing == "level" and MISSING_LEVEL in different:
            raise StudyError(
                f"categories of {where} must not list {MISSING_LEVEL!r}, which missing = 'level' "
                "adds; rename the category, or leave it out"
            )

    def _check_bounds(self, where: str) -> None:
        if self.bounds is not None and self.bounds != PRIVATE:
            raise StudyError(
                f"bounds of {where} must be {PRIVATE!r} (learned by the run, with noise), got "
                f"{_validate.shown(self.bounds)}; public bounds are low and high"
            )
        if not self.is_private and (self.low is None or self.high is None):
            raise StudyError(
                f"{where} needs low and high (public bounds), bounds = {PRIVATE!r} (learned by the "
                "run), or categories"
            )
        ends = {"low": self.low, "high": self.high}
        given = {name: end for name, end in ends.items() if end is not None}
        _validate.finite(
            error=StudyError, **{f"{name} of {where}": end for name, end in given.items()}
        )
        far = [name for name, end in given.items() if abs(end) > MOST_LEARNED]
        if self.is_private and far:
            raise StudyError(
                f"{far[0]} of {where} must be between {-MOST_LEARNED:g} and {MOST_LEARNED:g}, as "
                "learned bounds are; leave it out"
            )
        if self.low is not None and self.high is not None:
            if not self.low < self.high:
                raise StudyError(
                    f"{where} must have low < high, got {self.low!r} and {self.high!r}"
                )
            if not math.isfinite(float(self.high) - float(self.low)):
                raise StudyError(f"{where} must have bounds whose difference is a finite number")
            if self.is_private and self.high - self.low < _CLOSEST * max(
                abs(self.low), abs(self.high), 1e-3
            ):
                raise StudyError(
                    f"{where} must have limits further apart to learn bounds between them, got "
                    f"{self.low!r} and {self.high!r}; leave bounds = {PRIVATE!r} out"
                )
        to_builtin(self, **dict.fromkeys(given, float))
        if isinstance(self.missing, str):
            if self.missing not in ("error", "midpoint", SKIP):
                raise StudyError(
                    f"missing of {where} must be 'error', 'midpoint', 'skip' (the column is left "
                    f"out for who has none) or a number, got {_validate.shown(self.missing)}"
                )
        else:
            _validate.finite(error=StudyError, **{f"missing of {where}": self.missing})
            to_builtin(self, missing=float)


@dataclass(frozen=True, kw_only=True)
class KeyColumn:
    """Which column of a party holds one of the study's keys (`ids.keys`)."""

    key: str
    column: str

    def __post_init__(self) -> None:
        check_name("key of an id column", self.key)
        check_name(f"column of key {self.key!r}", self.column)


@dataclass(frozen=True, kw_only=True)
class PartySpec:
    """One organisation: its name, its columns, and the column that identifies users.

    Attributes:
        name: What messages and results call the party.
        columns: Its columns; none in a study of counts alone.
        id_column: The column that identifies users. In a study with several keys it follows from
            `id_columns`.
        id_columns: The columns of those of the study's keys that the party has.
        public_key: Its public identity (`splitmeans keys show`); runs between organisations need
            it, a simulation does not.
    """

    name: str
    columns: tuple[Column, ...] = ()
    id_column: str = "id"
    public_key: str | None = None
    id_columns: tuple[KeyColumn, ...] = ()

    def __post_init__(self) -> None:
        check_name("party name", self.name)
        check_name("id column", self.id_column)
        object.__setattr__(self, "id_columns", tuple(self.id_columns))
        keys = [held.key for held in self.id_columns]
        if len(set(keys)) != len(keys):
            raise StudyError(f"party {self.name!r} lists a key twice among its id_columns")
        object.__setattr__(self, "columns", tuple(self.columns))
        names = [column.name for column in self.columns]
        if self.name == SERVER:
            raise StudyError(f"a party must not be named {SERVER!r}; choose another name")
        # Names that share this form look the same.
        if len({unicodedata.normalize("NFC", name) for name in names}) != len(names):
            raise StudyError(f"party {self.name!r} lists a column twice")
        if names:
            self._check_weights()
        if names and all(column.missing == SKIP for column in self.columns):
            raise StudyError(
                f"party {self.name!r} must have a column whose missing rule is not 'skip': a user "
                "without any value has no distance; take another rule for one of its columns"
            )
        if not {held.column for held in self.id_columns}.isdisjoint(names):
            raise StudyError(f"party {self.name!r} must not list a column of ids among its columns")
        if self.id_column in names:
            raise StudyError(f"party {self.name!r} must not list its id column among its columns")
        check_key(f"public_key of party {self.name!r}", self.public_key)

    def _check_weights(self) -> None:
        """Refuse weights with which distances would no longer be exact (`kernels.assign`).

        The largest stands for all, as it does where rows are checked: whether distances are exact
        must never depend on the rows.
        """
        features = sum(column.most_levels for column in self.columns)
        # A category is a feature of weight / sqrt 2 (`study/features.py`).
        largest = max(
            self.columns,
            key=lambda column: column.weight**2 / (2 if column.is_categorical else 1),
        )
        limit = math.sqrt(MAX_FEATURE_WEIGHTS / features * (2 if largest.is_categorical else 1))
        if largest.weight > limit:
            raise StudyError(
                f"party {self.name!r}: weight of column {largest.name!r} must be at most "
                f"{math.floor(limit * 100) / 100:g} beside {features} features (a column of "
                "numbers is one, a column of categories one for each level), got "
                f"{largest.weight:g}; divide all weights of the study by the same number, which "
                "changes nothing else"
            )


def to_builtin(value: Any, **kinds: Callable[[Any], Any]) -> None:
    """Store checked numbers as Python's own, so that NumPy scalars hash and print alike."""
    for name, kind in kinds.items():
        object.__setattr__(value, name, kind(getattr(value, name)))


def check_key(what: str, text: Any) -> None:
    """Check the text of a public identity, if there is one."""
    if text is None:
        return
    # Imported where it is used: simulations have no keys, and cryptography takes time to load.
    from splitmeans.wire.identity import PublicIdentity

    if not isinstance(text, str):
        raise StudyError(f"{what} must be text as `splitmeans keys show` prints it")
    try:
        same = PublicIdentity.from_text(text).to_text()
    except ParameterError as problem:
        raise StudyError(f"{what}: {problem}") from problem
    if same != text:
        raise StudyError(f"{what} must be text without spaces around it")


def check_name(what: str, name: Any) -> None:
    """Check a name that people and files use."""
    if not isinstance(name, str) or not name.strip() or name != name.strip():
        raise StudyError(
            f"{what} must be text without spaces around it, got {_validate.shown(name)}"
        )
    if len(name) > 200 or not name.isprintable():
        raise StudyError(f"{what} must be at most 200 printable characters")


def check_learned(parties: Sequence[PartySpec], *, expected_users: int | None) -> None:
    """Refuse columns to be learned from an unstated number of users.

    Whether that number is enough for the noise is decided in the plan.
    """
    for party in parties:
        for column in (own for own in party.columns if not own.is_settled):
            what = "bounds = 'private'" if column.is_private else "categories = 'open'"
            where = f"column {column.name!r} of party {party.name!r}"
            if expected_users is None:
                raise StudyError(
                    f"the study must say expected_users, roughly: {what} of {where} is learned "
                    "with noise that hides too few users, and nobody would notice. Write "
                    "expected_users = 20000, or as many as there are, in the study file "
                    "(`splitmeans study new --users 20000`)"
                )


def check_participant_keys(server_key: str | None, parties: Sequence[PartySpec]) -> None:
    """Every participant has a key of its own, or none has one."""
    check_key("server_key", server_key)
    held = [server_key, *(party.public_key for party in parties)]
    if any(held) and not all(held):
        raise StudyError(
            "either every party has a public_key and the study a server_key, or none of them "
            "(then the study can only be simulated)"
        )
    if any(held) and len(set(held)) != len(held):
        raise StudyError(
            "the parties and the server must have different keys: who holds two of them would "
            "be two participants"
        )
