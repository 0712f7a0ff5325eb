"""Records of whose data was charged: enough to know largely the same people again, and no more.

Ids are hashed under a secret of the home, and the smallest 1,024 hashes are kept (a bottom-k
sketch). Two records under one secret tell which share of the people they have in common: below the
smaller of the two largest hashes both are a random sample of all people, so counting there is
enough. A record never leaves the home, and without the secret it is a list of random numbers.
docs/reference/ledger.md says what somebody with both can find out.

A record is stored in the transaction in which a party joins a run, under the name of the data set
that the run will be charged to, and the charge names it: whoever loses the records cannot go on
charging as if nobody were known.
"""

import hashlib
import secrets
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from splitmeans._types import WordArray
from splitmeans.errors import BudgetError, JournalError
from splitmeans.run.home import brief_lock, write_file
from splitmeans.run.records import RunKey
from splitmeans.wire.private_file import read_private

SECRET_FILE = "people.key"
_NOTE = "people "
SIZE = 1024
SECRET_BYTES = 32
# From this share on, of either side, a table holds people of a data set.
SAME = 0.2

_WORD = np.dtype("<u8")
_TOP = np.uint64(2**64 - 1)


class Overlap(NamedTuple):
    """Which share of each side's people the other one has, as far as the records tell."""

    of_new: float
    of_known: float

    @property
    def are_same(self) -> bool:
        """Whether people of one are, for a good part, people of the other."""
        return max(self) >= SAME


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class People:
    """A record of the people in a table.

    Attributes:
        hashes: The smallest hashes of their ids, ascending, each once; all of them if there are
            fewer than `SIZE` people.
    """

    hashes: WordArray

    @staticmethod
    def smallest(hashes: WordArray) -> "People":
        """Return the record of all people with these hashes."""
        return People(hashes=np.unique(hashes)[:SIZE])

    def overlap(self, known: "People") -> Overlap:
        """Compare the people of this record with those of a known one."""
        end = min(self._end, known._end)
        new = self.hashes[self.hashes <= end]
        old = known.hashes[known.hashes <= end]
        common = len(np.intersect1d(new, old, assume_unique=True))
        return Overlap(common / max(len(new), 1), common / max(len(old), 1))

    @property
    def _end(self) -> np.uint64:
        """Up to here the record has every person."""
        return self.hashes[-1] if len(self.hashes) == SIZE else _TOP

    def dump(self) -> bytes:
        """Return the record as bytes."""
        return self.hashes.astype(_WORD).tobytes()

    @staticmethod
    def load(data: bytes) -> "People":
        """Read what `dump` returned."""
        if len(data) % 8 or len(data) > 8 * SIZE:
            raise JournalError("a record of people is damaged")
        hashes = np.frombuffer(data, dtype=_WORD).astype(np.uint64)
        if np.any(hashes[1:] <= hashes[:-1]):
            raise JournalError("a record of people is damaged")
        return People(hashes=hashes)

    @property
    def sha256(self) -> str:
        """Hash of the record, which a charge names."""
        return hashlib.sha256(self.dump()).hexdigest()


def hash_key(secret: bytes) -> bytes:
    """Return the key of the hashes, which a secret is used for and nothing else."""
    return hashlib.sha256(b"splitmeans people 1\n" + secret).digest()[:16]


def secret_name(secret: bytes) -> str:
    """Return a short name of a secret: records can be compared only under the same one."""
    return hashlib.sha256(b"splitmeans people secret 1\n" + secret).hexdigest()[:16]


class Known(NamedTuple):
    """People of whom a run was begun, and what it is, or would be, charged to."""

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

    `notes` are what the charges of the ledger say about their records.
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
