"""Data sets in the ledger: their names, and whose data each stands for.

Costs add up by data set, never by the place of a file. A data set is declared once, with words that
say who the people are; names from before, or of other places, can be made part of it, and their
costs move to it. People whom a run recognises as those of a data set can be declared to be others,
with a reason.
"""

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field

from splitmeans.errors import BudgetError, ParameterError


@dataclass(kw_only=True)
class DataSets:
    """What was declared so far; part of a `ledger_rules.Book`.

    Attributes:
        people: Who the people of each declared data set are.
        owners: The data set that each other name is part of.
        apart: Pairs of a name and a data set that are different people.
    """

    people: dict[str, str] = field(default_factory=dict)
    owners: dict[str, str] = field(default_factory=dict)
    apart: set[tuple[str, str]] = field(default_factory=set)

    def owner(self, name: str) -> str:
        """Return the data set that a name is part of; the name itself if of none."""
        return self.owners.get(name, name)

    def declare(self, name: str, people: str | None) -> None:
        """Take an entry that declares a data set."""
        if not people:
            raise BudgetError(f"data set {name!r} must say who its people are")
        if name in self.people:
            raise BudgetError(f"data set {name!r} is declared already: {self.people[name]!r}")
        if name in self.owners:
            raise BudgetError(f"{name!r} is part of data set {self.owners[name]!r}")
        self.people[name] = people

    def check_part(self, name: str, whole: str | None) -> str:
        """Check an entry that makes a name part of a data set; return the data set."""
        if whole is None or whole not in self.people:
            raise BudgetError(
                f"{whole!r} is no declared data set; declare it with `splitmeans ledger source "
                "NAME --people WHO`"
            )
        if name in self.people or name == whole:
            raise BudgetError(
                f"{name!r} is a data set itself; only another name can be part of one"
            )
        if name in self.owners:
            raise BudgetError(f"{name!r} is part of data set {self.owners[name]!r} already")
        return whole

    def set_apart(self, name: str, other: str | None, *, reason: str | None) -> None:
        """Take an entry that says that two names are of different people."""
        if not other or not reason:
            raise BudgetError(f"whom the people of {name!r} are apart from, and why, must be said")
        self.apart.add((name, other))

    def are_apart(self, name: str, other: str) -> bool:
        """Return whether somebody said that these are different people."""
        return (name, other) in self.apart or (other, name) in self.apart


def listed(people: Mapping[str, str]) -> str:
    """Return the names of data sets with their people, for a message."""
    return ", ".join(f"{name!r} ({who})" for name, who in sorted(people.items()))


def check_source(name: str) -> None:
    """Check the name of a data source: the one rule wherever a name is given, kept or charged."""
    if not isinstance(name, str) or not name.strip():
        raise ParameterError("source must be a name that is not empty; give one with --source")
    wrong = next((place for place, sign in enumerate(name) if not sign.isprintable()), None)
    if wrong is not None:
        raise ParameterError(
            "source must be printable text, so that people can read the ledger and set limits; "
            f"character {wrong + 1} of {printable(name)!r} is not (U+{ord(name[wrong]):04X}): give "
            "another name with --source"
        )


def printable(name: str) -> str:
    r"""Return a name that `check_source` takes, for one that comes from a file's name.

    Unusual spaces (a no-break space, a tab) become a plain space, because that is what people see
    and type; every other character that cannot be printed becomes its code, such as `\x07`.
    Accents are composed (NFC): systems differ in how they store them. Names that look alike become
    one source, whose costs add up.
    """
    composed = unicodedata.normalize("NFC", name)
    return "".join(
        sign if sign.isprintable() else " " if sign.isspace() else _code(sign) for sign in composed
    )


def _code(sign: str) -> str:
    return sign.encode("unicode_escape").decode("ascii")
