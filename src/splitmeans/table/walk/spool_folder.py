"""The folder of one table's blocks: private, locked by its process, swept when that one is dead.

Beside each folder is a file of the same name with `.lock`, which the process holds until it has
removed the folder. A process that was killed holds nothing any more, so whoever uses the same place
next removes what it left. Worker processes open blocks by name, so the files have names; folders
have mode 700 and files 600.
"""

import atexit
import contextlib
import fcntl
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

_NAME = re.compile(r"splitmeans-spool-[0-9a-f]{16}")
_LOCK = ".lock"
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, kw_only=True, eq=False)
class SpoolFolder:
    """A folder that goes when it is closed, and at the latest with this process.

    Attributes:
        path: The folder.
        lock: Descriptor of its lock file.
    """

    path: Path
    lock: int

    def close(self) -> None:
        """Remove the folder; a second time does nothing."""
        if self in _open:
            _remove(self.path)
            _open.discard(self)
            os.close(self.lock)


_open: set[SpoolFolder] = set()


def make_spool_folder(parent: str | Path | None) -> SpoolFolder:
    """Make a new folder for blocks, and remove those that killed processes left beside it.

    Without a parent it is in the system's folder for temporary files.

    Raises:
        OSError: That is not possible.
    """
    place = Path(tempfile.gettempdir() if parent is None else parent)
    sweep_spools(place)
    while True:
        path = place / f"splitmeans-spool-{secrets.token_hex(8)}"
        lock = os.open(_lock_of(path), _NEW_FILE, 0o600)
        if _take(lock, _lock_of(path)):
            break
        os.close(lock)  # somebody who swept was faster
    spool = SpoolFolder(path=path, lock=lock)
    # Before the folder is there: it goes whenever this process ends.
    _open.add(spool)
    try:
        path.mkdir(mode=0o700)
    except BaseException:
        spool.close()
        raise
    return spool


def sweep_spools(place: Path) -> None:
    """Remove the folders in `place` whose processes are dead, and nobody else's."""
    names = {name.removesuffix(_LOCK) for name in _names(place)}
    for path in (place / name for name in sorted(names) if _NAME.fullmatch(name)):
        try:
            lock = os.open(_lock_of(path), os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            # A lock is there before its folder and goes after it: the folder is nobody's.
            _remove(path)
            continue
        except OSError:
            continue  # another user's
        try:
            if _take(lock, _lock_of(path)):
                _remove(path)
        finally:
            os.close(lock)


def new_private_file(path: Path) -> BinaryIO:
    """Make a file that only its owner can read, whatever the umask is."""
    return open(os.open(path, _NEW_FILE, 0o600), "wb")


def _names(place: Path) -> Iterator[str]:
    with contextlib.suppress(FileNotFoundError), os.scandir(place) as entries:
        yield from (entry.name for entry in entries)


def _lock_of(path: Path) -> Path:
    return path.with_name(path.name + _LOCK)


def _take(lock: int, path: Path) -> bool:
    """Lock a file; return whether this process has it, and it is still the one with this name."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(os.fstat(lock), path.lstat())
    except (BlockingIOError, FileNotFoundError):
        return False


def _remove(path: Path) -> None:
    """Remove a folder and, last, its lock file."""
    shutil.rmtree(path, ignore_errors=True)
    if not path.exists():
        _lock_of(path).unlink(missing_ok=True)


@atexit.register
def _close_all() -> None:
    for spool in list(_open):
        spool.close()


def _forget_inherited() -> None:
    # A copy of the process owns nothing: its end must not remove what the other one reads, and its
    # life must not keep a lock that a killed process has lost.
    while _open:
        os.close(_open.pop().lock)


os.register_at_fork(after_in_child=_forget_inherited)
