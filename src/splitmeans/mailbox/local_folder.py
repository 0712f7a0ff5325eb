"""Messages as files in a folder of this machine, safe against crashes and strange files."""

import contextlib
import errno
import os
import secrets
import shutil
import stat
from pathlib import Path

from splitmeans.errors import MailboxError, MailboxUnavailable, MessageRefused
from splitmeans.mailbox.folder_rights import Rights
from splitmeans.mailbox.open import IsJunk, MessagePath

# Flags that some systems lack; without them the checks on the opened file remain.
_READ = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)  # a symlink could point to a file outside the mailbox
    | getattr(os, "O_NONBLOCK", 0)  # a named pipe would block the reader
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)
_CREATE = (
    os.O_WRONLY
    | os.O_CREAT
    | os.O_EXCL
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)

# How often a new file is tried to be made where others make its folders at the same time.
_ATTEMPTS = 5

# What systems say of a file system without hard links.
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)


class LocalFolder:
    """Files below one folder. The folder itself must exist: an unmounted share must not be hidden.

    Args:
        root: The folder.
    """

    def __init__(self, root: Path) -> None:
        self._root = root.absolute()
        try:
            found = self._root.stat()
            is_folder = stat.S_ISDIR(found.st_mode)
        except (FileNotFoundError, NotADirectoryError):
            is_folder = False
        if not is_folder:
            raise MailboxUnavailable(
                f"mailbox {root}: there is no such folder; make it first, or check that the share "
                "is mounted"
            )
        self._device = found.st_dev

    def read(self, path: MessagePath, *, max_bytes: int) -> bytes | None:
        """Return the bytes of a file, or None if it is absent."""
        try:
            return _read(self._target(path), max_bytes=max_bytes)
        except FileNotFoundError:
            self._check_mounted()
            return None

    def create(self, path: MessagePath, data: bytes) -> bool:
        """Write a file unless its name is taken; a reader finds all of it or nothing."""
        self._check_mounted()
        target = self._target(path)
        rights = Rights.of(self._root)
        scratch = target.with_name(f".{target.name}.{secrets.token_hex(8)}.part")
        try:
            with os.fdopen(_open_new(scratch, rights), "wb") as file:
                rights.give(scratch, is_folder=False)
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            is_new = _give_name(scratch, target)
        finally:
            with contextlib.suppress(OSError):
                scratch.unlink(missing_ok=True)
        sync_folder(target.parent)
        return is_new

    def remove_junk(self, path: MessagePath, is_junk: IsJunk, *, max_bytes: int) -> None:
        """Move a file away and look at it again: another copy of the sender may have been faster.

        What turns out to be a message goes back to its place.
        """
        target = self._target(path)
        aside = target.with_name(f".{target.name}.{secrets.token_hex(8)}.part")
        try:
            os.rename(target, aside)  # moves a symlink itself, not what it points to
        except FileNotFoundError:
            return
        try:
            found = _read(aside, max_bytes=max_bytes)
        except MessageRefused:
            found = None
        if not is_junk(found):
            _give_name(aside, target)
        with contextlib.suppress(IsADirectoryError, PermissionError):
            aside.unlink(missing_ok=True)

    def room(self, study: str) -> int | None:
        """Try to write where a study's messages would go; return the free bytes."""
        place = self._root / study
        _refuse_link(place)
        folder = place if place.exists() else self._root
        scratch = folder / f".{secrets.token_hex(8)}.part"
        try:
            with os.fdopen(os.open(scratch, _CREATE, 0o600), "wb") as file:
                file.write(b"\0")
        finally:
            with contextlib.suppress(OSError):
                scratch.unlink(missing_ok=True)
        usage = shutil.disk_usage(folder)
        return usage.free if usage.total > 0 else None  # some network shares do not tell

    def close(self) -> None:
        """Nothing is held open."""

    def _check_mounted(self) -> None:
        """Tell an empty slot from a share that went away: then nothing is known of the slot."""
        try:
            is_same = self._root.stat().st_dev == self._device
        except FileNotFoundError:
            is_same = False
        if not is_same:
            raise MailboxUnavailable(
                f"mailbox {self._root}: the folder is no longer there; is its share mounted?"
            )

    def _target(self, path: MessagePath) -> Path:
        study, run, name = path.parts
        folder = self._root / study / run
        for place in (folder.parent, folder):
            _refuse_link(place)
        return folder / name


def _read(target: Path, *, max_bytes: int) -> bytes:
    with os.fdopen(open_plain_file(target), "rb") as file:
        data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise MessageRefused(f"{target} holds more than {max_bytes} bytes")
    return data


def _give_name(scratch: Path, target: Path) -> bool:
    """Give a file its name unless that is taken; return whether it has it now."""
    try:
        os.link(scratch, target)  # unlike a rename, fails if the name is taken
    except FileExistsError:
        return False
    except OSError as problem:
        if problem.errno not in _NO_LINKS:
            raise
        return _give_name_under_lock(scratch, target)
    return True


def _give_name_under_lock(scratch: Path, target: Path) -> bool:
    """The same where the file system has no hard links, as on some network shares.

    Raises:
        MailboxUnavailable: Another process does it at the moment, or was killed while doing it.
    """
    lock = target.with_name(f".{target.name}.lock")
    try:
        os.close(os.open(lock, _CREATE, 0o600))
    except FileExistsError:
        raise MailboxUnavailable(
            f"{lock} says that another process writes this message at the moment; if none does, "
            "one was killed meanwhile: remove the file"
        ) from None
    try:
        is_new = not os.path.lexists(target)
        if is_new:
            os.rename(scratch, target)
    finally:
        lock.unlink()
    return is_new


def _open_new(scratch: Path, rights: Rights) -> int:
    """Make a file and the two folders that it is in.

    Two participants may make the same folder at the same moment. The second one's then takes the
    place of the first one's while that is empty, and who was about to write there finds nothing.
    """
    for _ in range(_ATTEMPTS - 1):
        with contextlib.suppress(FileNotFoundError):
            return _try_to_open_new(scratch, rights)
    return _try_to_open_new(scratch, rights)


def _try_to_open_new(scratch: Path, rights: Rights) -> int:
    for folder in (scratch.parent.parent, scratch.parent):
        _make_folder(folder, rights)
    return os.open(scratch, _CREATE, 0o600)


def _make_folder(folder: Path, rights: Rights) -> None:
    """Make a folder that has its rights as soon as it has its name, or find it made."""
    if folder.is_dir():
        return
    scratch = folder.with_name(f".{folder.name}.{secrets.token_hex(8)}.part")
    scratch.mkdir(mode=0o700)
    try:
        rights.give(scratch, is_folder=True)
        scratch.rename(folder)
    except OSError:
        with contextlib.suppress(OSError):
            scratch.rmdir()
        if not folder.is_dir():  # otherwise another participant was faster
            raise
    sync_folder(folder.parent)


def _refuse_link(place: Path) -> None:
    if place.is_symlink():
        raise MailboxError(f"mailbox: {place} is a symbolic link; remove it")


def open_plain_file(path: Path) -> int:
    """Open a file for reading; a link, pipe, device or folder is refused.

    Raises:
        FileNotFoundError: There is none.
        MessageRefused: It is no plain file.
    """
    if not stat.S_ISREG(os.lstat(path).st_mode):  # opening a device can already do something
        raise MessageRefused(f"{path} is no plain file")
    descriptor = os.open(path, _READ)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise MessageRefused(f"{path} is no plain file")
    return descriptor


def make_folders(folder: Path, *, below: Path, mode: int) -> None:
    """Make a folder and its missing parents up to `below`, each on disk before the next."""
    missing = []
    while folder != below and not folder.is_dir():
        missing.append(folder)
        folder = folder.parent
    for place in reversed(missing):
        place.mkdir(mode=mode, exist_ok=True)
        sync_folder(place.parent)


def sync_folder(folder: Path) -> None:
    """Put the entries of a folder on disk, where the system can."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as problem:
        if problem.errno not in (errno.EINVAL, errno.ENOTSUP):  # some network shares cannot
            raise
    finally:
        os.close(descriptor)
