"""Which data set a run is charged to: by the name that is given, and by the people in the table.

A careless name must not start at zero. So a name that nobody declared is taken only while the home
has no limit, no declared data set and knows the people of all its charges; and people whom the home
knows count against their data set, whatever the file is called. A name that a person gave is never
replaced: the run is refused, with the ways out.
"""

import shlex
from collections.abc import Callable, Collection
from dataclasses import dataclass

from splitmeans.errors import BudgetError, ParameterError
from splitmeans.privacy.data_sets import listed
from splitmeans.privacy.ledger_rules import Book
from splitmeans.privacy.people import People
from splitmeans.privacy.source_names import check_source
from splitmeans.run.people_records import Known


@dataclass(frozen=True, kw_only=True)
class GivenName:
    """What a run calls its data.

    Attributes:
        name: The name.
        is_chosen: Whether a person gave it; otherwise it was made of the place of the data.
    """

    name: str
    is_chosen: bool

    def settled(self, book: Book, *, say: Callable[[str], object]) -> str:
        """Return the data set that the name stands for.

        Args:
            book: The ledger's sums and rules.
            say: Told if the data set is another name than was given.

        Raises:
            ParameterError: The name is new, and this home takes no new name without a word.
        """
        check_source(self.name)
        sets = book.data_sets
        owner = sets.owner(self.name)
        if owner in book.sources:
            if owner != self.name:
                say(f"{self.name!r} is part of data set {owner!r}")
            return owner
        if not self.is_chosen and len(sets.people) == 1:
            (only,) = sets.people
            say(
                f"charged to {only!r} ({sets.people[only]}), the only data set of this home; data "
                "of other people needs `splitmeans ledger source NAME --people WHO` and "
                "--source NAME"
            )
            return only
        if why := _strict_because(book):
            known = listed(sets.people) or ", ".join(repr(name) for name in book.sources)
            raise ParameterError(
                f"{self.name!r} is a new name, and {why}: a new name would start at zero. Data "
                f"sets here: {known}. Give --source with the one whose people these are, or "
                f"declare another: splitmeans ledger source {_quoted(self.name)} --people WHO"
            )
        return self.name


def _strict_because(book: Book) -> str:
    """Say why a home takes no new name without a word; empty if it does."""
    if book.data_sets.people:
        return "this home has declared data sets"
    if book.limits:
        return "this home has limits"
    old = [entry for entry in book.charges.values() if entry.note is None]
    if old:
        return f"{len(old)} charges in this home were added without a record of whose data they are"
    return ""


def recognised(
    name: str, people: People, *, known: Collection[Known], book: Book
) -> dict[str, float]:
    """Return the data sets other than `name` whose people these are, with the share in common.

    Those that somebody declared to be other people are left out.
    """
    found: dict[str, float] = {}
    for one in known:
        owner = book.data_sets.owner(one.source)
        if owner == name or book.data_sets.are_apart(name, owner):
            continue
        overlap = people.overlap(one.people)
        if overlap.are_same:
            found[owner] = max(found.get(owner, 0.0), max(overlap))
    return found


def settle_people(
    given: GivenName,
    name: str,
    people: People,
    *,
    known: Collection[Known],
    book: Book,
    say: Callable[[str], object],
) -> str:
    """Return the data set that a table is charged to, by its people.

    Args:
        given: What the run calls the data.
        name: The data set that this name stands for.
        people: The record of the table's people.
        known: Records of earlier runs.
        book: The ledger's sums and rules.
        say: Told if another data set is charged.

    Raises:
        BudgetError: The people are those of another data set, and a person gave this name; or they
            are those of several.
    """
    others = recognised(name, people, known=known, book=book)
    if not others:
        return name
    shown = ", ".join(f"{other!r} (about {share:.0%} in common)" for other, share in others.items())
    other = next(iter(others))
    if not given.is_chosen and len(others) == 1 and name not in book.sources:
        say(f"these are people of data set {shown}: charged to it, whatever the file is called")
        return other
    raise BudgetError(
        f"the people of {name!r} are those of {shown}, as this home's records tell: under another "
        f"name they would be charged as if nothing had been spent on them. Nothing was sent and "
        f"nothing was charged; give --source {_quoted(other)}. If they are other people all the "
        f"same, say so: splitmeans ledger source {_quoted(name)} --apart {_quoted(other)} "
        "--reason WHY"
    )


def _quoted(name: str) -> str:
    """Return a name as a shell takes it."""
    return shlex.quote(name)
