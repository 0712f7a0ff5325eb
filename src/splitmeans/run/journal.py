"""What a participant must not lose: the state of its runs, what it took, and what it sends.

One SQLite database in the participant's home folder. Several processes may use it, each for runs
of its own: `hold` lets one process at a time drive a run. A step of a run is one transaction: take
a message, charge the ledger, store what will be sent, save the new state. Nothing is sent before
that transaction is on disk, and what is sent, or sent again, is read back from disk (rule R11).

Large sealed messages are files in `outbox/`, named by their SHA-256 and on disk before the row that
names them is committed. A crash in between leaves a file without a row; the next `open` removes
it, in a transaction of its own, so that no other process has a file on its way to its row.
"""

import contextlib
import errno
import hashlib
import json
import logging
import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from splitmeans.errors import (
    BudgetError,
    HomeUnavailable,
    JournalError,
    ProtocolError,
)
from splitmeans.privacy import ledger_tables
from splitmeans.privacy.ledger_tables import passing
from splitmeans.run import home, run_keys
from splitmeans.run.records import Outgoing, RunKey, SavedRun

_log = logging.getLogger(__name__)
THIS_RUN = "(SELECT id FROM runs WHERE study_hash = ? AND run = ? AND participant = ?)"


class Journal:
    """An open journal; see the module text. Make one with `Journal.open`.

    Every method that writes works inside `transaction`, or makes one of its own.

    The ledger writes through its connection.
    """

    def __init__(self, folder: Path, *, connection: sqlite3.Connection) -> None:
        self.folder = folder
        self.connection = connection
        self._locks: list[int] = []
        self._inside = False

    @classmethod
    def open(cls, folder: Path) -> "Journal":
        """Open the journal of a home folder, creating what is missing.

        Raises:
            JournalError: Others may read the folder, or what is in it cannot be used.
        """
        folder = Path(folder).resolve()
        with contextlib.ExitStack() as undo:
            try:
                home.make_folders(folder)
                with home.brief_lock(folder):
                    connection = home.connect(folder)
                    undo.callback(connection.close)
                    journal = cls(folder, connection=connection)
                    journal._sweep()
                    journal._write_head()
            except OSError as problem:
                raise JournalError(f"{folder} cannot be used: {problem.strerror}") from problem
            except sqlite3.Error as problem:
                raise _unusable(problem, folder, "cannot be used: ") from problem
            undo.pop_all()
            return journal

    def hold(self, run_key: RunKey) -> None:
        """Keep other processes from driving a run until this journal is closed (rule R11).

        Raises:
            HomeUnavailable: Another process has the run.
        """
        try:
            lock = home.take_run_lock(self.folder, run_key.lock_name)
        except OSError as problem:
            raise JournalError(f"{self.folder} cannot be used: {problem.strerror}") from problem
        if lock is None:
            raise HomeUnavailable(
                f"{run_key} is in use by another splitmeans process with the home {self.folder}: "
                "wait until it ends, or stop it"
            )
        self._locks.append(lock)

    def close(self) -> None:
        """Close the database and let go of the runs."""
        self.connection.close()
        while self._locks:
            home.release_lock(self._locks.pop())

    def __enter__(self) -> "Journal":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """All that is written inside is on disk when the block ends, or none of it is."""
        if self._inside:
            raise JournalError("a transaction is open already; transactions do not nest")
        self._inside = True
        try:
            self.connection.execute("BEGIN IMMEDIATE")
            yield
            self.connection.execute("COMMIT")
        except BaseException as problem:
            with contextlib.suppress(sqlite3.Error):
                self.connection.execute("ROLLBACK")
            if isinstance(problem, sqlite3.Error):
                raise _unusable(problem, self.folder) from problem
            raise
        finally:
            self._inside = False
        self._keep_head()

    def approve(self, study_hash: str, study_text: str) -> None:
        """Remember that the owner agreed to a study; doing so again changes nothing."""
        with self._writing():
            self._execute(
                "INSERT OR IGNORE INTO approvals VALUES (?, ?, ?)",
                (study_hash, study_text, datetime.now(UTC).isoformat(timespec="seconds")),
            )

    def approved(self, study_hash: str) -> bool:
        """Return whether the owner agreed to a study."""
        return bool(self._execute("SELECT 1 FROM approvals WHERE study_hash = ?", (study_hash,)))

    def approved_texts(self) -> dict[str, str]:
        """Return all studies that the owner agreed to by their hashes, the newest first."""
        query = "SELECT study_hash, study_text FROM approvals ORDER BY time DESC, rowid DESC"
        return dict(self._execute(query))

    def begin(
        self, run_key: RunKey, *, details: Mapping[str, str], state: bytes, stage: str = "begun"
    ) -> None:
        """Store a new run; a run begins once."""
        with self._writing():
            if self._execute(f"SELECT {THIS_RUN}", run_key.values) != [(None,)]:
                raise JournalError(f"{run_key} has begun already: go on from its saved state")
            self._execute(
                "INSERT INTO runs (study_hash, run, participant, details, stage, state, "
                "state_sha256) VALUES (?, ?, ?, ?, ?, ?, ?)",
                (*run_key.values, json.dumps(dict(details)), stage, state, _digest(state)),
            )

    def side_by_side(self, run_key: RunKey) -> tuple[Mapping[str, str], ...]:
        """Return what other runs of the participant were begun with that go on at this moment."""
        rows = self._execute(
            "SELECT study_hash, run, details FROM runs WHERE participant = ? AND outcome IS NULL",
            (run_key.participant,),
        )
        found = []
        for study_hash, run, details in rows:
            other = replace(run_key, study_hash=study_hash, run=run)
            if other != run_key and self._is_held(other):
                found.append(json.loads(details) | {"study_hash": study_hash, "run": run})
        return tuple(found)

    def _is_held(self, run_key: RunKey) -> bool:
        lock = home.take_run_lock(self.folder, run_key.lock_name, seconds=0.0)
        if lock is not None:
            home.release_lock(lock)
        return lock is None

    def load(self, run_key: RunKey) -> SavedRun | None:
        """Return the run as it was last saved, or None if it never began."""
        rows = self._execute(
            "SELECT details, stage, state, outcome, reason, state_sha256 FROM runs "
            f"WHERE id = {THIS_RUN}",
            run_key.values,
        )
        if not rows:
            return None
        details, stage, state, outcome, reason, digest = rows[0]
        if state is not None and _digest(state) != digest:
            raise JournalError(f"the saved state of {run_key} is damaged; the run is lost")
        return SavedRun(
            details=json.loads(details), stage=stage, state=state, outcome=outcome, reason=reason
        )

    def save(self, run_key: RunKey, *, stage: str, state: bytes) -> None:
        """Replace the state of a run that goes on."""
        with self._writing():
            self._execute(
                "UPDATE runs SET stage = ?, state = ?, state_sha256 = ? WHERE id = ?",
                (stage, state, _digest(state), self._running(run_key)),
            )

    def change_details(self, run_key: RunKey, *, details: Mapping[str, str]) -> None:
        """Replace what a run was begun with, of a run that goes on."""
        with self._writing():
            self._execute(
                "UPDATE runs SET details = ? WHERE id = ?",
                (json.dumps(dict(details)), self._running(run_key)),
            )

    def finish(self, run_key: RunKey, *, outcome: str, reason: str) -> None:
        """End a run for good and erase its state; messages not yet sent can still be sent."""
        with self._writing():
            self._execute(
                "UPDATE runs SET outcome = ?, reason = ?, state = NULL, state_sha256 = NULL "
                "WHERE id = ?",
                (outcome, reason, self._running(run_key)),
            )

    def accept(self, run_key: RunKey, slot_path: str, *, sha256: str) -> bool:
        """Remember which message was taken from a slot; False if this very one was before.

        Raises:
            ProtocolError: Another message was taken from this slot.
        """
        with self._writing():
            run_id = self._running(run_key)
            rows = self._execute(
                "SELECT sha256 FROM accepted WHERE run_id = ? AND slot = ?", (run_id, slot_path)
            )
            if not rows:
                self._execute("INSERT INTO accepted VALUES (?, ?, ?)", (run_id, slot_path, sha256))
            elif rows[0][0] != sha256:
                raise ProtocolError(
                    f"slot {slot_path} holds another message than the one taken; its sender may "
                    "have gone on from a home that was put back from a backup"
                )
            return not rows

    def accepted(self, run_key: RunKey) -> tuple[tuple[str, str], ...]:
        """Return slot and SHA-256 of all messages that were taken."""
        rows = self._execute(
            f"SELECT slot, sha256 FROM accepted WHERE run_id = {THIS_RUN} ORDER BY slot",
            run_key.values,
        )
        return tuple((slot, sha256) for slot, sha256 in rows)

    def queue(self, run_key: RunKey, slot_path: str, *, data: bytes) -> Outgoing:
        """Store a sealed message for sending; a slot gets one message, ever."""
        with self._writing():
            run_id = self._running(run_key)
            if any(item.slot_path == slot_path for item in self.outgoing(run_key)):
                raise JournalError(f"slot {slot_path} has a stored message: resend that one")
            item = Outgoing(slot_path=slot_path, sha256=_digest(data), size=len(data), sent=False)
            path = self.folder / home.OUTBOX / item.sha256
            try:
                home.write_file(path, data)
            except OSError as problem:
                raise _unwritable(problem, path) from problem
            self._execute(
                "INSERT INTO outbox (run_id, slot, sha256, size) VALUES (?, ?, ?, ?)",
                (run_id, slot_path, item.sha256, item.size),
            )
        return item

    def outgoing(self, run_key: RunKey) -> tuple[Outgoing, ...]:
        """Return all messages of a run that were stored for sending, in order."""
        rows = self._execute(
            "SELECT slot, sha256, size, sent FROM outbox "
            f"WHERE run_id = {THIS_RUN} ORDER BY number",
            run_key.values,
        )
        return tuple(
            Outgoing(slot_path=slot, sha256=sha256, size=size, sent=bool(sent))
            for slot, sha256, size, sent in rows
        )

    def pending(self, run_key: RunKey) -> tuple[Outgoing, ...]:
        """Return the messages of a run that were not marked as sent, in order."""
        return tuple(item for item in self.outgoing(run_key) if not item.sent)

    def read(self, item: Outgoing) -> bytes:
        """Return the bytes of a stored message, after checking that they are the same."""
        path = self.folder / home.OUTBOX / item.sha256
        try:
            data = path.read_bytes()
        except OSError as problem:
            raise JournalError(f"{path} cannot be read: {problem.strerror}") from problem
        if _digest(data) != item.sha256:
            raise JournalError(f"{path} is damaged; it must not be sent or made anew")
        return data

    def mark_sent(self, run_key: RunKey, slot_path: str) -> None:
        """Remember that a mailbox has taken a message."""
        if all(item.slot_path != slot_path for item in self.outgoing(run_key)):
            raise JournalError(f"slot {slot_path} has no stored message")
        with self._writing():
            self._execute(
                f"UPDATE outbox SET sent = 1 WHERE slot = ? AND run_id = {THIS_RUN}",
                (slot_path, *run_key.values),
            )

    def forget_files(self, run_key: RunKey) -> None:
        """Drop the stored bytes of a finished run that has sent everything; hashes remain.

        Inside a transaction the files stay until the journal is opened again.
        """
        saved = self.load(run_key)
        if saved is None or saved.outcome is None or self.pending(run_key):
            raise JournalError(f"{run_key} is not finished, or has messages to send")
        with self._writing():
            self._execute(f"UPDATE outbox SET kept = 0 WHERE run_id = {THIS_RUN}", run_key.values)
        if not self._inside:
            with contextlib.suppress(HomeUnavailable), home.brief_lock(self.folder):
                self._sweep()

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        """Join the open transaction, or make one."""
        if not self._inside:
            with self.transaction():
                yield
        elif self.connection.in_transaction:
            yield
        else:
            raise JournalError("an earlier error has ended this transaction")

    def _execute(self, statement: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        try:
            return self.connection.execute(statement, values).fetchall()
        except sqlite3.Error as problem:
            raise _unusable(problem, self.folder) from problem

    def _running(self, run_key: RunKey) -> int:
        rows = self._execute(f"SELECT id, outcome FROM runs WHERE id = {THIS_RUN}", run_key.values)
        if not rows:
            raise JournalError(f"{run_key} has not begun")
        if rows[0][1] is not None:
            raise JournalError(f"{run_key} is finished and cannot be changed")
        return int(rows[0][0])

    def _sweep(self) -> None:
        """Remove what nothing needs; under the home's lock, see `home.sweep`."""
        self._execute("BEGIN IMMEDIATE")
        try:
            rows = self._execute("SELECT sha256 FROM outbox WHERE kept = 1")
            home.sweep(self.folder, keep={sha256 for (sha256,) in rows})
            run_keys.erase_ended(self.folder, self.connection)
        finally:
            self._execute("ROLLBACK")

    def _keep_head(self) -> None:
        """Let the file beside the database follow the ledger; it may lag, never lead."""
        try:
            with home.brief_lock(self.folder):
                self._write_head()
        except (HomeUnavailable, OSError) as problem:
            # What was committed stands; the file catches up at the next commit.
            _log.warning("%s was not written: %s", self.folder / ledger_tables.HEAD_FILE, problem)

    def _write_head(self) -> None:
        path = self.folder / ledger_tables.HEAD_FILE
        try:
            text = ledger_tables.next_head(self.connection, seen=ledger_tables.read_head(path))
            if text is not None:
                home.write_file(path, text.encode())
        except BudgetError as problem:
            # Left as it is for `Ledger.verify`, which every charge begins with.
            _log.warning("%s", problem)
        except OSError as problem:
            # What was committed stands; the file catches up at the next commit.
            _log.warning("%s cannot be written: %s", path, problem.strerror)


def _unusable(problem: sqlite3.Error, folder: Path, words: str = "") -> JournalError:
    path = folder / home.DATABASE
    if (reason := passing(problem)) is not None:
        return HomeUnavailable(f"{path} {reason}")
    return JournalError(f"{path} {words}{problem}" if words else f"{path}: {problem}")


def _unwritable(problem: OSError, path: Path) -> JournalError:
    kind = HomeUnavailable if problem.errno in (errno.ENOSPC, errno.EDQUOT) else JournalError
    return kind(f"{path} cannot be written: {problem.strerror}")


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
