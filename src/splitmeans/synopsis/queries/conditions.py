"""Conditions on columns, as people write them: `bank: income > 3000 and plan in ('gold', 'plus')`.

A small language and nothing else: no call, no attribute, no arithmetic, so there is nothing that a
text could do but choose users.

    condition   either  `or`-ed, `and`-ed, `not`, in brackets
    number      COLUMN < <= > >= NUMBER, or NUMBER < COLUMN; = != for whole numbers
    category    COLUMN = != CATEGORY, COLUMN in (CATEGORY, ...), COLUMN not in (...)

A column is written as it is called, spaces and colons included, or in double quotes or backticks; a
category in quotes, or bare if it is one word.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from splitmeans._types import FloatArray
from splitmeans.errors import ParameterError
from splitmeans.study.features import GRID_UNITS
from splitmeans.synopsis.column_places import ColumnPlace, find_column

Values: TypeAlias = Callable[[str], FloatArray]

_SPACE = re.compile(r"\s*")
_OPERATOR = re.compile(r"<=|>=|==|!=|<>|<|>|=")
_NUMBER = re.compile(r"[-+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?![\w.])")
_WORD = re.compile(r"[\w.+-]+")
_QUOTED = re.compile(r"'((?:[^']|'')*)'|\"((?:[^\"]|\"\")*)\"|`([^`]*)`")
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "!=": "!="}
_DEEPEST = 50


@dataclass(frozen=True, kw_only=True)
class Condition:
    """A condition, as a tree.

    Attributes:
        kind: What it is.
        parts: The conditions that "and", "or" and "not" are made of.
        column: The column that is compared.
        operator: By what a number is compared.
        bound: With what.
        slack: By how much values are rounded, which is no difference.
        chosen: Which categories of the column fit, by position.
    """

    kind: Literal["and", "or", "not", "number", "category"]
    parts: tuple["Condition", ...] = ()
    column: str = ""
    operator: str = ""
    bound: float = 0.0
    slack: float = 0.0
    chosen: tuple[int, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it is about, each once."""
        found = (self.column,) if self.column else ()
        inner = (name for part in self.parts for name in part.columns)
        return tuple(dict.fromkeys((*found, *inner)))

    def fits(self, values: Values) -> FloatArray:
        """Return how far each row fits, shape (rows,): 1 or 0, or a share between.

        Args:
            values: Returns a column's numbers, or its shares by category, shape (rows, categories).
        """
        match self.kind:
            case "and":
                return np.asarray(np.prod([part.fits(values) for part in self.parts], axis=0))
            case "or":
                misses = [1 - part.fits(values) for part in self.parts]
                return np.asarray(1 - np.prod(misses, axis=0))
            case "not":
                return np.asarray(1 - self.parts[0].fits(values))
            case "category":
                shares = np.maximum(values(self.column), 0.0)
                whole = np.maximum(shares.sum(axis=1), 1e-12)
                return np.asarray(shares[:, list(self.chosen)].sum(axis=1) / whole)
        own = values(self.column)
        found = {
            "<": own < self.bound - self.slack,
            "<=": own <= self.bound + self.slack,
            ">": own > self.bound + self.slack,
            ">=": own >= self.bound - self.slack,
        }[self.operator]
        return np.asarray(found, dtype=np.float64)


def both(first: Condition | None, second: Condition | None) -> Condition | None:
    """Return the condition that both hold; None stands for everybody."""
    if first is None or second is None:
        return first or second
    return Condition(kind="and", parts=(first, second))


def read_condition(text: str, places: Sequence[ColumnPlace]) -> Condition:
    """Read a condition.

    Raises:
        ParameterError: If it is none; the message says where, and what could stand there.
    """
    if not isinstance(text, str) or not text.strip():
        raise ParameterError('a condition must be a text such as "bank: income > 3000"')
    return _Reader(text, places).read()


class _Reader:
    def __init__(self, text: str, places: Sequence[ColumnPlace]) -> None:
        self.text, self.at, self.depth = text, 0, 0
        self.places = places
        # The longest first, so that "bank: income net" is not read as "bank: income".
        self.names = sorted(
            {name for place in places for name in (place.name, place.column)},
            key=len,
            reverse=True,
        )

    def read(self) -> Condition:
        found = self._either()
        if self._rest():
            raise self._problem("'and', 'or' or the end")
        return found

    def _either(self) -> Condition:
        return self._joined("or", self._all)

    def _all(self) -> Condition:
        return self._joined("and", self._one)

    def _joined(self, word: Literal["and", "or"], part: Callable[[], Condition]) -> Condition:
        parts = [part()]
        while self._take_word(word):
            parts.append(part())
        return parts[0] if len(parts) == 1 else Condition(kind=word, parts=tuple(parts))

    def _one(self) -> Condition:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise ParameterError(f"a condition must be nested at most {_DEEPEST} deep")
        try:
            if self._name_here() is None:
                if self._take_word("not"):
                    return Condition(kind="not", parts=(self._one(),))
                if self._take("("):
                    found = self._either()
                    if not self._take(")"):
                        raise self._problem("')'")
                    return found
            return self._comparison()
        finally:
            self.depth -= 1

    def _comparison(self) -> Condition:
        if self._name_here() is None and (number := self._match(_NUMBER)) is not None:
            operator = _FLIPPED[self._operator()]
            return self._compared(self._column(), operator, float(number[0].replace("_", "")))
        place = self._column()
        negated = self._take_word("not")
        if self._take_word("in"):
            found = self._in_list(place)
            return Condition(kind="not", parts=(found,)) if negated else found
        if negated:
            raise self._problem("'in'")
        operator = self._operator()
        if place.levels:
            if operator not in ("=", "!="):
                raise ParameterError(
                    f"{place.name!r} has categories: compare it by = or != or in, not {operator}"
                )
            found = Condition(kind="category", column=place.name, chosen=(self._category(place),))
            return Condition(kind="not", parts=(found,)) if operator == "!=" else found
        number = self._match(_NUMBER)
        if number is None:
            raise self._problem(f"a number, because {place.name!r} is one")
        return self._compared(place, operator, float(number[0].replace("_", "")))

    def _compared(self, place: ColumnPlace, operator: str, bound: float) -> Condition:
        if place.levels:
            raise ParameterError(f"{place.name!r} has categories: {_listed(place)}")
        slack = (place.high - place.low) / (2 * GRID_UNITS)
        if operator in ("=", "!="):
            if place.whole:
                near = [
                    Condition(
                        kind="number", column=place.name, operator=one, bound=bound, slack=slack
                    )
                    for one in (">=", "<=")
                ]
                found = Condition(kind="and", parts=tuple(near))
                return Condition(kind="not", parts=(found,)) if operator == "!=" else found
            raise ParameterError(
                f"{place.name!r} is a number, known to within a bin: ask for a range, such as "
                f"{place.name} >= {bound:g} and {place.name} <= {bound:g}, with room on both sides"
            )
        return Condition(
            kind="number", column=place.name, operator=operator, bound=bound, slack=slack
        )

    def _in_list(self, place: ColumnPlace) -> Condition:
        if not place.levels:
            raise ParameterError(f"{place.name!r} is a number: compare it by < <= > >=, not in")
        if not self._take("("):
            raise self._problem("'(' and a list of categories")
        chosen = [self._category(place)]
        while self._take(","):
            chosen.append(self._category(place))
        if not self._take(")"):
            raise self._problem("',' or ')'")
        return Condition(kind="category", column=place.name, chosen=tuple(sorted(set(chosen))))

    def _category(self, place: ColumnPlace) -> int:
        quoted = self._match(_QUOTED)
        found = quoted or self._match(_WORD)
        if found is None:
            raise self._problem("a category")
        level = _unquoted(quoted) if quoted else found[0]
        if level not in place.levels:
            raise ParameterError(f"{place.name!r} has no category {level!r}, but {_listed(place)}")
        return place.levels.index(level)

    def _operator(self) -> str:
        found = self._match(_OPERATOR)
        if found is None:
            raise self._problem("a comparison: < <= > >= = != in")
        return {"==": "=", "<>": "!="}.get(found[0], found[0])

    def _name_here(self) -> str | None:
        """Return the name of a column that stands here as it is, the longest that fits."""
        rest = self._rest()
        for name in self.names:
            if rest.startswith(name) and not re.match(r"\w", rest[len(name) :] or " "):
                return name
        return None

    def _column(self) -> ColumnPlace:
        name = self._name_here()
        if name is not None:
            self.at += len(name)
            return find_column(self.places, name)
        quoted = self._match(_QUOTED)
        if quoted is not None:
            return find_column(self.places, _unquoted(quoted))
        # Up to what looks like a comparison, to name it in the error.
        unknown = re.split(r"[<>=!()]|\s(?:in|not|and|or)\s", self._rest(), maxsplit=1)[0].strip()
        if not unknown:
            raise self._problem("a column")
        found = find_column(self.places, unknown)
        self.at += len(unknown)
        return found

    def _rest(self) -> str:
        space = _SPACE.match(self.text, self.at)
        assert space is not None
        self.at = space.end()
        return self.text[self.at :]

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        self._rest()
        found = pattern.match(self.text, self.at)
        if found is not None:
            self.at = found.end()
        return found

    def _take(self, sign: str) -> bool:
        if not self._rest().startswith(sign):
            return False
        self.at += len(sign)
        return True

    def _take_word(self, word: str) -> bool:
        return self._match(re.compile(rf"{word}(?!\w)", re.IGNORECASE)) is not None

    def _problem(self, expected: str) -> ParameterError:
        rest = self._rest()
        found = f"{rest[:30]!r}" if rest else "its end"
        return ParameterError(f"condition {self.text!r}: expected {expected}, got {found}")


def _unquoted(found: re.Match[str]) -> str:
    single, double, back = found.groups()
    if single is not None:
        return str(single).replace("''", "'")
    return str(double).replace('""', '"') if double is not None else str(back)


def _listed(place: ColumnPlace) -> str:
    return ", ".join(repr(level) for level in place.levels)
