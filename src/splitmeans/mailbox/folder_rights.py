"""Rights in a folder that several users of a machine or a share have for their mailbox."""

import contextlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Self


@dataclass(frozen=True, kw_only=True)
class Rights:
    """Who may do what in the mailbox's folder; all that is made below it gets the same.

    The participants use the folder as different users, and none of them should need to know about
    the umask of the others: whoever made the folder has said who takes part.
    """

    group: int
    mode: int

    @classmethod
    def of(cls, root: Path) -> Self:
        """Return the rights of a folder."""
        status = root.stat()
        return cls(group=status.st_gid, mode=stat.S_IMODE(status.st_mode) & ~stat.S_ISUID)

    def give(self, path: Path, *, is_folder: bool) -> None:
        """Give a file or folder of ours these rights, as far as the system lets us."""
        mode = self.mode if is_folder else self.mode & 0o666
        if path.stat().st_gid != self.group:
            try:
                os.chown(path, -1, self.group)
            except (OSError, AttributeError):
                # Another group than the folder's gets no more than everybody.
                mode = (mode & ~0o070) | (mode & 0o007) << 3
        with contextlib.suppress(OSError):  # some network shares keep rights of their own
            if stat.S_IMODE(path.stat().st_mode) != mode:
                path.chmod(mode)


def explain_denied(problem: PermissionError) -> str:
    """Say where access was denied, what the rights are there, and who can change them."""
    if not problem.filename:
        return "access denied; check who may write there"
    path = Path(problem.filename)
    path = path.parent if path.name.endswith(".part") else path
    try:
        status = path.stat()
        has = f" (owner {_user(status.st_uid)}, group {_group(status.st_gid)}, mode "
        has += f"{stat.S_IMODE(status.st_mode):o})"
    except OSError:
        has = ""
    return (
        f"access to {path} denied{has}; all participants must be able to read and write there: "
        "let the owner give it the group of the mailbox's folder (chgrp -R GROUP) and that group "
        "the rights (chmod -R g+rwX)"
    )


def _user(number: int) -> str:
    with contextlib.suppress(ImportError, KeyError):
        import pwd

        return pwd.getpwuid(number).pw_name
    return str(number)


def _group(number: int) -> str:
    with contextlib.suppress(ImportError, KeyError):
        import grp

        return grp.getgrgid(number).gr_name
    return str(number)
