"""Records of people in a home: the secret that they are made under, and where they are kept.

A record is stored in the transaction in which a party joins a run, under the name of the data set
that the run will be charged to, and the charge names its hash: whoever loses the records cannot go
on charging as if nobody were known.
"""

import hashlib
import secrets
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from splitmeans.errors import BudgetError
from splitmeans.privacy.people import SECRET_BYTES, People
from splitmeans.run.home import brief_lock, write_file
from splitmeans.run.records import RunKey
from splitmeans.wire.private_file import read_private

SECRET_FILE = "people.key"
_NOTE = "people "


@dataclass(frozen=True, kw_only=True)
class Known:
    """People of whom a run was begun.

    Attributes:
        source: What the run is, or would be, charged to.
        people: The record.
    """

    source: str
    people: People


class Record(NamedTuple):
    """A record of people, and the name of the secret that it was made under."""

    people: People
    secret: str


def home_secret(folder: Path) -> bytes:
    """Return the home's secret for records, made when it is first needed."""
    path = folder / SECRET_FILE
    with brief_lock(folder):
        if not path.exists():
            write_file(path, secrets.token_hex(SECRET_BYTES).encode() + b"\n")
    data = read_private(path, what="secret file", max_bytes=200)
    try:
        secret = bytes.fromhex(data.decode("ascii").strip())
    except ValueError:
        secret = b""
    if len(secret) != SECRET_BYTES:
        raise BudgetError(
            f"{path} is damaged: it must have {2 * SECRET_BYTES} hexadecimal digits; restore it, "
            "because without it the people of earlier runs cannot be recognised"
        )
    return secret


def store(connection: sqlite3.Connection, key: RunKey, record: Record, *, source: str) -> None:
    """Store the record of a run that is begun, inside the caller's transaction."""
    people, secret = record
    connection.execute(
        "INSERT INTO people VALUES (?, ?, ?, ?, ?, ?, ?)",
        (*key.values, source, secret, people.dump(), people.sha256),
    )


def rename(connection: sqlite3.Connection, key: RunKey, *, source: str) -> None:
    """Let a run that was not charged yet have another source."""
    connection.execute(
        "UPDATE people SET source = ? WHERE study_hash = ? AND run = ? AND participant = ?",
        (source, *key.values),
    )


def of_run(connection: sqlite3.Connection, key: RunKey) -> Record | None:
    """Return the record of a run, None if the run has none."""
    rows = connection.execute(
        "SELECT record, secret FROM people WHERE study_hash = ? AND run = ? AND participant = ?",
        key.values,
    ).fetchall()
    return Record(People.load(rows[0][0]), str(rows[0][1])) if rows else None


def known_beside(connection: sqlite3.Connection, record: Record, *, but: RunKey) -> list[Known]:
    """Return the people of all runs but one, to compare a record with.

    Raises:
        BudgetError: Some were recorded under another secret, so they cannot be compared.
    """
    rows = connection.execute(
        "SELECT source, record, secret FROM people "
        "WHERE NOT (study_hash = ? AND run = ? AND participant = ?)",
        but.values,
    ).fetchall()
    if any(secret != record.secret for _, _, secret in rows):
        raise BudgetError(
            f"{SECRET_FILE} of this home is not the one under which the people of earlier runs "
            "were recorded, so they cannot be recognised: restore it from a backup (`splitmeans "
            "home restore`)"
        )
    return [Known(source=source, people=People.load(data)) for source, data, _ in rows]


def note_of(connection: sqlite3.Connection, key: RunKey) -> str | None:
    """Return what a charge says about the record of its run."""
    found = of_run(connection, key)
    return None if found is None else _note(key.values, found.people.sha256)


def _note(run: Sequence[str], sha256: str) -> str:
    """Name a record in a charge, in another way in every run.

    Charges are filed away and shown to others (`evidence/`): the hash of a record itself would tell
    whoever sees two of them whether anybody came or went in between, at no charge.
    """
    text = "\n".join(("splitmeans people note 1", *run, sha256))
    return f"{_NOTE}{hashlib.sha256(text.encode()).hexdigest()}"


def check_kept(connection: sqlite3.Connection, notes: list[str]) -> None:
    """Refuse to go on if records are gone that charges name.

    Args:
        connection: The home's database.
        notes: What the charges of the ledger say about their records.
    """
    named = {note for note in notes if note.startswith(_NOTE)}
    rows = connection.execute("SELECT study_hash, run, participant, sha256 FROM people")
    kept = {_note(run, sha256) for *run, sha256 in rows}
    if missing := named - kept:
        raise BudgetError(
            f"this home has lost {len(missing)} records of the people that it charged, so it could "
            "not recognise them: restore splitmeans.sqlite from a backup (`splitmeans home "
            "restore`)"
        )
