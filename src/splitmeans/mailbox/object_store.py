"""Messages as objects below one prefix of a store that fsspec has a driver for: S3, Azure, GCS.

A slot is filled once, by a write on condition that nothing is there (S3: `If-None-Match: *` on the
put and on the end of a multipart upload; Azure: the same on the blob or its list of blocks; Google:
generation 0). Whether store and driver keep to it is tried before anything is sent. A driver's own
retries are switched off: `retries.py` has the one rule for all mailboxes.
"""

import contextlib
import inspect
import secrets
from collections.abc import Mapping
from typing import Any

from splitmeans.errors import MailboxError, MessageRefused
from splitmeans.mailbox.open import IsJunk, MessagePath, public_url, scheme_of
from splitmeans.mailbox.store_drivers import (
    PART_BYTES,
    open_driver,
    remove_tagged,
    tag_of_object,
    takes_parts,
    upload_one_part,
)
from splitmeans.mailbox.store_errors import explain

_SLOWEST = 1 << 20  # bytes a second that a transfer must reach in the mean


class ObjectStore:
    """Objects below one prefix of a bucket or container.

    Args:
        url: `s3://bucket/folder`, `az://container/folder` and the like.
        timeout: Seconds to wait for any single answer; transfers get more by their size.
        options: Settings of the driver; credentials belong here or where the driver finds them.
    """

    def __init__(self, url: str, *, timeout: float, options: Mapping[str, object]) -> None:
        self._driver: Any = open_driver(url, timeout=timeout, options=options)
        self._shown_url = public_url(url)
        self._timeout = timeout
        self._root = str(self._driver._strip_protocol(url)).rstrip("/")
        self._has_buckets = scheme_of(url) != "memory"
        self._keeps, self._keeps_parts = False, False
        # Azure's driver has a word of its own for it.
        own = inspect.signature(
            getattr(self._driver, "_pipe_file", self._driver.pipe_file)
        ).parameters
        self._exclusive: dict[str, Any] = {"mode": "create"}
        if "overwrite" in own:
            self._exclusive["overwrite"] = False

    def read(self, path: MessagePath, *, max_bytes: int) -> bytes | None:
        """Return the bytes of an object, or None if the store says that it is absent."""
        target = self._target(path)
        self._driver.invalidate_cache()
        try:
            size = self._call("info", target)["size"]
            if size is not None and size > max_bytes:
                raise MessageRefused(f"{target} holds more than {max_bytes} bytes")
            if size == 0:
                return b""  # stores refuse to send a range of nothing
            data = bytes(
                self._call("cat_file", target, start=0, end=max_bytes + 1, n_bytes=size or 0)
            )
        except FileNotFoundError:
            self._check_bucket()
            return None
        if len(data) > max_bytes:
            raise MessageRefused(f"{target} holds more than {max_bytes} bytes")
        return data

    def create(self, path: MessagePath, data: bytes) -> bool:
        """Write an object unless there is one of that name; return whether it was written."""
        self._check_exclusive(path.study)
        more: dict[str, Any] = {}
        if takes_parts(self._driver) and len(data) >= 2 * PART_BYTES:
            # A store that keeps no condition on parts gets the message in one piece, if it can.
            in_parts = self._check_exclusive_parts(path.study)
            more["chunksize"] = PART_BYTES if in_parts else 5 << 30
        return self._create(self._target(path), data, **more)

    def remove_junk(self, path: MessagePath, is_junk: IsJunk, *, max_bytes: int) -> None:
        """Take away an object that is junk; another one that came meanwhile stays, by its tag."""
        target = self._target(path)
        try:
            tag = tag_of_object(self._call("info", target))
            found = self.read(path, max_bytes=max_bytes)
            if found is None:
                return
        except FileNotFoundError:
            return
        except MessageRefused:
            found = None
        if not is_junk(found):
            return
        try:
            if self._driver.async_impl:
                self._run(remove_tagged, self._driver, target, tag)
            else:
                self._call("rm_file", target)
        except Exception:
            # Changed meanwhile, which is no problem; or not allowed, which the next write tells.
            self._driver.invalidate_cache()

    def room(self, study: str) -> int | None:
        """Try to write for a study; object stores do not tell how much room they have."""
        self._check_exclusive(study)
        self._check_bucket()
        return None

    def close(self) -> None:
        """Forget the driver."""
        self._driver = None

    def _create(self, target: str, data: bytes, **more: Any) -> bool:
        try:
            keywords = {**self._exclusive, **more}
            self._call("pipe_file", target, data, n_bytes=len(data), **keywords)
        except Exception as problem:
            # Drivers differ in how they say that there is something; so it is looked at.
            self._driver.invalidate_cache()
            with contextlib.suppress(FileNotFoundError):
                self._call("info", target)
                return False
            if isinstance(problem, FileExistsError):
                return False  # and gone again
            raise
        return True

    def _check_bucket(self) -> None:
        """Refuse to take a bucket that is gone, or was never there, for an empty slot."""
        if not self._has_buckets:
            return
        bucket = self._root.partition("/")[0]
        try:
            self._call("info", bucket)
        except FileNotFoundError:
            raise MailboxError(
                f"mailbox {self._shown_url}: there is no bucket or container {bucket!r}; make it "
                "first, or check its name, the account and the region"
            ) from None

    def _check_exclusive(self, study: str) -> None:
        """Try once that the driver and the store keep what is there; not all of them do."""
        if self._keeps:
            return
        target = f"{self._root}/{study}/.{secrets.token_hex(8)}.part"
        try:
            self._call("pipe_file", target, b"first", **self._exclusive)
            with contextlib.suppress(Exception):  # whatever it raises, the bytes tell
                self._call("pipe_file", target, b"other", **self._exclusive)
            self._driver.invalidate_cache()
            self._keeps = bytes(self._call("cat_file", target, start=0, end=5)) == b"first"
        finally:
            with contextlib.suppress(Exception):  # a store may let nobody remove anything
                self._call("rm_file", target)
        if not self._keeps:
            raise MailboxError(
                f"mailbox {self._shown_url}: this object store, or its driver, replaces objects "
                "although it is told not to, so that two copies of a participant could release "
                "twice; install a newer driver, or take a folder, SFTP or a relay"
            )

    def _check_exclusive_parts(self, study: str) -> bool:
        """Try once whether the end of a multipart upload keeps what is there, as on S3 itself."""
        if self._keeps_parts:
            return True
        target = f"{self._root}/{study}/.{secrets.token_hex(8)}.part"
        try:
            self._call("pipe_file", target, b"first", **self._exclusive)
            with contextlib.suppress(Exception):
                self._run(upload_one_part, self._driver, target, b"other")
            self._driver.invalidate_cache()
            self._keeps_parts = bytes(self._call("cat_file", target, start=0, end=5)) == b"first"
        finally:
            with contextlib.suppress(Exception):
                self._call("rm_file", target)
        return self._keeps_parts

    def _target(self, path: MessagePath) -> str:
        return "/".join((self._root, *path.parts))

    def _call(self, name: str, *args: Any, n_bytes: int = 0, **keywords: Any) -> Any:
        """Ask the driver; what a store refuses is told in words, the rest is left to the caller."""
        try:
            if not self._driver.async_impl:
                return getattr(self._driver, name)(*args, **keywords)
            return self._run(getattr(self._driver, f"_{name}"), *args, n_bytes=n_bytes, **keywords)
        except Exception as problem:
            told = explain(problem, place=self._shown_url, act=name, only_known=True)
            if told is None:
                raise
            raise told from None

    def _run(self, action: Any, *args: Any, n_bytes: int = 0, **keywords: Any) -> Any:
        import fsspec.asyn

        seconds = self._timeout + n_bytes / _SLOWEST
        return fsspec.asyn.sync(self._driver.loop, action, *args, timeout=seconds, **keywords)
