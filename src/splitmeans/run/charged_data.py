"""What a run is charged to, from before its table is opened until it has begun.

The record of the table's people is compared with those of all earlier runs before the party joins,
once more in the transaction in which it joins, and stored there: of two runs on the same people
under two names the second one sees the first, however close together they are.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from splitmeans.party.people import people_of
from splitmeans.privacy.ledger import Ledger
from splitmeans.privacy.people import secret_name
from splitmeans.run import people_records
from splitmeans.run.data_set import GivenName, settle_people
from splitmeans.run.home import DATABASE
from splitmeans.run.journal import Journal
from splitmeans.run.people_records import Record
from splitmeans.run.records import RunKey
from splitmeans.table.walk.interface import Table


@dataclass(frozen=True, kw_only=True)
class ChargedData:
    """The data of a run that is about to begin, or is taken up again.

    Attributes:
        journal: The home.
        key: The run.
        given: What the data was called.
        say: Told what happens.
    """

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

        Returns:
            The data set.
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
