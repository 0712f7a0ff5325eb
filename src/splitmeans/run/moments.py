"""When something last happened in each run of a home, and what runs there are: for `status`.

The database keeps the times itself, by triggers, so that no step of a run can forget it.
"""

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass

from splitmeans.run.records import RunKey

_NOW = "strftime('%Y-%m-%dT%H:%M:%SZ', 'now')"
_SET = f"BEGIN INSERT OR REPLACE INTO moments VALUES ({{}}, {_NOW}); END"
STATEMENTS = (
    "CREATE TABLE moments (run_id INTEGER PRIMARY KEY, time TEXT NOT NULL)",
    f"CREATE TRIGGER begun AFTER INSERT ON runs {_SET.format('NEW.id')}",
    "CREATE TRIGGER went_on AFTER UPDATE OF stage, outcome ON runs " + _SET.format("NEW.id"),
    f"CREATE TRIGGER took AFTER INSERT ON accepted {_SET.format('NEW.run_id')}",
)


@dataclass(frozen=True, kw_only=True)
class KnownRun:
    """A run as a home knows it.

    Attributes:
        key: Which run, and whose side of it.
        details: What it was begun with.
        stage: State that the participant is in.
        outcome: None while it goes on.
        reason: Why it failed.
        taken: Paths of the messages that were taken.
        since: When something last happened, UTC; None if it is not known.
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


def approved_studies(connection: sqlite3.Connection) -> dict[str, str]:
    """Return the texts of all studies that the owner approved, by hash."""
    return dict(connection.execute("SELECT study_hash, study_text FROM approvals").fetchall())
