"""The ledger: what every release has cost each data source, over all studies and runs.

Entries are only ever appended, each bound to the one before it by a hash. Before anything is
written the whole ledger is checked, and any doubt refuses the charge. The ledger lives in the
database of `run.journal`, so a charge and the release that it pays for are stored together or not
at all. docs/reference/ledger.md says what a check can and cannot find; the rules are in
`privacy.ledger_rules`.
"""

import contextlib
import dataclasses
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from splitmeans.errors import BudgetError, ParameterError
from splitmeans.privacy.data_sets import check_source
from splitmeans.privacy.events import Relation
from splitmeans.privacy.ledger_rules import Book, Entry, Spent, Towards
from splitmeans.privacy.ledger_tables import GENESIS, fail_closed, head_path, is_hash, read_head
from splitmeans.privacy.limits import AMOUNTS, Limit, check_cost
from splitmeans.privacy.series import ALL_RUNS, Series, series_key

# What an entry names that is about the home and not about one data set.
EVERYTHING = "*"

# What the charge of a series and a slot both say.
_OF_BOTH = ("study_hash", "party", "note")
_COLUMNS = tuple(item.name for item in dataclasses.fields(Entry))


@dataclass(frozen=True, kw_only=True)
class Charge:
    """What a run costs a source.

    Attributes:
        relation: The neighbouring relation that epsilon and delta are about.
        epsilon: Infinite for a release without protection.
        delta: The same for delta.
        towards: What it costs towards participants; without it the sums towards them have no bound
            from then on.
    """

    relation: Relation
    epsilon: float
    delta: float
    towards: Towards | None = None

    def __post_init__(self) -> None:
        check_cost(self.epsilon, self.delta)

    @property
    def figures(self) -> dict[str, Any]:
        """The cost as an entry has it."""
        figures: dict[str, Any] = {} if self.towards is None else dict(vars(self.towards))
        figures |= {"relation": self.relation.name, "epsilon": self.epsilon, "delta": self.delta}
        return figures | {name: float(figures[name]) for name in figures if name in AMOUNTS}


@dataclass(frozen=True, kw_only=True)
class VerifiedLedger:
    """A ledger that was found sound: its length and its last hash."""

    n_entries: int
    head: str


class Ledger:
    """The ledger in an open database.

    The connection is the journal's, to a database with the tables of `create_tables`.
    """

    def __init__(
        self,
        connection: sqlite3.Connection,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._connection = connection
        self._now = now

    def set_limit(self, source: str, limit: Limit) -> Entry:
        """Set the limit of a source from now on; also one below what is already spent."""
        figures = {name: float(most) for name, most in vars(limit).items() if most is not None}
        return self._append(kind="limit", source=source, **figures)

    def act(self, kind: str, *, source: str = EVERYTHING, **texts: str) -> Entry:
        """Write an entry that costs nothing and limits nothing (`ledger_rules.KINDS`).

        `source` is the data set that it is about; without one it is about the whole home.

        Raises:
            BudgetError: A rule is broken.
        """
        return self._append(kind=kind, source=source, epsilon=0.0, delta=0.0, **texts)

    def book(self) -> Book:
        """Return everything that the ledger says, checked; a copy of its own."""
        return self._replay()[0]

    def charge(
        self, source: str, cost: Charge, *, late: bool = False, **facts: str | None
    ) -> Entry:
        """Charge a source with the whole budget of a run, at the run's first release.

        Must be called inside the transaction that stores the release.

        A `late` run was released before and is missing here. Limits do not stop it, because what
        was released cannot be called back; it counts for every later charge. Facts are study_hash,
        run, party, what, release_sha256 and note.

        Raises:
            BudgetError: The limit would be passed, the run has been charged before, the source's
                earlier charges are about another relation, or the ledger is not sound.
        """
        kind = "added" if late else "charge"
        return self._append(kind=kind, source=source, **_given(facts), **cost.figures)

    def draw_slot(
        self,
        source: str,
        series: Series,
        number: int,
        *,
        cost: Charge,
        late: bool = False,
        **facts: str | None,
    ) -> Entry:
        """Give a run its slot of a series, which is charged before if it was not.

        Must be called inside the transaction that stores the run's first release.

        The source of an open series is the one it was opened with. The cost is of all runs
        together; `late` and `facts` are as for `charge`.

        Raises:
            BudgetError: As for `charge`, or the slot was given before.
        """
        given = _given(facts)
        both = {name: given[name] for name in _OF_BOTH if name in given}
        both["series_events"] = series.events
        opened = self.series_of(study_hash=given["study_hash"], party=given["party"])
        if opened is None:
            self._append(
                kind="added" if late else "charge",
                source=source,
                run=ALL_RUNS,
                what=f"series of {series.runs} runs",
                series_runs=series.runs,
                **both,
                **cost.figures,
            )
        else:
            source = opened.source
        free = {"epsilon": 0.0, "delta": 0.0, "series_run": number}
        kind = "late-slot" if late else "slot"
        return self._append(kind=kind, source=source, **given | both | free)

    def check_room(self, source: str, cost: Charge, *, beside: Sequence[Charge] = ()) -> None:
        """Refuse now what `charge` would refuse later, so that others do not spend in vain.

        `beside` is what other runs cost that will be charged before it.

        Raises:
            BudgetError: As for `charge`; nothing is written.
        """
        check_source(source)
        book, number, _ = self._replay()  # a copy of its own, so the entries go no further
        for ahead, one in enumerate((*beside, cost), start=1):
            entry = Entry(
                number=number + ahead,
                kind="charge",
                time="",
                source=source,
                run=f"run {ahead}",
                **one.figures,
            )
            book.add(entry)

    def cover(
        self, source: str, *, study_hash: str, run: str, party: str, what: str, release_sha256: str
    ) -> Entry:
        """Record a later release of a run, which the run's charge covers; see `charge`."""
        return self._append(
            kind="cover",
            source=source,
            study_hash=study_hash,
            run=run,
            party=party,
            what=what,
            epsilon=0.0,
            delta=0.0,
            release_sha256=release_sha256,
        )

    def charge_of(self, *, study_hash: str, run: str, party: str) -> Entry | None:
        """Return the charge of a run, or None if nothing of it has been released."""
        return self._replay()[0].charges.get((study_hash, run, party))

    def series_of(self, *, study_hash: str, party: str) -> Entry | None:
        """Return the charge of a study's series, or None if nothing of it has been released."""
        return self.charge_of(study_hash=study_hash, run=ALL_RUNS, party=party)

    def slots_of(self, *, study_hash: str, party: str) -> dict[int, Entry]:
        """Return the slots of a series that were given, by number."""
        found = self.book().slots.get(series_key(study_hash, party), {})
        return {number: entry for number, entry in found.items() if number is not None}

    def entries(self) -> tuple[Entry, ...]:
        """Return all entries as they stand in the database; `verify` says if they are sound."""
        with fail_closed(), _snapshot(self._connection):
            return tuple(_read_entry(row)[0] for row in self._rows())

    def sources(self) -> tuple[str, ...]:
        """Return the names of all sources that have a charge or a limit."""
        return self._replay()[0].sources

    def spent(self, source: str) -> Spent:
        """Return what a source has spent, and its limit."""
        return self._replay()[0].spent(source)

    def verify(self) -> VerifiedLedger:
        """Check everything; an error names the first entry that is wrong, and what is wrong."""
        _, number, head = self._replay()
        return VerifiedLedger(n_entries=number, head=head)

    def _append(self, **values: Any) -> Entry:
        """Add an entry that keeps every rule; raise before anything is written otherwise."""
        for name, value in values.items():
            if not isinstance(value, float | int):
                _check_text(name, value)
        if not self._connection.in_transaction:
            raise BudgetError(
                "the ledger must be written inside a transaction, together with what is paid for: "
                "use `with journal.transaction():`"
            )
        book, number, head = self._replay()
        time = self._now().astimezone(UTC).isoformat(timespec="seconds")
        entry = Entry(number=number + 1, time=time, **values)
        whole = {"cover": entry.run_key, "slot": series_key(entry.study_hash, entry.party)}
        whole["late-slot"] = whole["slot"]
        first = book.charges.get(whole[entry.kind]) if entry.kind in whole else None
        if first is not None:
            entry = replace(entry, covered_by=first.number, relation=first.relation)
        book.add(entry)
        digest = entry.hash_after(head)
        row = entry.plain | {"previous": head, "hash": digest}
        marks = ", ".join(f":{name}" for name in row)
        with fail_closed():
            self._connection.execute(f"INSERT INTO ledger ({', '.join(row)}) VALUES ({marks})", row)
            self._connection.execute(
                "UPDATE ledger_head SET number = ?, hash = ?", (entry.number, digest)
            )
        return entry

    def _rows(self) -> list[tuple[Any, ...]]:
        names = ", ".join((*_COLUMNS, "previous", "hash"))
        return self._connection.execute(f"SELECT {names} FROM ledger ORDER BY number").fetchall()

    def _replay(self) -> tuple[Book, int, str]:
        """Check all entries in order; return the sums, the number of entries and the last hash."""
        with fail_closed():
            # Read before the entries, because it is written after them and may lag behind.
            path = head_path(self._connection)
            seen = (0, GENESIS) if path is None else read_head(path)
            with _snapshot(self._connection):
                rows = self._rows()
                heads = self._connection.execute("SELECT number, hash FROM ledger_head").fetchall()
        book, hashes = Book(), [GENESIS]
        for number, row in enumerate(rows, start=1):
            hashes.append(_check_row(row, number=number, follows=hashes[-1], book=book))
        if heads != [(len(rows), hashes[-1])]:
            raise BudgetError(
                f"ledger entry {len(rows) + 1} is missing: table ledger_head does not name entry "
                f"{len(rows)} as the last one"
            )
        if seen[0] > len(rows) or hashes[seen[0]] != seen[1]:
            raise BudgetError(
                f"{path} is from a ledger of {seen[0]} entries or more that is not this one of "
                f"{len(rows)}: the end of the ledger was cut off, or the database was replaced by "
                "an older one"
            )
        return book, len(rows), hashes[-1]


def _given(facts: Mapping[str, str | None]) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if value is not None}


def _check_row(row: tuple[Any, ...], *, number: int, follows: str, book: Book) -> str:
    """Check one entry against the chain and the rules; return its hash."""
    if row[0] != number:
        raise BudgetError(f"ledger entry {number} is missing")
    entry, previous, digest = _read_entry(row)
    if not is_hash(previous) or entry.hash_after(previous) != digest:
        raise BudgetError(f"ledger entry {number} was changed after it was written")
    if previous != follows:
        raise BudgetError(
            f"ledger entry {number} does not follow entry {number - 1}, which was replaced"
        )
    try:
        book.add(entry)
    except (BudgetError, ParameterError) as problem:
        raise BudgetError(f"ledger entry {number} breaks a rule: {problem}") from problem
    return str(digest)


def _read_entry(row: tuple[Any, ...]) -> tuple[Entry, Any, Any]:
    *values, previous, digest = row
    plain = dict(zip(_COLUMNS, values, strict=True))
    try:
        amounts = {name: float(plain[name]) for name in AMOUNTS if plain[name] is not None}
        entry = Entry(**(plain | amounts))
        # Every value has one form only, so that nothing can be rewritten without a trace.
        if entry.plain == plain and not any(isinstance(value, bytes) for value in values):
            return entry, previous, digest
    except (TypeError, ValueError):
        pass
    raise BudgetError(f"ledger entry {row[0]} was changed after it was written")


@contextlib.contextmanager
def _snapshot(connection: sqlite3.Connection) -> Iterator[None]:
    """All reads inside see the same state, also while another process writes."""
    if connection.in_transaction:
        yield
        return
    connection.execute("BEGIN")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")


def _check_text(name: str, value: Any) -> None:
    if name == "source":
        check_source(value)
    if not isinstance(value, str) or not value or not value.isprintable():
        raise ParameterError(f"{name} of a ledger entry must be printable text")
    if name in ("study_hash", "release_sha256", "series_events") and not is_hash(value):
        raise ParameterError(f"{name} must be 64 hexadecimal digits, lower case")
