"""Where a ledger is kept: its tables in a database, and the file beside it that has seen its end.

The file lets a database that was put back from a backup be told from a whole one.
"""

import contextlib
import hashlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from splitmeans.errors import BudgetError, HomeUnavailable

# What the first entry follows.
GENESIS = hashlib.sha256(b"splitmeans ledger 1\n").hexdigest()
HEAD_FILE = "ledger.head"

_REFUSE = "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
_SCHEMA = (
    """CREATE TABLE ledger (
        number INTEGER PRIMARY KEY, kind TEXT NOT NULL, time TEXT NOT NULL, source TEXT NOT NULL,
        study_hash TEXT, run TEXT, party TEXT, what TEXT, relation TEXT,
        epsilon TEXT NOT NULL, delta TEXT NOT NULL,
        covered_by INTEGER REFERENCES ledger (number), release_sha256 TEXT,
        previous TEXT NOT NULL, hash TEXT NOT NULL,
        party_epsilon TEXT, party_relation TEXT, coalition_epsilon TEXT,
        note TEXT, series_runs INTEGER, series_run INTEGER, series_events TEXT)""",
    f"CREATE TRIGGER ledger_update BEFORE UPDATE ON ledger {_REFUSE}",
    f"CREATE TRIGGER ledger_delete BEFORE DELETE ON ledger {_REFUSE}",
    # INSERT OR REPLACE takes a row away without the trigger above.
    f"""CREATE TRIGGER ledger_insert BEFORE INSERT ON ledger
        WHEN NEW.number <> (SELECT coalesce(max(number), 0) + 1 FROM ledger) {_REFUSE}""",
    "CREATE TABLE ledger_head (id INTEGER PRIMARY KEY CHECK (id = 1), number INTEGER, hash TEXT)",
    f"INSERT INTO ledger_head VALUES (1, 0, '{GENESIS}')",
)


def create_tables(connection: sqlite3.Connection) -> None:
    """Create the tables of an empty ledger, inside the caller's transaction."""
    for statement in _SCHEMA:
        connection.execute(statement)


def head_path(connection: sqlite3.Connection) -> Path | None:
    """Return the file beside the database that keeps the head; None for a database in memory."""
    files = {name: file for _, name, file in connection.execute("PRAGMA database_list")}
    return Path(files["main"]).with_name(HEAD_FILE) if files["main"] else None


def next_head(connection: sqlite3.Connection, *, seen: tuple[int, str]) -> str | None:
    """Return what that file should say now; None if it says so, or is not about this ledger."""
    with fail_closed():
        number, digest = connection.execute("SELECT number, hash FROM ledger_head").fetchone()
        known = connection.execute("SELECT hash FROM ledger WHERE number = ?", seen[:1]).fetchall()
    is_behind = seen == (0, GENESIS) or known == [seen[1:]]
    return f"{number} {digest}\n" if is_behind and number > seen[0] else None


def read_head(path: Path) -> tuple[int, str]:
    """Return number and hash of the last entry that the file has seen."""
    try:
        number, digest = path.read_text(encoding="ascii").split()
        if number.isdigit() and is_hash(digest):
            return int(number), digest
    except (OSError, ValueError):
        pass
    raise BudgetError(
        f"{path} is missing or damaged, so a ledger that was cut short cannot be told from a "
        "whole one: restore the file, or compare the ledger with a copy and write number and hash "
        "of the last entry into the file"
    )


@contextlib.contextmanager
def fail_closed() -> Iterator[None]:
    """Turn what the database says into an error that refuses the charge."""
    try:
        yield
    except sqlite3.Error as problem:
        if (words := passing(problem)) is not None:
            raise HomeUnavailable(f"the ledger {words}") from problem
        raise BudgetError(f"the ledger cannot be read or written: {problem}") from problem


def is_hash(text: Any) -> bool:
    """Return whether a text is a SHA-256 in hex."""
    return isinstance(text, str) and len(text) == 64 and set(text) <= set("0123456789abcdef")


def passing(problem: sqlite3.Error) -> str | None:
    """Say what is in the way, if nothing is wrong with the database itself and it may pass."""
    code = getattr(problem, "sqlite_errorcode", None)
    match None if code is None else code & 0xFF:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return "is in use by another splitmeans process: wait until it ends, or stop it"
        case sqlite3.SQLITE_FULL:
            return "cannot be written: database or disk is full; make room"
    return None
