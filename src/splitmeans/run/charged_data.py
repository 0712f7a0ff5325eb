"""What a run is charged to, from before its table is opened until it has begun.

The record of the table's people is compared with those of all earlier runs before the party joins,
once more in the transaction in which it joins, and stored there: of two runs on the same people
under two names the second one sees the first, however close together they are.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from splitmeans.errors import BudgetError
from splitmeans.party.people import people_of
from splitmeans.privacy.ledger import Ledger
from splitmeans.privacy.people import People, secret_name
from splitmeans.run import people_records
from splitmeans.run.data_set import GivenName, settle_people
from splitmeans.run.home import DATABASE
from splitmeans.run.journal import Journal
from splitmeans.run.people_records import SECRET_FILE, Known
from splitmeans.run.people_register import Register
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

    def records(self, table: Table) -> Mapping[bytes, People]:
        """Return the record of a table's people under every secret that is needed, first the main.

        Raises:
            BudgetError: Earlier records were made under a secret that is gone.
        """
        return {secret: people_of(table, secret=secret) for secret in self._secrets()}

    def by_people(self, records: Mapping[bytes, People]) -> str:
        """Return the data set that the table is charged to; see `settle_people`."""
        connection = self.journal.connection
        ledger = Ledger(connection)
        book = ledger.book()
        people_records.check_kept(connection, [e.note for e in ledger.entries() if e.note])
        name = self.given.settled(book, say=lambda text: None)
        for secret, people in records.items():
            name = settle_people(
                self.given, name, people, known=self._known(secret), book=book, say=self.say
            )
        return name

    def store(self, records: Mapping[bytes, People], *, source: str) -> None:
        """Store the record of the run, inside the transaction in which it begins."""
        secret, people = next(iter(records.items()))
        if (register := self._register) is not None:
            register.store(self.key, source=source, people=people)
        people_records.store(
            self.journal.connection, self.key, source=source, people=people, secret=secret
        )

    def rename(self, source: str) -> str:
        """Give a run that was begun and not charged another source, if its people allow it.

        Returns:
            The data set.
        """
        connection = self.journal.connection
        found = people_records.of_run(connection, self.key)
        if found is not None:
            own, name = found
            records = {
                secret: own.people for secret in self._secrets() if secret_name(secret) == name
            }
            source = self.by_people(records)
            people_records.rename(connection, self.key, source=source)
        return source

    def note(self) -> str | None:
        """Return what the charge says about the record."""
        return people_records.note_of(self.journal.connection, self.key)

    @property
    def _register(self) -> Register | None:
        return Register.of_home(self.journal.folder)

    def _known(self, secret: bytes) -> list[Known]:
        known = people_records.all_known(self.journal.connection, secret=secret, but=self.key)
        register = self._register
        return known + (register.known() if register and register.secret == secret else [])

    def _secrets(self) -> list[bytes]:
        register = self._register
        used = [] if register is None else [register.secret]
        names = people_records.secret_names(self.journal.connection, but=self.key)
        if register is None or names - {secret_name(used[0])}:
            used.append(people_records.home_secret(self.journal.folder))
        if names - {secret_name(secret) for secret in used}:
            raise BudgetError(
                f"{SECRET_FILE} in {self.journal.folder} is not the one under which the people of "
                "earlier runs were recorded, so they cannot be recognised: restore it from a "
                "backup (`splitmeans home restore`), or mount the register of people that this "
                "home had"
            )
        return used


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
        return data.by_people(data.records(table))
