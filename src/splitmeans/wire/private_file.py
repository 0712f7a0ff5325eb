"""Small files that hold a secret: who may read them, and how they are written.

A file is private if only its owner can use it. Kubernetes, systemd and others hand a secret to a
process in another way: the file belongs to root or another user, the process reads it by its group,
and cannot change it (mode 440). That is taken as well. What everyone on the machine can read is
refused, whoever owns it.
"""

import os
import secrets
import stat
from pathlib import Path

from splitmeans.errors import ParameterError


def read_private(path: Path, *, what: str, max_bytes: int) -> bytes:
    """Read a file that nobody reads by accident.

    Links are followed, as mounted secrets have them. Errors call the file `what`.

    Raises:
        ParameterError: It cannot be read, others can read it, or it is too large.
    """
    try:
        # Without waiting, as a pipe of that name would make us.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(handle, "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise ParameterError(f"{what} {path} is not a file")
            if os.name == "posix":
                _check_rights(path, status, what=what)
            data = file.read(max_bytes + 1)
    except OSError as problem:
        raise ParameterError(f"{what} {path} cannot be read: {problem.strerror}") from None
    if len(data) > max_bytes:
        raise ParameterError(f"{what} {path} is too large: at most {max_bytes} bytes are read")
    return data


def _check_rights(path: Path, status: os.stat_result, *, what: str) -> None:
    if not status.st_mode & 0o077:
        return
    if status.st_uid == os.geteuid():
        raise ParameterError(
            f"{what} {path} can be used by other users of this machine; run: chmod 600 {path}"
        )
    # Not ours, so by these rights we cannot change it; neither can anyone else of the group.
    if status.st_mode & 0o037:
        raise ParameterError(
            f"{what} {path} belongs to another user and has mode "
            f"{stat.S_IMODE(status.st_mode):03o}; a secret that is mounted for you must have mode "
            "440 or less, so that only its group reads it (Kubernetes: defaultMode: 0440 and "
            "fsGroup)"
        )


def write_new(path: Path, data: bytes, *, what: str) -> None:
    """Write a file that appears complete or not at all, and was never readable by others."""
    draft = path.parent / f".{path.name}.{secrets.token_hex(8)}"
    try:
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.link(draft, path)  # unlike a rename, fails if the name is taken
        finally:
            draft.unlink()
        if os.name == "posix":
            folder = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
    except FileExistsError:
        raise ParameterError(f"{what} {path} exists; keys are never replaced") from None
    except OSError as problem:
        raise ParameterError(f"{what} {path} cannot be written: {problem.strerror}") from None
