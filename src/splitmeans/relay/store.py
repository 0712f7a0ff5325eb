"""The relay's messages on disk: each written once, whole or not at all.

`<folder>/messages/` holds what readers may see, named by slot; `<folder>/incoming/` holds uploads
until they are complete and on disk, and is emptied at the start. What a killed relay leaves behind
is therefore either a whole message or a file that no reader can name. `<folder>/reserved/` has a
file for each run that a participant has asked room for.

Room is counted for each sender of a study alone. A run takes what is stored of it or what was
reserved for it, whichever is more: a message that room was reserved for always finds it. Nor is
more promised than the disk has, which participants could otherwise use up for each other.
"""

import contextlib
import hashlib
import logging
import os
import secrets
import shutil
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from splitmeans.errors import MailboxUnavailable, ParameterError, SplitmeansError
from splitmeans.mailbox.local_folder import make_folders, open_plain_file, sync_folder
from splitmeans.mailbox.open import MessagePath
from splitmeans.relay.limits import RelayLimits
from splitmeans.wire.messages import MAX_SMALL_BYTES, is_large
from splitmeans.wire.sealed import OVERHEAD_BYTES

_log = logging.getLogger("splitmeans.relay")

_BLOCK = 1 << 20
# Of the disk, for folders, reservations, and what a file takes beyond its bytes.
_SPARE_BYTES = 64 << 20


class MessageTooLarge(SplitmeansError):
    """An upload passed the limit for one message."""


class NoRoom(SplitmeansError):
    """A participant would pass what it may store in a study."""


class SlotTaken(SplitmeansError):
    """The slot already holds other bytes."""


@dataclass(frozen=True, kw_only=True)
class SenderRun:
    """The messages of one run from one participant, by its short name."""

    study: str
    run: str
    sender: str


@dataclass(kw_only=True)
class _Usage:
    n_bytes: int = 0
    n_messages: int = 0
    reserved: int = 0

    @property
    def room(self) -> int:
        return max(self.n_bytes, self.reserved)


class RelayStore:
    """Messages in a folder that one relay has for itself. Safe to use from several threads.

    Args:
        folder: Where to keep messages; made if absent (its parent must exist).
        limits: What may be stored.
        participants: Number of participants of each study, by the study's folder.
    """

    def __init__(
        self, folder: Path, limits: RelayLimits, *, participants: Mapping[str, int] | None = None
    ) -> None:
        self.limits = limits
        self._participants = dict(participants or {})
        self._folder = folder.absolute()
        self._messages = self._folder / "messages"
        self._incoming = self._folder / "incoming"
        self._reserved = self._folder / "reserved"
        try:
            for place in (self._folder, self._messages, self._incoming, self._reserved):
                place.mkdir(mode=0o700, exist_ok=True)
        except OSError as problem:
            raise ParameterError(
                f"{folder}: the relay cannot keep messages there ({problem.strerror})"
            ) from problem
        self._guard = _lock_folder(self._folder)
        for scratch in self._incoming.iterdir():
            scratch.unlink()
        self._lock = threading.Lock()
        # By study and sender, then by run: nobody's room depends on another's messages.
        self._usage: dict[tuple[str, str], dict[str, _Usage]] = {}
        for file in self._messages.glob("*/*/*.*.*"):
            study, run, name = file.parts[-3:]
            usage = self._of(SenderRun(study=study, run=run, sender=name.split(".")[1]))
            usage.n_bytes += file.stat().st_size
            usage.n_messages += 1
        for file in self._reserved.glob("*.*.*"):
            study, run, sender = file.name.split(".")
            usage = self._of(SenderRun(study=study, run=run, sender=sender))
            usage.reserved = int(file.read_text())
        self._study_bytes = self._promised()

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
        place = SenderRun(study=path.study, run=path.run, sender=path.sender)
        most = self.limits.message_bytes
        if not is_large(path.kind):
            most = min(most, MAX_SMALL_BYTES + OVERHEAD_BYTES)
        upload = Upload(
            self, place=place, target=target, incoming=self._incoming, message_bytes=most
        )
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

    def free_bytes(self, study: str, sender: str) -> int:
        """Return how much a participant may still store or reserve in a study."""
        with self._lock:
            return max(0, self._share(study) - self._taken(study, sender))

    def reserve(self, place: SenderRun, n_bytes: int) -> None:
        """Keep room for all messages of a run from one sender; asking again can only add.

        Raises:
            NoRoom: The sender has not as much left.
        """
        with self._lock:
            before = self._of(place).reserved
            self._check(place, n_bytes=n_bytes, already=before)
            if n_bytes <= before:
                return
            self._of(place).reserved = n_bytes
        scratch = self._incoming / secrets.token_hex(16)
        with scratch.open("w") as file:
            file.write(str(n_bytes))
            file.flush()
            os.fsync(file.fileno())
        os.replace(scratch, self._reserved / f"{place.study}.{place.run}.{place.sender}")
        sync_folder(self._reserved)

    def charge(self, place: SenderRun, *, n_bytes: int, n_messages: int) -> None:
        """Count bytes and messages of a run; negative numbers give back.

        Raises:
            NoRoom: The sender has not as much left.
        """
        with self._lock:
            usage = self._of(place)
            if n_bytes >= 0:
                self._check(place, n_bytes=usage.n_bytes + n_bytes, already=usage.room)
            usage.n_bytes += n_bytes
            usage.n_messages += n_messages
            self._drop_empty(place)

    def _check(self, place: SenderRun, *, n_bytes: int, already: int) -> None:
        """Refuse a run, or its growth beyond what it takes already, that has no room."""
        runs = self._usage[place.study, place.sender]
        try:
            if len(runs) > self.limits.sender_runs:
                raise NoRoom(f"a participant may have {self.limits.sender_runs} runs of a study")
            more = max(0, n_bytes - already)
            # What was reserved stays promised, also by a relay that was started with less room.
            if more and self._taken(place.study, place.sender) + more > self._share(place.study):
                raise NoRoom(
                    f"a participant may store {self._share(place.study)} bytes in this study"
                )
        except NoRoom:
            self._drop_empty(place)
            raise

    def _of(self, place: SenderRun) -> _Usage:
        return self._usage.setdefault((place.study, place.sender), {}).setdefault(
            place.run, _Usage()
        )

    def _drop_empty(self, place: SenderRun) -> None:
        runs = self._usage[place.study, place.sender]
        usage = runs[place.run]
        if usage.n_messages <= 0 and usage.reserved == 0:
            del runs[place.run]

    def _taken(self, study: str, sender: str) -> int:
        return sum(usage.room for usage in self._usage.get((study, sender), {}).values())

    def _share(self, study: str) -> int:
        return self._study_bytes // max(1, self._participants.get(study, 1))

    def _promised(self) -> int:
        """Return what a study may store: what the limits say, or as much as the disk has for it.

        What is stored already counts as free, so that nobody is told how much that is.
        """
        usage = shutil.disk_usage(self._folder)
        if usage.total == 0:  # some network shares do not tell
            return self.limits.study_bytes
        stored = sum(
            _disk_bytes(file)
            for study in self._participants
            for file in (self._messages / study).rglob("*")
        )
        n_studies = max(1, len(self._participants))
        there_is = max(0, usage.free + stored - _SPARE_BYTES) // n_studies // _BLOCK * _BLOCK
        if there_is < self.limits.study_bytes:
            _log.warning(
                "a study may store %d bytes, not %d: the disk of %s has no more; see --max-study",
                there_is,
                self.limits.study_bytes,
                self._folder,
            )
        return min(there_is, self.limits.study_bytes)

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
        return self.compare(target, body_hash=body_hash)

    def compare(self, target: Path, *, body_hash: str) -> bool:
        """Return False, for nothing new, if a slot holds these bytes.

        Raises:
            SlotTaken: It holds others.
        """
        if _hash_of(target) != body_hash:
            raise SlotTaken("the slot holds other bytes; a message is written once")
        return False


class Upload:
    """One message on its way in: `write` pieces, then `commit` or `discard`.

    A request that ends early discards its upload while a thread may still be writing; the lock
    keeps the file open until that write is done.
    """

    def __init__(
        self,
        store: RelayStore,
        *,
        place: SenderRun,
        target: Path,
        incoming: Path,
        message_bytes: int,
    ) -> None:
        self._store = store
        self._place = place
        self._target = target
        self._message_bytes = message_bytes
        self._scratch = incoming / secrets.token_hex(16)
        self._file: BinaryIO | None = None
        self._hash = hashlib.sha256()
        self._size = 0
        self._charged = _Usage()
        self._lock = threading.Lock()
        # The same message again is compared and not stored; it must pass even without any room.
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
            if self._size > self._message_bytes:
                raise MessageTooLarge(f"such a message may have {self._message_bytes} bytes")
            self._charge(n_bytes=len(piece))
            self._hash.update(piece)
            if self._is_new:
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
            if not self._is_new:
                return self._store.compare(self._target, body_hash=body_hash)
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
            if charged.n_messages:
                self._store.charge(
                    self._place, n_bytes=-charged.n_bytes, n_messages=-charged.n_messages
                )

    def _open_file(self) -> BinaryIO:
        if self._file is None:
            raise ValueError("the upload has ended")
        return self._file

    def _charge(self, *, n_bytes: int = 0, n_messages: int = 0) -> None:
        if self._is_new:
            self._store.charge(self._place, n_bytes=n_bytes, n_messages=n_messages)
            self._charged.n_bytes += n_bytes
            self._charged.n_messages += n_messages


def _hash_of(path: Path) -> str:
    digest = hashlib.sha256()
    with os.fdopen(open_plain_file(path), "rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _disk_bytes(file: Path) -> int:
    """Return what a file takes on its disk."""
    found = file.stat()
    return int(getattr(found, "st_blocks", -(-found.st_size // 512)) * 512)


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
