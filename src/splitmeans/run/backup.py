"""A backup of a home that can be put back without harm, and putting it back.

What a backup has: the ledger with its head, approvals, finished runs and their results, records of
people with their secret, and (unless they are left out) keys. What it never has: the state of a run
that goes on, its secrets, the own key of any run, and messages that wait to be sent. A home that
went on from those could make a second, different release (rule R11), so in the backup such a run is
ended.

A ledger never goes back in time: a backup is not put over a ledger that is newer, and a restored
home charges nothing until somebody has added what was released since and said so (O10 of the
obligations in docs/concepts/guarantee.md).
"""

import hashlib
import io
import json
import sqlite3
import zipfile
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from splitmeans._version import __version__
from splitmeans.errors import JournalError, ParameterError
from splitmeans.privacy import ledger_tables
from splitmeans.privacy.ledger import Ledger
from splitmeans.privacy.ledger_rules import RESTORED
from splitmeans.run.drive import FAILED
from splitmeans.run.home import DATABASE, brief_lock, connect, make_folders, write_file
from splitmeans.run.journal import Journal
from splitmeans.run.own_keys import KEYS
from splitmeans.run.people_records import SECRET_FILE
from splitmeans.wire.private_file import write_new

_FORMAT = "splitmeans home backup 1"
_MANIFEST = "manifest.json"
_MAX_BYTES = 2**30
_LEDGER_FILES = (DATABASE, ledger_tables.HEAD_FILE)
_ENDED = "the home was put back from a backup, and a run must not go on from one"
_CLEAN = (
    f"UPDATE runs SET outcome = '{FAILED}', reason = '{_ENDED}', state = NULL, "
    "state_sha256 = NULL WHERE outcome IS NULL",
    "UPDATE outbox SET kept = 0, sent = 1",
    "DELETE FROM greetings",
)


def backup(home: Path, file: Path, *, with_keys: bool = True) -> dict[str, object]:
    """Write a backup of a home; runs may go on meanwhile.

    The file must not exist; only its owner can read it. Returns the manifest: what is in it, and
    the last entry of the ledger.
    """
    with Journal.open(home) as journal:
        Ledger(journal.connection).verify()
        database, head = _clean_copy(journal.connection)
    contents = dict(zip(_LEDGER_FILES, (database, head), strict=True))
    for path in _other_files(home, with_keys=with_keys):
        contents[str(path.relative_to(home))] = path.read_bytes()
    number, digest = head.decode().split()
    manifest: dict[str, object] = {
        "format": _FORMAT,
        "splitmeans": __version__,
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "ledger_entries": int(number),
        "ledger_hash": digest,
        "files": {name: hashlib.sha256(data).hexdigest() for name, data in contents.items()},
    }
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(_MANIFEST, json.dumps(manifest, indent=1))
        for name, data in contents.items():
            archive.writestr(name, data)
    write_new(file, packed.getvalue(), what="backup")
    return manifest


def restore(file: Path, home: Path) -> dict[str, object]:
    """Put a backup back into a home that is empty, or older than the backup.

    Returns the backup's manifest.

    Raises:
        ParameterError: The file is no backup, or is damaged.
        JournalError: The home has a ledger that is newer, or another one.
    """
    manifest, contents = _read(file)
    make_folders(home)
    with brief_lock(home):
        _refuse_newer(home, contents[ledger_tables.HEAD_FILE].decode(), contents[DATABASE])
        contents |= _marked(contents, manifest)
        (home / KEYS).mkdir(mode=0o700, exist_ok=True)
        # The head last: a ledger without it refuses to charge, so a half-restored home does.
        for name in sorted(contents, key=lambda name: name == ledger_tables.HEAD_FILE):
            if name.startswith((f"{KEYS}/", "key.json")) and (home / name).exists():
                continue  # keys are never replaced
            write_file(home / name, contents[name])
    Journal.open(home).close()
    return manifest


def _marked(contents: dict[str, bytes], manifest: dict[str, object]) -> dict[str, bytes]:
    """Return database and head with the entry that the home was restored, before it is there."""
    what = f"backup of {manifest['time']}, {manifest['ledger_entries']} entries"
    with closing(_in_memory(contents[DATABASE])) as connection:
        connection.execute("BEGIN IMMEDIATE")
        Ledger(connection).act(RESTORED, what=what)
        connection.execute("COMMIT")
        return dict(zip(_LEDGER_FILES, _written(connection), strict=True))


def _clean_copy(connection: sqlite3.Connection) -> tuple[bytes, bytes]:
    """Return the database without what must not be restored, and the ledger's head in it."""
    with closing(_in_memory()) as copy:
        connection.backup(copy)
        copy.execute("PRAGMA secure_delete = 1")
        for statement in _CLEAN:
            copy.execute(statement)
        copy.execute("VACUUM")  # nothing of what was erased stays in free pages
        return _written(copy)


def _in_memory(database: bytes | None = None) -> sqlite3.Connection:
    """Open a database in memory: a killed process leaves no copy of a ledger in any folder."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    if database is not None:
        try:
            with closing(sqlite3.connect(":memory:")) as given:
                given.deserialize(database)
                given.backup(connection)  # has no file name, which a deserialised one has
        except sqlite3.DatabaseError as problem:
            raise ParameterError(f"the backup's {DATABASE} cannot be read: {problem}") from None
    connection.execute("PRAGMA temp_store = MEMORY")
    return connection


def _written(connection: sqlite3.Connection) -> tuple[bytes, bytes]:
    """Return a database as the bytes of its file, and the ledger's head in it."""
    number, digest = connection.execute("SELECT number, hash FROM ledger_head").fetchone()
    return connection.serialize(), f"{number} {digest}\n".encode()


def _other_files(home: Path, *, with_keys: bool) -> Iterator[Path]:
    names = [SECRET_FILE, *(["key.json"] if with_keys else [])]
    yield from (home / name for name in names if (home / name).is_file())
    suffixes = (".json", ".renewal", ".revoked") if with_keys else (".renewal", ".revoked")
    if (home / KEYS).is_dir():
        yield from sorted(path for path in (home / KEYS).iterdir() if path.suffix in suffixes)


def _read(file: Path) -> tuple[dict[str, object], dict[str, bytes]]:
    try:
        with zipfile.ZipFile(file) as archive:
            if sum(item.file_size for item in archive.infolist()) > _MAX_BYTES:
                raise ParameterError(f"{file} is no backup of a home: it is too large")
            contents = {item.filename: archive.read(item) for item in archive.infolist()}
        manifest = json.loads(contents.pop(_MANIFEST))
        hashes = {name: hashlib.sha256(data).hexdigest() for name, data in contents.items()}
        known = {DATABASE, ledger_tables.HEAD_FILE, SECRET_FILE, "key.json"}
        odd = [
            name
            for name in contents
            if name not in known and (Path(name).parent != Path(KEYS) or ".." in name)
        ]
        sound = manifest["format"] == _FORMAT and manifest["files"] == hashes and not odd
    except (OSError, KeyError, ValueError, TypeError, zipfile.BadZipFile) as problem:
        raise ParameterError(f"{file} is no backup of a home that can be read: {problem}") from None
    if not sound:
        raise ParameterError(f"{file} is damaged: its files are not those of its manifest")
    return manifest, contents


def _refuse_newer(home: Path, head: str, database: bytes) -> None:
    """Refuse to put a backup over a ledger that has entries which the backup does not have."""
    path = home / ledger_tables.HEAD_FILE
    if not path.exists():
        if (home / DATABASE).exists() and (home / DATABASE).stat().st_size:
            raise JournalError(
                f"{home} has {DATABASE} and no {path.name}; if a restore was interrupted, remove "
                f"{DATABASE} and repeat it, else move it away first"
            )
        return
    number, digest = ledger_tables.read_head(path)
    if (home / DATABASE).exists() and (home / DATABASE).stat().st_size:
        with closing(connect(home)) as connection:
            number, digest = Ledger(connection).verify().n_entries, Ledger(connection).verify().head
    with closing(_in_memory(database)) as connection:
        rows = connection.execute("SELECT hash FROM ledger WHERE number = ?", (number,))
        known = [one for (one,) in rows] if number else [ledger_tables.GENESIS]
    if known != [digest]:
        raise JournalError(
            f"{home} has a ledger of {number} entries, and the backup ends at entry "
            f"{head.split()[0]} or is of another home: a ledger never goes back in time. Take a "
            "newer backup. If the home is lost for good, restore into an empty folder, and add "
            "what was released since the backup with `splitmeans ledger recover`"
        )
