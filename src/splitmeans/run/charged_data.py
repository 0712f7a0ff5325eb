"""What a run is charged to, from before its table is opened until it has begun.

The record of the table's people is compared with those of all earlier runs before the party joins,
once more in the transaction in which it joins, and stored there: of two runs on the same people
under two names the second one sees the first, however close together they are.

A careless name must not start at zero. So a name that nobody declared is taken only while the home
has no limit, no declared data set and knows the people of all its charges; and people whom the home
knows count against their data set, whatever the file is called. A name that a person gave is never
replaced: the run is refused, with the ways out.
"""

import shlex
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow.compute as pc

from splitmeans._types import WordArray
from splitmeans.errors import BudgetError, ParameterError
from splitmeans.kernels.siphash import hash_ids
from splitmeans.privacy.data_sets import check_source, listed
from splitmeans.privacy.ledger import Ledger
from splitmeans.privacy.ledger_rules import Book
from splitmeans.run import people_records
from splitmeans.run.home import DATABASE
from splitmeans.run.journal import Journal
from splitmeans.run.people_records import SIZE, Known, People, Record, hash_key, secret_name
from splitmeans.run.records import RunKey
from splitmeans.table.walk.interface import Table, UserBlock


@dataclass(frozen=True, kw_only=True)
class GivenName:
    """What a run calls its data.

    A person gave a chosen one; otherwise it was made of the place of the data.
    """

    name: str
    is_chosen: bool

    def settled(self, book: Book, *, say: Callable[[str], object]) -> str:
        """Return the data set that the name stands for.

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

    `name` is the data set that the given name stands for; `known` has the records of earlier runs.

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


@dataclass(frozen=True, kw_only=True)
class ChargedData:
    """The data of a run that is about to begin, or is taken up again."""

    journal: Journal
    key: RunKey
    given: GivenName
    say: Callable[[str], object]

    def by_name(self) -> str:
        """Return the data set that the name stands for; see `GivenName.settled`."""
        return self.given.settled(Ledger(self.journal.connection).book(), say=self.say)

    def record(self, table: Table) -> Record:
        """Return the record of a table's people."""
        secret = people_records.home_secret(self.journal.folder)
        return Record(people_of(table, secret=secret), secret_name(secret))

    def by_people(self, record: Record) -> str:
        """Return the data set that the table is charged to; see `settle_people`.

        Raises:
            BudgetError: Earlier records are gone, or were made under a secret that is gone.
        """
        connection = self.journal.connection
        ledger = Ledger(connection)
        book = ledger.book()
        people_records.check_kept(connection, [e.note for e in ledger.entries() if e.note])
        known = people_records.known_beside(connection, record, but=self.key)
        name = self.given.settled(book, say=lambda text: None)
        return settle_people(self.given, name, record.people, known=known, book=book, say=self.say)

    def store(self, record: Record, *, source: str) -> None:
        """Store the record of the run, inside the transaction in which it begins."""
        people_records.store(self.journal.connection, self.key, record, source=source)

    def rename(self, source: str) -> str:
        """Give a run that was begun and not charged another source, if its people allow it.

        Returns the data set.
        """
        connection = self.journal.connection
        record = people_records.of_run(connection, self.key)
        if record is not None:
            source = self.by_people(record)
            people_records.rename(connection, self.key, source=source)
        return source

    def note(self) -> str | None:
        """Return what the charge says about the record."""
        return people_records.note_of(self.journal.connection, self.key)


def would_charge(home: Path, key: RunKey, given: GivenName, table: Table) -> str:
    """Return the data set that a run on a table would be charged to; nothing is stored.

    Raises:
        ParameterError: The name is new; see `GivenName.settled`.
        BudgetError: The people are those of another data set; see `settle_people`.
    """
    if not (home / DATABASE).exists():
        return given.name
    with Journal.open(home) as journal:
        data = ChargedData(journal=journal, key=key, given=given, say=lambda text: None)
        return data.by_people(data.record(table))


def people_of(table: Table, *, secret: bytes) -> People:
    """Return the record of a table's people under a secret; the same in any order of rows."""
    found = np.empty(0, dtype=np.uint64)
    for part in table.users.each(partial(_smallest, key=hash_key(secret))):
        found = np.unique(np.concatenate([found, part]))[:SIZE]
    return People(hashes=found)


def _smallest(block: UserBlock, *, key: bytes) -> WordArray:
    """Return the smallest hashes of a block of users.

    Studies differ in how they write ids. Case, blanks at the ends and leading zeros are left out,
    so that the same people are known again where one study takes ids as text and another as
    numbers.
    """
    bare = pc.utf8_ltrim(pc.utf8_trim_whitespace(pc.utf8_lower(block.ids)), characters="0")
    hashes = np.unique(hash_ids(key, bare)[:, 0])
    return hashes[:SIZE]
