"""A mailbox of files: a folder, an SFTP server, or an object store through fsspec.

Whoever can write to the place can put other bytes into a slot. That costs time only: a receiver
refuses bytes that the sender did not sign, and the sender's next `put` takes them away. What the
sender itself has put there stays: a slot is filled by an exclusive act of the place (a hard link, a
rename that does not replace, a conditional write), so of two copies of a sender one succeeds.
"""

import contextlib
import re
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol, TypeVar
from urllib.parse import unquote, urlsplit

from splitmeans import _validate
from splitmeans.errors import (
    MailboxError,
    MailboxUnavailable,
    MessageExists,
    MessageRefused,
    ParameterError,
    SplitmeansError,
)
from splitmeans.mailbox.folder_rights import explain_denied
from splitmeans.mailbox.local_folder import LocalFolder
from splitmeans.mailbox.object_store import ObjectStore
from splitmeans.mailbox.open import (
    MAX_STORED_BYTES,
    OBJECT_STORES,
    SFTP,
    IsJunk,
    MailboxLimits,
    MessagePath,
    never,
    path_text,
    public_url,
    scheme_of,
    study_folder,
)
from splitmeans.mailbox.retries import Retries, TryAgain

# Emptying and filling a slot, while somebody else fills it.
_ATTEMPTS = 5

_Result = TypeVar("_Result")


class _Files(Protocol):
    """Where files are; raises whatever its driver raises."""

    def read(self, path: MessagePath, *, max_bytes: int) -> bytes | None: ...

    def create(self, path: MessagePath, data: bytes) -> bool:
        """Write a file unless there is something of that name; return whether it was written."""

    def remove_junk(self, path: MessagePath, is_junk: IsJunk, *, max_bytes: int) -> None:
        """Take away what lies in a slot, if it is junk at the moment of taking it."""

    def room(self, study: str) -> int | None:
        """Try to write for a study; return the free bytes, if they can be known."""

    def close(self) -> None: ...


class FileMailbox:
    """Messages as files; connects at the first use, and again after a lost connection.

    Args:
        url: A folder, or a URL with file, sftp, memory, s3, gs, az or abfs.
        timeout: Seconds to wait for an answer, for places on a network.
        options: Settings of the storage driver; passwords belong here, not into the URL.
        retries: How long a place on a network that does not answer is asked again.
    """

    def __init__(
        self,
        url: str,
        *,
        timeout: float = 30.0,
        options: Mapping[str, object] | None = None,
        retries: Retries | None = None,
    ) -> None:
        _validate.positive(timeout=timeout)
        self._url = url
        self._timeout = timeout
        self._options = dict(options or {})
        self._retries = retries or Retries()
        self._files: _Files | None = None
        self._lock = threading.Lock()
        scheme = scheme_of(url)
        if "::" in url or scheme not in ("file", *SFTP, *OBJECT_STORES):
            raise ParameterError(
                "a mailbox is a folder, an https:// relay, or one of sftp, "
                f"{', '.join(OBJECT_STORES)}, got {public_url(url)!r}"
            )
        if scheme == "file":
            try:
                self._files = self._connect()
            except OSError as problem:
                raise self._error(problem) from problem

    def __repr__(self) -> str:
        return f"FileMailbox({public_url(self._url)!r})"

    def put(
        self,
        path: str,
        data: bytes,
        *,
        is_junk: IsJunk = never,
        max_bytes: int = MAX_STORED_BYTES,
    ) -> None:
        """Store a message in an empty slot; junk is taken away, the same bytes are left."""
        place = MessagePath.parse(path)
        self._use(lambda files: self._store(files, place, data, is_junk, max_bytes=max_bytes))

    def _store(
        self, files: _Files, place: MessagePath, data: bytes, is_junk: IsJunk, *, max_bytes: int
    ) -> None:
        for _ in range(_ATTEMPTS):
            try:
                found = files.read(place, max_bytes=max_bytes)
                is_there = found is not None
            except MessageRefused:
                found, is_there = None, True
            if is_there and found == data:
                return
            if is_there and not is_junk(found):
                raise MessageExists(
                    f"mailbox {public_url(self._url)}: {path_text(place)} holds another message of "
                    "the same sender, which stays"
                )
            if is_there:
                files.remove_junk(place, is_junk, max_bytes=max_bytes)
            if files.create(place, data):
                return
        raise MailboxUnavailable(
            f"mailbox {public_url(self._url)}: {path_text(place)} was filled by somebody else "
            f"{_ATTEMPTS} times in a row"
        )

    def get(self, path: str, *, max_bytes: int) -> bytes | None:
        """Return a message, or None if it is not there yet."""
        _validate.at_least(0, max_bytes=max_bytes)
        place = MessagePath.parse(path)
        return self._use(lambda files: files.read(place, max_bytes=max_bytes))

    def limits(self, study_hash: str) -> MailboxLimits:
        """Try to write; return how much room there is."""
        study = study_folder(study_hash)
        free_bytes = self._use(lambda files: files.room(study))
        return MailboxLimits(max_message_bytes=None, free_bytes=free_bytes, clock_offset=None)

    def reserve(self, study_hash: str, run: str, n_bytes: int) -> None:
        """Folders and stores keep no room; `limits` tells what there is."""

    def close(self) -> None:
        """Close the connection, if there is one."""
        with self._lock:
            self._drop()

    def _use(self, action: Callable[[_Files], _Result]) -> _Result:
        with self._lock:  # drivers differ in what they allow from several threads
            if scheme_of(self._url) == "file":
                return self._use_folder(action)
            return self._retries.run(lambda: self._attempt(action))

    def _use_folder(self, action: Callable[[_Files], _Result]) -> _Result:
        assert self._files is not None
        try:
            return action(self._files)
        except SplitmeansError:
            raise
        except Exception as problem:
            raise self._error(problem) from problem

    def _attempt(self, action: Callable[[_Files], _Result]) -> _Result:
        """Ask a place on a network, on a new connection if the one that is open fails."""
        if self._files is not None:
            try:
                return action(self._files)
            except MailboxUnavailable as problem:
                raise TryAgain(problem) from None
            except SplitmeansError:
                raise
            except Exception:
                # Servers close connections that were quiet between two polls: once more.
                self._drop()
        try:
            self._files = self._connect()
            return action(self._files)
        except MailboxUnavailable as problem:
            self._drop()
            raise TryAgain(problem) from None
        except SplitmeansError:
            raise
        except Exception as problem:
            self._drop()
            error = self._error(problem)
            # The driver's own error may show the whole URL, so it is not kept as the cause.
            if isinstance(error, MailboxUnavailable):
                raise TryAgain(error) from None
            raise error from None

    def _connect(self) -> _Files:
        scheme = scheme_of(self._url)
        if scheme == "file":
            return LocalFolder(_local_path(self._url))
        if scheme in SFTP:
            try:
                from splitmeans.mailbox.sftp_folder import SftpFolder
            except ImportError:
                raise MailboxError(
                    f"mailbox {public_url(self._url)}: SFTP needs a further package; "
                    'install it with: pip install "splitmeans[sftp]"'
                ) from None
            return SftpFolder(self._url, timeout=self._timeout, options=self._options)
        return ObjectStore(self._url, timeout=self._timeout, options=self._options)

    def _drop(self) -> None:
        if self._files is not None:
            with contextlib.suppress(Exception):
                self._files.close()
        self._files = None

    def _error(self, problem: Exception) -> MailboxError:
        kind = MailboxUnavailable if _may_pass(problem) else MailboxError
        return kind(f"mailbox {public_url(self._url)}: {_in_words(problem, self._secrets())}")

    def _secrets(self) -> list[str]:
        parts = urlsplit(self._url)
        values = [parts.password, parts.query, *self._options.values()]
        return [
            text for value in values if isinstance(value, str) for text in (value, unquote(value))
        ]


def _local_path(url: str) -> Path:
    if not url.startswith("file://"):
        return Path(url)
    parts = urlsplit(url)
    if parts.netloc not in ("", "localhost"):
        raise ParameterError(f"{url}: a folder on this machine has the form file:///folder")
    return Path(unquote(parts.path))


def _may_pass(problem: Exception) -> bool:
    """Tell whether the same request may succeed later: networks and disks, not rights or names."""
    name = type(problem).__name__
    if _is_log_in(problem) or "HostKey" in name:
        return False
    if "not found in known_hosts" in str(problem):
        return False
    if isinstance(problem, OSError):
        lasting = (PermissionError, FileNotFoundError, NotADirectoryError, IsADirectoryError)
        return not isinstance(problem, lasting)
    words = ("Timeout", "Connect", "SSHException", "EOF", "Unavailable", "SlowDown")
    return any(word in name for word in words)


def _is_log_in(problem: Exception) -> bool:
    name = type(problem).__name__
    if "Authentication" in name or "Credentials" in name:
        return True
    # Paramiko's general error, when there is neither a key nor a password.
    return "No authentication methods available" in str(problem)


def _in_words(problem: Exception, secrets: list[str]) -> str:
    """Say what went wrong, without anything secret that the driver may have put into its text."""
    name = type(problem).__name__
    if isinstance(problem, PermissionError):
        return explain_denied(problem)
    if isinstance(problem, TimeoutError) or "Timeout" in name:
        return "no answer in time; check the network, or allow more time"
    if _is_log_in(problem):
        return "log-in refused; check user name and key"
    if "not found in known_hosts" in str(problem):
        return "the server's host key is not known; check it and add it to known_hosts"
    if name == "BadHostKeyException":
        return "the server's host key is not the one in known_hosts; ask its operator why"
    if isinstance(problem, OSError) and problem.strerror:
        return problem.strerror
    text = str(problem)
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        text = text.replace(secret, "***")
    text = re.sub(r"://[^/\s@]+@", "://***@", text)
    return f"{name}: {text[:300]}" if text else name
