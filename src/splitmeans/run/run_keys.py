"""A participant's own key of each run, on disk from before anybody hears of it until the run ends.

Everything in a run is sealed to keys that are made for it (`run.greeting`). The private half is a
file in `run-keys/`, encrypted under a secret that only the participant's identity derives, so that
the identity's passphrase protects it too. It is written inside the transaction that begins the run;
a file whose run does not go on is erased whenever the home is opened. When it is gone, neither the
identity nor the home opens what was sealed to it.

Erasing overwrites the file in place, then removes it. On a file system that writes elsewhere than
it read (copy on write, snapshots, a journal of data) or on flash memory the old bytes may stay on
the medium: docs/guides/keys.md says what to do about it.
"""

import hashlib
import os
import secrets
import sqlite3
from collections.abc import Collection
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from splitmeans.errors import JournalError
from splitmeans.run.home import RUN_KEYS, sync_folder, write_file
from splitmeans.run.records import RunKey
from splitmeans.wire.identity import Identity
from splitmeans.wire.sealing import OpeningKey

_PURPOSE = b"splitmeans run key file 1\0"
_NONCE_BYTES = 12


def keep_key(home: Path, run: RunKey, opening: OpeningKey, *, identity: Identity) -> None:
    """Store the participant's key of a run; inside the transaction that begins it."""
    nonce = secrets.token_bytes(_NONCE_BYTES)
    sealed = _cipher(identity, run).encrypt(nonce, opening.seed, _bound_to(run))
    write_file(_place(home, run), nonce + sealed)


def load_key(home: Path, run: RunKey, *, identity: Identity) -> OpeningKey:
    """Return the participant's key of a run that goes on.

    Raises:
        JournalError: It is gone or damaged, so that the run cannot go on.
    """
    path = _place(home, run)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise JournalError(
            f"{run}: its key is not at {path}, so nothing that the others sealed to it can be "
            "opened. The run was begun by a version without keys of runs, or the file was removed; "
            "begin another run with a new name"
        ) from None
    except OSError as problem:
        raise JournalError(f"{path} cannot be read: {problem.strerror}") from problem
    try:
        nonce, sealed = data[:_NONCE_BYTES], data[_NONCE_BYTES:]
        return OpeningKey(_cipher(identity, run).decrypt(nonce, sealed, _bound_to(run)))
    except (InvalidTag, ValueError):
        raise JournalError(
            f"{path} is damaged, or of another identity or run; begin another run with a new name"
        ) from None


def erase_key(home: Path, run: RunKey) -> None:
    """Make a run's key unreadable and remove it; nothing happens if there is none."""
    _erase(_place(home, run))


def erase_ended(home: Path, connection: sqlite3.Connection) -> None:
    """Erase the keys of all runs that do not go on.

    Inside a transaction, so that no other process has one on its way to the run that it is of.
    """
    rows = connection.execute(
        "SELECT study_hash, run, participant FROM runs WHERE outcome IS NULL"
    ).fetchall()
    going_on: Collection[str] = {
        RunKey(study_hash=study, run=run, participant=who).lock_name for study, run, who in rows
    }
    for path in (home / RUN_KEYS).iterdir():
        if path.name not in going_on:
            _erase(path)


def _place(home: Path, run: RunKey) -> Path:
    return home / RUN_KEYS / run.lock_name


def _erase(path: Path) -> None:
    try:
        handle = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    with open(handle, "wb", buffering=0) as file:
        file.write(secrets.token_bytes(os.fstat(file.fileno()).st_size))
        os.fsync(file.fileno())
    path.unlink(missing_ok=True)
    sync_folder(path.parent)


def _cipher(identity: Identity, run: RunKey) -> ChaCha20Poly1305:
    return ChaCha20Poly1305(identity.derive(_PURPOSE + hashlib.sha256(_bound_to(run)).digest()))


def _bound_to(run: RunKey) -> bytes:
    return "\n".join((*run.values, "")).encode()
