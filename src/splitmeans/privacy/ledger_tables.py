"""How the ledger is stored: its tables in the journal's database, made and brought up to date."""

import contextlib
import hashlib
import sqlite3
from collections.abc import Iterator

from splitmeans.errors import BudgetError, HomeUnavailable
from splitmeans.privacy.database import passing

# What the first entry follows.
GENESIS = hashlib.sha256(b"splitmeans ledger 1\n").hexdigest()

_REFUSE = "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
_SCHEMA = (
    """CREATE TABLE ledger (
        number INTEGER PRIMARY KEY, kind TEXT NOT NULL, time TEXT NOT NULL, source TEXT NOT NULL,
        study_hash TEXT, run TEXT, party TEXT, what TEXT, relation TEXT,
        epsilon TEXT NOT NULL, delta TEXT NOT NULL,
        covered_by INTEGER REFERENCES ledger (number), release_sha256 TEXT,
        previous TEXT NOT NULL, hash TEXT NOT NULL,
        party_epsilon TEXT, party_relation TEXT, coalition_epsilon TEXT)""",
    f"CREATE TRIGGER ledger_update BEFORE UPDATE ON ledger {_REFUSE}",
    f"CREATE TRIGGER ledger_delete BEFORE DELETE ON ledger {_REFUSE}",
    # INSERT OR REPLACE takes a row away without the trigger above.
    f"""CREATE TRIGGER ledger_insert BEFORE INSERT ON ledger
        WHEN NEW.number <> (SELECT coalesce(max(number), 0) + 1 FROM ledger) {_REFUSE}""",
    "CREATE TABLE ledger_head (id INTEGER PRIMARY KEY CHECK (id = 1), number INTEGER, hash TEXT)",
    f"INSERT INTO ledger_head VALUES (1, 0, '{GENESIS}')",
)
# What a ledger of format 1 does not have.
_UPDATE = tuple(
    f"ALTER TABLE ledger ADD COLUMN {name} TEXT"
    for name in ("party_epsilon", "party_relation", "coalition_epsilon")
)


def create_tables(connection: sqlite3.Connection) -> None:
    """Create the tables of an empty ledger, inside the caller's transaction."""
    for statement in _SCHEMA:
        connection.execute(statement)


def update_tables(connection: sqlite3.Connection) -> None:
    """Make the tables of format 1 those of `create_tables`, inside the caller's transaction."""
    for statement in _UPDATE:
        connection.execute(statement)


@contextlib.contextmanager
def snapshot(connection: sqlite3.Connection) -> Iterator[None]:
    """All reads inside see the same state, also while another process writes."""
    if connection.in_transaction:
        yield
        return
    connection.execute("BEGIN")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")


@contextlib.contextmanager
def fail_closed() -> Iterator[None]:
    """Any doubt about the database refuses what is asked of the ledger."""
    try:
        yield
    except sqlite3.Error as problem:
        if (words := passing(problem)) is not None:
            raise HomeUnavailable(f"the ledger {words}") from problem
        raise BudgetError(f"the ledger cannot be read or written: {problem}") from problem
