"""Results of finished runs, kept in the home so that a lost result folder can be written again.

A result is public to the participant, so nothing secret stays when a run's state is erased.
"""

import hashlib
import sqlite3

from splitmeans.errors import JournalError
from splitmeans.run.records import RunKey

TABLE = """CREATE TABLE results (
    study_hash TEXT NOT NULL, run TEXT NOT NULL, participant TEXT NOT NULL,
    data BLOB NOT NULL, sha256 TEXT NOT NULL,
    PRIMARY KEY (study_hash, run, participant))"""


def keep_result(connection: sqlite3.Connection, key: RunKey, data: bytes) -> None:
    """Store the result of a run, inside the caller's transaction."""
    digest = hashlib.sha256(data).hexdigest()
    connection.execute("INSERT INTO results VALUES (?, ?, ?, ?, ?)", (*key.values, data, digest))


def kept_result(connection: sqlite3.Connection, key: RunKey) -> bytes | None:
    """Return the stored result of a run, or None if there is none.

    Raises:
        JournalError: It is damaged.
    """
    rows = connection.execute(
        "SELECT data, sha256 FROM results WHERE study_hash = ? AND run = ? AND participant = ?",
        key.values,
    ).fetchall()
    if not rows:
        return None
    data, digest = rows[0]
    if hashlib.sha256(data).hexdigest() != digest:
        raise JournalError(f"the stored result of {key} is damaged")
    return bytes(data)
