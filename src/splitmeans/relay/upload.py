"""One message on its way into the relay's store."""

import contextlib
import hashlib
import os
import secrets
import threading
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from splitmeans.errors import SplitmeansError

if TYPE_CHECKING:
    from splitmeans.relay.store import RelayStore, SenderRun


class MessageTooLarge(SplitmeansError):
    """An upload passed the limit for one message."""


class Upload:
    """One message on its way in: `write` pieces, then `commit` or `discard`.

    A request that ends early discards its upload while a thread may still be writing; the lock
    keeps the file open until that write is done.
    """

    def __init__(
        self,
        store: "RelayStore",
        *,
        place: "SenderRun",
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
        self._charged_bytes = self._charged_messages = 0
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
                self._charged_bytes = self._charged_messages = 0  # the charge stays
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
            n_bytes, n_messages = self._charged_bytes, self._charged_messages
            self._charged_bytes = self._charged_messages = 0
            if n_messages:
                self._store.charge(self._place, n_bytes=-n_bytes, n_messages=-n_messages)

    def _open_file(self) -> BinaryIO:
        if self._file is None:
            raise ValueError("the upload has ended")
        return self._file

    def _charge(self, *, n_bytes: int = 0, n_messages: int = 0) -> None:
        if self._is_new:
            self._store.charge(self._place, n_bytes=n_bytes, n_messages=n_messages)
            self._charged_bytes += n_bytes
            self._charged_messages += n_messages
