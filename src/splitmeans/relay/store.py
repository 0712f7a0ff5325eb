"""The relay's messages on disk: each written once, whole or not at all.

`<folder>/messages/` holds what readers may see, named by slot; `<folder>/incoming/` holds uploads
until they are complete and on disk, and is emptied at the start. What a killed relay leaves behind
is therefore either a whole message or a file that no reader can name. `<folder>/reserved/` has a
file for each run that a participant has asked room for, `<folder>/purged/` one for each run whose
messages the operator has removed.

Room is counted for each sender of a study alone. A run takes what is stored of it or what was
reserved for it, whichever is more: a message that room was reserved for always finds it. Nor is
more promised than the disk has, which participants could otherwise use up for each other.
"""

import contextlib
import hashlib
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
from splitmeans.relay.upload import Upload
from splitmeans.wire.sealed import OVERHEAD_BYTES
from splitmeans.wire.ways import MAX_SMALL_BYTES, is_large

_BLOCK = 1 << 20
# Of the disk, for folders, reservations, and what a file takes beyond its bytes.
_SPARE_BYTES = 64 << 20


class NoRoom(SplitmeansError):
    """A participant would pass what it may store in a study."""


class SlotTaken(SplitmeansError):
    """The slot already holds other bytes."""


class RunPurged(SplitmeansError):
    """The operator has removed the run's messages; "not there" would be no true answer."""


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

    The folder is made if absent (its parent must exist). `participants` has their number for each
    study, by the study's folder.
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
        self._purged = self._folder / "purged"
        places = (self._folder, self._messages, self._incoming, self._reserved, self._purged)
        try:
            for place in places:
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
        self._gone = {(file.stem, file.suffix[1:]) for file in self._purged.glob("*.*")}
        self._study_bytes = self._promised()

    @property
    def folder(self) -> Path:
        """The folder."""
        return self._folder

    def open(self, path: MessagePath) -> BinaryIO | None:
        """Open a message for reading; None if there is none."""
        self._check_there(path.study, path.run)
        try:
            return os.fdopen(open_plain_file(self._messages.joinpath(*path.parts)), "rb")
        except FileNotFoundError:
            return None

    def begin(self, path: MessagePath) -> Upload:
        """Begin an upload; the caller must end it by `commit` or `discard`."""
        self._check_there(path.study, path.run)
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

    def is_usable(self) -> bool:
        """Tell whether the folder is there and may be written to, as after a lost mount it is not.

        Whether there is room in it makes no difference.
        """
        return all(os.access(place, os.W_OK) for place in (self._messages, self._incoming))

    def set_participants(self, participants: Mapping[str, int]) -> None:
        """Serve these studies from now on, as after a restart with them."""
        with self._lock:
            self._participants = dict(participants)
            self._study_bytes = self._promised()

    @property
    def study_bytes(self) -> int:
        """What a study may store: the limit, or what the disk had for it."""
        return self._study_bytes

    def runs(self, study: str) -> tuple[str, ...]:
        """Return the runs of a study that have messages or reserved room."""
        stored = {place.name for place in (self._messages / study).glob("*")}
        reserved = {file.name.split(".")[1] for file in self._reserved.glob(f"{study}.*.*")}
        return tuple(sorted(stored | reserved))

    def purge(self, study: str, run: str) -> None:
        """Remove all messages of a run for good; it takes none from then on.

        A participant whose home has forgotten a release looks for it here. It must be told that the
        run is gone and not that there was nothing, so the name of the run is kept.
        """
        mark = self._purged / f"{study}.{run}"
        with mark.open("w") as file:
            os.fsync(file.fileno())
        sync_folder(self._purged)
        with self._lock:  # whoever publishes looks under the same lock
            self._gone.add((study, run))
            for (of_study, _), runs in self._usage.items():
                if of_study == study:
                    runs.pop(run, None)
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(self._messages / study / run)
        for reserved in self._reserved.glob(f"{study}.{run}.*"):
            reserved.unlink(missing_ok=True)

    def _check_there(self, study: str, run: str) -> None:
        if (study, run) in self._gone:
            raise RunPurged(
                f"the messages of run {run!r} were removed from this relay; the run cannot go on: "
                "begin another one with a new name"
            )

    def free_bytes(self, study: str, sender: str) -> int:
        """Return how much a participant may still store or reserve in a study."""
        with self._lock:
            return max(0, self._share(study) - self._taken(study, sender))

    def reserve(self, place: SenderRun, n_bytes: int) -> None:
        """Keep room for all messages of a run from one sender; asking again can only add.

        Raises:
            NoRoom: The sender has not as much left.
        """
        self._check_there(place.study, place.run)
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
        return min(there_is, self.limits.study_bytes)

    def publish(self, scratch: Path, target: Path, *, body_hash: str) -> bool:
        """Move a complete file to its slot; False if the slot holds the same bytes already."""
        self._check_there(*target.parts[-3:-1])
        make_folders(target.parent, below=self._messages, mode=0o700)
        # No other process writes here, so looking and renaming under a lock cannot be overtaken.
        with self._lock:
            self._check_there(*target.parts[-3:-1])
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
