"""The relay's messages on disk: each written once, whole or not at all.

`<folder>/messages/` holds what readers may see, named by slot; `<folder>/incoming/` holds uploads
until they are complete and on disk, and is emptied at the start. What a killed relay leaves behind
is therefore either a whole message or a file that no reader can name.
"""

import contextlib
import hashlib
import os
import secrets
import shutil
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from splitmeans.errors import MailboxUnavailable, ParameterError, SplitmeansError
from splitmeans.run.local_folder import make_folders, open_plain_file, sync_folder
from splitmeans.run.mailbox import MessagePath
from splitmeans.run.relay_limits import RelayLimits

_BLOCK = 1 << 20


class MessageTooLarge(SplitmeansError):
    """An upload passed the limit for one message."""


class StudyFull(SplitmeansError):
    """An upload would pass what a study may store."""


class SlotTaken(SplitmeansError):
    """The slot already holds other bytes."""


@dataclass(kw_only=True)
class _Usage:
    n_bytes: int = 0
    n_messages: int = 0


class RelayStore:
    """Messages in a folder that one relay has for itself. Safe to use from several threads.

    Args:
        folder: Where to keep messages; made if absent (its parent must exist).
        limits: What may be stored.
    """

    def __init__(self, folder: Path, limits: RelayLimits) -> None:
        self.limits = limits
        self._folder = folder.absolute()
        self._messages = self._folder / "messages"
        self._incoming = self._folder / "incoming"
        try:
            for place in (self._folder, self._messages, self._incoming):
                place.mkdir(mode=0o700, exist_ok=True)
        except OSError as problem:
            raise ParameterError(
                f"{folder}: the relay cannot keep messages there ({problem.strerror})"
            ) from problem
        self._guard = _lock_folder(self._folder)
        for scratch in self._incoming.iterdir():
            scratch.unlink()
        self._lock = threading.Lock()
        self._usage: dict[str, _Usage] = {}
        for study in self._messages.iterdir():
            usage = self._usage.setdefault(study.name, _Usage())
            for file in study.glob("*/*"):
                usage.n_bytes += file.stat().st_size
                usage.n_messages += 1

    @property
    def folder(self) -> Path:
        """The folder."""
        return self._folder

    def open(self, path: MessagePath) -> BinaryIO | None:
        """Open a message for reading; None if there is none."""
        try:
            return os.fdopen(open_plain_file(self._messages.joinpath(*path.parts)), "rb")
        except FileNotFoundError:
            return None

    def begin(self, path: MessagePath) -> "Upload":
        """Begin an upload; the caller must end it by `commit` or `discard`."""
        target = self._messages.joinpath(*path.parts)
        upload = Upload(self, study=path.study, target=target, incoming=self._incoming)
        try:
            upload.start()
        except BaseException:
            upload.discard()
            raise
        return upload

    def close(self) -> None:
        """Let another relay have the folder."""
        if self._guard is not None:
            self._guard.close()

    def free_bytes(self, study: str) -> int:
        """Return how much a study may still store; nothing if it has all its messages."""
        with self._lock:
            usage = self._usage.get(study, _Usage())
            left = self.limits.study_bytes - usage.n_bytes
            is_full = usage.n_messages >= self.limits.study_messages
        on_disk = shutil.disk_usage(self._folder).free
        return 0 if is_full else max(0, min(left, on_disk))

    def charge(self, study: str, *, n_bytes: int, n_messages: int) -> None:
        """Count bytes and messages of a study; negative numbers give back."""
        with self._lock:
            usage = self._usage.setdefault(study, _Usage())
            if n_messages > 0 and usage.n_messages + n_messages > self.limits.study_messages:
                raise StudyFull(f"a study may have {self.limits.study_messages} messages")
            if n_bytes > 0 and usage.n_bytes + n_bytes > self.limits.study_bytes:
                raise StudyFull(f"a study may store {self.limits.study_bytes} bytes")
            usage.n_bytes += n_bytes
            usage.n_messages += n_messages

    def publish(self, scratch: Path, target: Path, *, body_hash: str) -> bool:
        """Move a complete file to its slot; False if the slot holds the same bytes already."""
        make_folders(target.parent, below=self._messages, mode=0o700)
        # No other process writes here, so looking and renaming under a lock cannot be overtaken.
        with self._lock:
            is_new = not target.exists()
            if is_new:
                os.rename(scratch, target)
        if is_new:
            sync_folder(target.parent)
            return True
        if _hash_of(target) != body_hash:
            raise SlotTaken("the slot holds other bytes; a message is written once")
        return False


class Upload:
    """One message on its way in: `write` pieces, then `commit` or `discard`.

    A request that ends early discards its upload while a thread may still be writing; the lock
    keeps the file open until that write is done.
    """

    def __init__(self, store: RelayStore, *, study: str, target: Path, incoming: Path) -> None:
        self._store = store
        self._study = study
        self._target = target
        self._scratch = incoming / secrets.token_hex(16)
        self._file: BinaryIO | None = None
        self._hash = hashlib.sha256()
        self._size = 0
        self._charged = _Usage()
        self._lock = threading.Lock()
        # The same message again takes no room; it must pass even when the study is full.
        self._is_new = not target.exists()

    def start(self) -> None:
        """Make the file that takes the bytes."""
        self._charge(n_messages=1)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        self._file = os.fdopen(os.open(self._scratch, flags, 0o600), "wb")

    def write(self, piece: bytes | bytearray) -> None:
        """Add bytes; raises as soon as a limit is passed."""
        with self._lock:
            file = self._open_file()
            self._size += len(piece)
            if self._size > self._store.limits.message_bytes:
                limit = self._store.limits.message_bytes
                raise MessageTooLarge(f"a message may have {limit} bytes")
            self._charge(n_bytes=len(piece))
            self._hash.update(piece)
            file.write(piece)

    def commit(self, *, body_hash: str) -> bool | None:
        """Put the message in its slot.

        Returns:
            True if it is there now, False if the same bytes were there before, None if the bytes
            are not those whose hash is given.
        """
        with self._lock:
            file = self._open_file()
            if self._hash.hexdigest() != body_hash:
                return None
            file.flush()
            os.fsync(file.fileno())
            published = self._store.publish(self._scratch, self._target, body_hash=body_hash)
            if published:
                self._charged = _Usage()  # the charge stays
            return published

    def discard(self) -> None:
        """Remove what is left of the upload and its charge; after `commit`, only the remains."""
        with self._lock:
            if self._file is not None:
                with contextlib.suppress(OSError):  # a full disk refuses what was not yet written
                    self._file.close()
                self._file = None
            with contextlib.suppress(OSError):
                self._scratch.unlink(missing_ok=True)
            charged, self._charged = self._charged, _Usage()
            self._store.charge(
                self._study, n_bytes=-charged.n_bytes, n_messages=-charged.n_messages
            )

    def _open_file(self) -> BinaryIO:
        if self._file is None:
            raise ValueError("the upload has ended")
        return self._file

    def _charge(self, *, n_bytes: int = 0, n_messages: int = 0) -> None:
        if self._is_new:
            self._store.charge(self._study, n_bytes=n_bytes, n_messages=n_messages)
            self._charged.n_bytes += n_bytes
            self._charged.n_messages += n_messages


def _hash_of(path: Path) -> str:
    digest = hashlib.sha256()
    with os.fdopen(open_plain_file(path), "rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _lock_folder(folder: Path) -> BinaryIO | None:
    """Hold the folder for this process; the system lets go when the process ends, however."""
    try:
        import fcntl
    except ImportError:  # no such locks on this system
        return None
    guard = (folder / "lock").open("wb")
    try:
        fcntl.flock(guard, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        guard.close()
        raise MailboxUnavailable(
            f"{folder}: another relay uses this folder; stop it first"
        ) from None
    return guard
