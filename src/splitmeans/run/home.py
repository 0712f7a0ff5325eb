"""A participant's home folder on disk: private, locked, with files that survive a power cut.

splitmeans.sqlite   the journal and the ledger       splitmeans.lock   held for moments, see below
outbox/             sealed messages, by SHA-256      ledger.head       last entry of the ledger
locks/              a file for each run, held by the process that drives it
run-keys/           own keys of runs that go on, see `run.run_keys`
spool/              rows of a large table while a run goes on, see `engine.spool_folder`

Several processes may use a home at once, each for a run of its own. The database keeps their
transactions apart. `splitmeans.lock` is held while the home is opened, swept, or its head file is
written; whoever waits for the database inside it never holds the database while waiting for it.
"""

import contextlib
import fcntl
import os
import re
import secrets
import sqlite3
import stat
import time
from collections.abc import Collection, Iterator
from pathlib import Path

from splitmeans.errors import HomeUnavailable, JournalError
from splitmeans.privacy import ledger_tables
from splitmeans.run import records

DATABASE = "splitmeans.sqlite"
LOCK = "splitmeans.lock"
LOCKS = "locks"
OUTBOX = "outbox"
RUN_KEYS = "run-keys"
SPOOL = "spool"

# A step writes a release of up to a gigabyte to disk; others wait that long for the database.
BUSY_SECONDS = 60.0

_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_STORED = re.compile(r"[0-9a-f]{64}")
_PART = re.compile(r"\..*\.part")

_locks: set[int] = set()

_VERSION = 5
_APPLICATION = 0x73706D31  # "spm1": tells another program's database apart
# A rollback journal with EXTRA also syncs the folder when the journal is gone, so that a commit
# that returned cannot come undone; a write-ahead log would keep erased secrets until it is reused.
_SETTINGS = {"journal_mode": "delete", "synchronous": 3, "secure_delete": 1, "foreign_keys": 1}
# See `run.people_records`.
_PEOPLE_TABLE = """CREATE TABLE people (
    study_hash TEXT NOT NULL, run TEXT NOT NULL, participant TEXT NOT NULL, source TEXT NOT NULL,
    secret TEXT NOT NULL, record BLOB NOT NULL, sha256 TEXT NOT NULL,
    PRIMARY KEY (study_hash, run, participant))"""
# Everyone's public key of each run, see `run.greeting`.
_GREETINGS_TABLE = """CREATE TABLE greetings (
    run_id INTEGER NOT NULL, participant TEXT NOT NULL, sealing BLOB NOT NULL,
    PRIMARY KEY (run_id, participant))"""
_SCHEMA = (
    """CREATE TABLE approvals (
        study_hash TEXT PRIMARY KEY, study_text TEXT NOT NULL, time TEXT NOT NULL)""",
    """CREATE TABLE runs (
        id INTEGER PRIMARY KEY, study_hash TEXT NOT NULL, run TEXT NOT NULL,
        participant TEXT NOT NULL, details TEXT NOT NULL, stage TEXT NOT NULL,
        state BLOB, state_sha256 TEXT, outcome TEXT, reason TEXT,
        UNIQUE (study_hash, run, participant),
        CHECK ((outcome IS NULL) = (reason IS NULL)),
        CHECK ((outcome IS NULL) = (state IS NOT NULL)))""",
    """CREATE TABLE accepted (
        run_id INTEGER NOT NULL REFERENCES runs (id), slot TEXT NOT NULL, sha256 TEXT NOT NULL,
        PRIMARY KEY (run_id, slot))""",
    """CREATE TABLE outbox (
        number INTEGER PRIMARY KEY, run_id INTEGER NOT NULL REFERENCES runs (id),
        slot TEXT NOT NULL, sha256 TEXT NOT NULL, size INTEGER NOT NULL,
        sent INTEGER NOT NULL DEFAULT 0, kept INTEGER NOT NULL DEFAULT 1, UNIQUE (run_id, slot))""",
    records.RESULTS_TABLE,
    _PEOPLE_TABLE,
    *records.MOMENTS,
    _GREETINGS_TABLE,
    f"PRAGMA application_id = {_APPLICATION}",
    f"PRAGMA user_version = {_VERSION}",
)


def make_folders(folder: Path) -> None:
    """Create the home folder and those in it, or check that nobody else may look into them."""
    for place in (folder, *(folder / name for name in (OUTBOX, LOCKS, RUN_KEYS, SPOOL))):
        is_new = not place.exists()
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_private(place, folder=True)
        if is_new:
            sync_folder(place.parent)


@contextlib.contextmanager
def brief_lock(folder: Path) -> Iterator[None]:
    """Hold the home for a moment; wait for another process that does.

    Raises:
        HomeUnavailable: Another process held it all the time.
    """
    lock = _open_lock(folder / LOCK)
    try:
        end = time.monotonic() + BUSY_SECONDS
        while not _is_taken(lock):
            if time.monotonic() > end:
                raise HomeUnavailable(
                    f"{folder} is in use by another splitmeans process: wait until it ends, or "
                    "stop it"
                )
            time.sleep(0.01)
        yield
    finally:
        release_lock(lock)


def take_run_lock(folder: Path, name: str, *, seconds: float = 0.5) -> int | None:
    """Lock a run for this process until `release_lock`, or until the process dies.

    Tries for some seconds, because others hold it for an instant to see whether a run goes on.
    Returns None if another process has it.
    """
    lock = _open_lock(folder / LOCKS / name)
    end = time.monotonic() + seconds
    while not _is_taken(lock):
        if time.monotonic() >= end:
            release_lock(lock)
            return None
        time.sleep(0.01)
    return lock


def _open_lock(path: Path) -> int:
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    _locks.add(lock)
    return lock


def _is_taken(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def release_lock(lock: int) -> None:
    """Let another process have a lock."""
    if lock in _locks:
        _locks.remove(lock)
        os.close(lock)


def _drop_inherited_locks() -> None:
    # Otherwise a worker process that outlives its killed parent would keep a run locked.
    while _locks:
        os.close(_locks.pop())


os.register_at_fork(after_in_child=_drop_inherited_locks)


def connect(folder: Path) -> sqlite3.Connection:
    """Open the database with settings that keep commits and erase what is deleted."""
    path = folder / DATABASE
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, _NEW_FILE, 0o600))
    _check_private(path, folder=False)
    connection = sqlite3.connect(path, isolation_level=None, timeout=BUSY_SECONDS)
    try:
        for name, value in _SETTINGS.items():
            connection.execute(f"PRAGMA {name} = {value}")
            if connection.execute(f"PRAGMA {name}").fetchone() != (value,):
                raise JournalError(f"{path}: this SQLite cannot set {name} to {value}")
        connection.execute("PRAGMA fullfsync = 1")  # a plain fsync does not reach the disk on macOS
        connection.execute("PRAGMA temp_store = 2")  # secrets must not spill into temporary files
        _check_version(connection, folder)
    except BaseException:
        connection.close()
        raise
    return connection


def _check_version(connection: sqlite3.Connection, folder: Path) -> None:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (n_tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    path = folder / DATABASE
    if (application, version, n_tables) == (0, 0, 0):
        _create(connection, folder)
    elif application != _APPLICATION:
        raise JournalError(f"{path} is another program's database; choose another folder")
    elif version != _VERSION:
        raise JournalError(
            f"{path} has format {version}, this version of splitmeans knows {_VERSION}: install "
            "the version that wrote it"
        )


def _create(connection: sqlite3.Connection, folder: Path) -> None:
    head = folder / ledger_tables.HEAD_FILE
    if not head.exists():
        write_file(head, f"0 {ledger_tables.GENESIS}\n".encode())
    elif ledger_tables.read_head(head)[0] > 0:
        raise JournalError(
            f"{folder / DATABASE} is missing or empty, but {head} says that data was charged: "
            "restore the database"
        )
    connection.execute("BEGIN IMMEDIATE")
    for statement in _SCHEMA:
        connection.execute(statement)
    ledger_tables.create_tables(connection)
    connection.execute("COMMIT")


def write_file(path: Path, data: bytes) -> None:
    """Write a file so that it is whole, on disk, and found under its name, or not there at all."""
    part = path.with_name(f".{path.name[:16]}.{secrets.token_hex(8)}.part")
    try:
        with open(os.open(part, _NEW_FILE, 0o600), "wb") as file:
            os.fchmod(file.fileno(), 0o600)  # whatever the umask is
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Put the names in a folder on disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sweep(folder: Path, *, keep: Collection[str]) -> None:
    """Remove what a crash or a rollback left: half-written files, messages that no row names.

    Only inside a transaction and under `brief_lock`: files are written inside a transaction, and
    the head file under the lock, so that nothing of another process is on its way meanwhile.
    """
    for path in (folder / OUTBOX).iterdir():
        if _PART.fullmatch(path.name) or (_STORED.fullmatch(path.name) and path.name not in keep):
            path.unlink()
    for path in folder.glob(".*.part"):
        path.unlink()
    sync_folder(folder / OUTBOX)


def _check_private(path: Path, *, folder: bool) -> None:
    status = path.lstat()
    kind, mode = ("folder", "700") if folder else ("file", "600")
    if not (stat.S_ISDIR if folder else stat.S_ISREG)(status.st_mode):
        raise JournalError(f"{path} must be a plain {kind}")
    if status.st_uid != os.geteuid():
        raise JournalError(f"{path} belongs to another user; choose a {kind} of your own")
    if status.st_mode & 0o077:
        raise JournalError(f"{path} is open to other users: chmod {mode} it, if they saw no secret")
