"""What a home keeps of its runs: states, messages to send, results, when something happened."""

import hashlib
import json
import re
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field

from splitmeans.errors import JournalError, ParameterError
from splitmeans.wire.slot import check_run, short_name

_HASH = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, kw_only=True)
class RunKey:
    """One participant's side of one run."""

    study_hash: str
    run: str
    participant: str

    def __post_init__(self) -> None:
        check_run(self.run)
        if not _HASH.fullmatch(self.study_hash):
            raise ParameterError("study_hash must be 64 hexadecimal digits, lower case")

    @property
    def values(self) -> tuple[str, str, str]:
        """The key as values of a query."""
        return self.study_hash, self.run, self.participant

    @property
    def lock_name(self) -> str:
        """Name of the file by which a process holds the run."""
        return f"{self.study_hash[:32]}-{self.run}-{short_name(self.participant)}"

    def __str__(self) -> str:
        return f"run {self.run!r} of {self.participant!r} in study {self.study_hash[:16]}"


@dataclass(frozen=True, kw_only=True)
class SavedRun:
    """A run as it was last saved; a finished one has an outcome and no state."""

    details: Mapping[str, str]
    stage: str
    state: bytes | None = field(repr=False)
    outcome: str | None
    reason: str | None


@dataclass(frozen=True, kw_only=True)
class Outgoing:
    """A message that is stored for sending; `Journal.read` returns its bytes."""

    slot_path: str
    sha256: str
    size: int
    sent: bool


# A result is public to the participant, so nothing secret stays when a run's state is erased.
RESULTS_TABLE = """CREATE TABLE results (
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


_NOW = "strftime('%Y-%m-%dT%H:%M:%SZ', 'now')"
_SET = f"BEGIN INSERT OR REPLACE INTO moments VALUES ({{}}, {_NOW}); END"
# The database keeps the times itself, so that no step of a run can forget it.
MOMENTS = (
    "CREATE TABLE moments (run_id INTEGER PRIMARY KEY, time TEXT NOT NULL)",
    f"CREATE TRIGGER begun AFTER INSERT ON runs {_SET.format('NEW.id')}",
    "CREATE TRIGGER went_on AFTER UPDATE OF stage, outcome ON runs " + _SET.format("NEW.id"),
    f"CREATE TRIGGER took AFTER INSERT ON accepted {_SET.format('NEW.run_id')}",
)


@dataclass(frozen=True, kw_only=True)
class KnownRun:
    """A run as a home knows it.

    `outcome` is None while it goes on; `since` is when something last happened, UTC, None if that
    is not known.
    """

    key: RunKey
    details: Mapping[str, str]
    stage: str
    outcome: str | None
    reason: str | None
    taken: frozenset[str]
    since: str | None


def known_runs(connection: sqlite3.Connection) -> tuple[KnownRun, ...]:
    """Return all runs of a home, in the order in which they were begun."""
    rows = connection.execute(
        "SELECT id, study_hash, run, participant, details, stage, outcome, reason, time "
        "FROM runs LEFT JOIN moments ON runs.id = moments.run_id ORDER BY id"
    ).fetchall()
    found = []
    for run_id, study_hash, run, participant, details, stage, outcome, reason, time in rows:
        taken = connection.execute("SELECT slot FROM accepted WHERE run_id = ?", (run_id,))
        found.append(
            KnownRun(
                key=RunKey(study_hash=study_hash, run=run, participant=participant),
                details=json.loads(details),
                stage=stage,
                outcome=outcome,
                reason=reason,
                taken=frozenset(slot for (slot,) in taken.fetchall()),
                since=time,
            )
        )
    return tuple(found)
