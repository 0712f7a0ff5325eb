"""Messages as files in a folder of an SFTP server.

Written on paramiko, not on fsspec's SFTP driver: that one accepts any host key unless told
otherwise, reads one block at a time and cannot tell a link from a file.
"""

import contextlib
import secrets
import stat
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

import paramiko
from paramiko.sftp import CMD_EXTENDED, CMD_EXTENDED_REPLY

from splitmeans.errors import (
    MailboxError,
    MailboxUnavailable,
    MessageRefused,
    ParameterError,
)
from splitmeans.mailbox.open import IsJunk, MessagePath, public_url

_OPTIONS = ("known_hosts", "key_filename", "password")
_PARALLEL_READS = 64  # blocks of 32 kB on their way at once; hides the line's delay


class SftpFolder:
    """Files below one folder of an SFTP server whose host key is already known.

    Args:
        url: `sftp://user@host:port/folder`.
        timeout: Seconds to wait for any single answer.
        options: `key_filename`, the only key that is tried (without it those of an SSH agent and of
            the user's own folder); `password` of the account or of the key; `known_hosts` (a file;
            the user's own if not given).
    """

    def __init__(self, url: str, *, timeout: float, options: Mapping[str, object]) -> None:
        parts = urlsplit(url)
        if not parts.hostname or not parts.path.strip("/"):
            raise ParameterError(
                f"{public_url(url)}: an SFTP mailbox has the form sftp://user@host/folder"
            )
        unknown = set(options) - set(_OPTIONS)
        if unknown:
            raise ParameterError(
                f"options of an SFTP mailbox are {', '.join(_OPTIONS)}, got {sorted(unknown)}"
            )
        self._root = unquote(parts.path).rstrip("/")
        self._keeps = False
        settings = dict(options)
        for name in ("key_filename", "known_hosts"):
            if name in settings and not Path(str(settings[name])).is_file():
                raise ParameterError(f"{settings[name]}: no such file; it is the {name} for SFTP")
        known_hosts = settings.pop("known_hosts", None)
        # Other keys first would use up the attempts that a server allows.
        tries_own_keys = "key_filename" not in settings
        if parts.password is not None:
            settings.setdefault("password", unquote(parts.password))
        self._client = paramiko.SSHClient()
        try:
            if known_hosts is None:
                self._client.load_system_host_keys()
            else:
                self._client.load_system_host_keys(str(known_hosts))
            # An impostor could not read messages, but could take a password and hold messages back.
            self._client.set_missing_host_key_policy(paramiko.RejectPolicy())
            self._client.connect(
                parts.hostname,
                port=parts.port or 22,
                username=unquote(parts.username) if parts.username else None,
                timeout=timeout,
                banner_timeout=timeout,
                auth_timeout=timeout,
                channel_timeout=timeout,
                allow_agent=tries_own_keys,
                look_for_keys=tries_own_keys,
                **settings,
            )
            self._sftp = self._client.open_sftp()
            self._sftp.get_channel().settimeout(timeout)
            self._check_root(public_url(url))
        except BaseException:
            self._client.close()
            raise

    def read(self, path: MessagePath, *, max_bytes: int) -> bytes | None:
        """Return the bytes of a file, or None if it is absent."""
        try:
            return self._read(self._target(path), max_bytes=max_bytes)
        except FileNotFoundError:
            self._check_still_there()
            return None

    def _read(self, target: str, *, max_bytes: int) -> bytes:
        found = self._sftp.lstat(target)
        if not stat.S_ISREG(found.st_mode):
            raise MessageRefused(f"{target} is no plain file")
        if found.st_size > max_bytes:
            raise MessageRefused(f"{target} holds more than {max_bytes} bytes")
        with self._sftp.open(target, "rb") as file:
            file.prefetch(found.st_size, _PARALLEL_READS)
            data: bytes = file.read(max_bytes + 1)
        if len(data) > max_bytes:
            raise MessageRefused(f"{target} holds more than {max_bytes} bytes")
        return data

    def create(self, path: MessagePath, data: bytes) -> bool:
        """Write under a temporary name, check the size, then rename unless the name is taken."""
        target = self._target(path)
        study, run, name = path.parts
        for folder in (f"{self._root}/{study}", f"{self._root}/{study}/{run}"):
            self._make_folder(folder)
        self._check_exclusive(f"{self._root}/{study}/{run}")
        scratch = f"{self._root}/{study}/{run}/.{name}.{secrets.token_hex(8)}.part"
        try:
            with self._sftp.open(scratch, "wbx") as file:
                self._share(scratch, mode=self._mode & 0o666)
                file.set_pipelined(True)
                file.write(data)
            if self._sftp.stat(scratch).st_size != len(data):
                raise OSError("the server did not store the whole file")
            is_new = self._rename(scratch, target)
        except BaseException:
            with contextlib.suppress(Exception):
                self._sftp.remove(scratch)
            raise
        if not is_new:
            self._sftp.remove(scratch)
        return is_new

    def remove_junk(self, path: MessagePath, is_junk: IsJunk, *, max_bytes: int) -> None:
        """Move a file away and look at it again; see `LocalFolder.remove_junk`."""
        study, run, name = path.parts
        aside = f"{self._root}/{study}/{run}/.{name}.{secrets.token_hex(8)}.part"
        try:
            self._sftp.rename(self._target(path), aside)
        except FileNotFoundError:
            return
        try:
            found = self._read(aside, max_bytes=max_bytes)
        except MessageRefused:
            found = None
        if is_junk(found) or not self._rename(aside, self._target(path)):
            with contextlib.suppress(OSError):
                self._sftp.remove(aside)

    def room(self, study: str) -> int | None:
        """Try to write where a study's messages would go; return the free bytes, if told."""
        folder = f"{self._root}/{study}"
        try:
            self._sftp.stat(folder)
        except FileNotFoundError:
            folder = self._root
        scratch = f"{folder}/.{secrets.token_hex(8)}.part"
        try:
            with self._sftp.open(scratch, "wbx") as file:
                file.write(b"\0")
        finally:
            with contextlib.suppress(OSError):
                self._sftp.remove(scratch)
        self._check_exclusive(folder)
        return self._free_bytes(folder)

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def _check_root(self, shown_url: str) -> None:
        try:
            found = self._sftp.stat(self._root)
        except FileNotFoundError:
            found = None
        if found is None or not stat.S_ISDIR(found.st_mode):
            raise MailboxError(
                f"mailbox {shown_url}: there is no such folder on the server; make it first"
            )
        self._group, self._mode = found.st_gid, stat.S_IMODE(found.st_mode) & ~stat.S_ISUID

    def _free_bytes(self, folder: str) -> int | None:
        """Ask by OpenSSH's extension, which paramiko has no method for."""
        try:
            kind, answer = self._sftp._request(CMD_EXTENDED, "statvfs@openssh.com", folder)
        except OSError:
            return None  # the server does not have it
        if kind != CMD_EXTENDED_REPLY:
            return None
        # Block size, fragment size, then blocks: all, free, free for an ordinary user.
        _, fragment, total, _, available = (answer.get_int64() for _ in range(5))
        return fragment * available if total > 0 else None

    def _target(self, path: MessagePath) -> str:
        return "/".join((self._root, *path.parts))

    def _make_folder(self, folder: str) -> None:
        try:
            self._sftp.stat(folder)
        except FileNotFoundError:
            try:
                self._sftp.mkdir(folder)
                self._share(folder, mode=self._mode)
            except OSError:
                self._sftp.stat(folder)  # another participant was faster; if not, this fails

    def _share(self, path: str, *, mode: int) -> None:
        """Give what was made the rights of the mailbox's folder, as far as the server lets us.

        The participants may be different users there; see `folder_rights.Rights`.
        """
        found = self._sftp.stat(path)
        if found.st_gid != self._group:
            try:
                self._sftp.chown(path, found.st_uid, self._group)
            except OSError:
                mode = (mode & ~0o070) | (mode & 0o007) << 3
        with contextlib.suppress(OSError):
            self._sftp.chmod(path, mode)

    def _rename(self, scratch: str, target: str) -> bool:
        """Rename unless the new name is taken; return whether it was done.

        The protocol's own rename does not replace (OpenSSH: a hard link); OpenSSH's extension,
        which paramiko calls `posix_rename`, would.
        """
        try:
            self._sftp.rename(scratch, target)
        except OSError:
            try:
                self._sftp.lstat(target)
            except FileNotFoundError:
                pass
            else:
                return False
            raise
        return True

    def _check_exclusive(self, folder: str) -> None:
        """Try once that the server's rename replaces nothing; not all keep to the protocol."""
        if self._keeps:
            return
        first, other = (f"{folder}/.{secrets.token_hex(8)}.part" for _ in range(2))
        try:
            for name, data in ((first, b"first"), (other, b"other")):
                with self._sftp.open(name, "wbx") as file:
                    file.write(data)
            with contextlib.suppress(OSError):  # whatever it answers, the bytes tell
                self._sftp.rename(other, first)
            with self._sftp.open(first, "rb") as file:
                self._keeps = file.read(5) == b"first"
        finally:
            for name in (first, other):
                with contextlib.suppress(OSError):
                    self._sftp.remove(name)
        if not self._keeps:
            raise MailboxError(
                "this SFTP server replaces a file when another one is renamed to its name, so that "
                "two copies of a participant could release twice; take another server (OpenSSH "
                "does not), a folder, an object store or a relay"
            )

    def _check_still_there(self) -> None:
        try:
            self._sftp.stat(self._root)
        except FileNotFoundError:
            raise MailboxUnavailable(
                f"the mailbox's folder {self._root} is no longer there on the server"
            ) from None
