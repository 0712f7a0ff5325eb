"""A mailbox: the place through which participants pass sealed messages to each other.

A mailbox knows nothing of the protocol. It holds bytes under the name of their slot
(`wire/slot.py`); the bytes are sealed and signed, so whoever runs a mailbox can delay or lose
messages and nothing else. A receiver asks for the names that it expects and ignores all others.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, Self
from urllib.parse import urlsplit

from splitmeans.errors import ParameterError
from splitmeans.mailbox.request_signature import Signer
from splitmeans.mailbox.retries import Retries

_PATH = re.compile(
    r"(?P<study>[0-9a-f]{32})/(?P<run>[a-z0-9][a-z0-9-]{0,39})/"
    r"(?P<kind>[a-z0-9_]{1,64})\.(?P<sender>[0-9a-f]{16})\.(?P<receiver>[0-9a-f]{16})"
)
_STUDY = re.compile(r"[0-9a-f]{64}")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")

RELAYS = ("https", "http")
SFTP = ("sftp", "ssh")
# Stores where an upload appears whole or not at all. Drivers of other kinds (FTP, SMB, WebDAV)
# show a file while it grows; mount those as a folder instead.
OBJECT_STORES = ("memory", "s3", "gs", "gcs", "az", "abfs", "abfss")
SCHEMES = ("file", *SFTP, *OBJECT_STORES, *RELAYS)
"""Of all URLs that can be opened; a plain folder name counts as "file"."""

MAX_STORED_BYTES = 2**30 + 2**16
"""More than any sealed message has (`wire.ways.MAX_LARGE_BYTES` and its seal)."""

IsJunk = Callable[[bytes | None], bool]
"""Tells of what lies in a slot whether its sender cannot have made it; None: too large, no file."""


def never(_: bytes | None) -> bool:
    """Nothing is junk: whatever lies in a slot stays there."""
    return False


@dataclass(frozen=True, kw_only=True)
class MailboxLimits:
    """What a mailbox takes at the moment; None where it cannot be known.

    Attributes:
        max_message_bytes: Bytes of one message, as it is sealed.
        free_bytes: Bytes that can still be stored.
        is_shared: Whether these are for all participants together, or this one's own.
        clock_offset: The mailbox's clock minus this machine's, in seconds.
    """

    max_message_bytes: int | None
    free_bytes: int | None
    clock_offset: float | None
    is_shared: bool = True


class Mailbox(Protocol):
    """Holds at most one message under each name."""

    def put(
        self,
        path: str,
        data: bytes,
        *,
        is_junk: IsJunk = never,
        max_bytes: int = MAX_STORED_BYTES,
    ) -> None:
        """Store a message in an empty slot; a reader sees nothing or all of it.

        Of several writers one succeeds. The same bytes again are fine.

        Args:
            path: Name of the message, a `Slot.path`.
            data: The sealed message.
            is_junk: Whether what lies in the slot may be removed: it is not the sender's.
            max_bytes: Largest message that the sender can have made for the slot.

        Raises:
            MessageExists: The slot holds other bytes that are no junk; they stay.
            MailboxError: The mailbox cannot be reached, or refuses.
        """
        ...

    def get(self, path: str, *, max_bytes: int) -> bytes | None:
        """Return a message, or None if the mailbox says that it is not there.

        Sender and receiver may ask. Every failure is an error and never None: a sender that has
        forgotten a release must not take a failure for an empty slot.

        Raises:
            MessageRefused: What is stored is larger than `max_bytes` or is no plain file; it was
                not read.
            MailboxError: The mailbox cannot be reached, or refuses.
        """
        ...

    def limits(self, study_hash: str) -> MailboxLimits:
        """Return what the mailbox takes, after trying that this participant may write to it.

        Nothing of the try is left, and no other participant takes notice of it.

        Args:
            study_hash: The study whose messages would be stored.

        Raises:
            MailboxError: The mailbox cannot be reached, or would refuse a message.
        """
        ...

    def reserve(self, study_hash: str, run: str, n_bytes: int) -> None:
        """Have room kept for all that this participant will send in a run, where that can be done.

        Raises:
            MailboxError: There is not as much room, or the mailbox cannot be reached.
        """
        ...

    def close(self) -> None:
        """Give back connections; the mailbox cannot be used afterwards."""
        ...


@dataclass(frozen=True, kw_only=True)
class MessagePath:
    """The parts of a `Slot.path`; names of participants are short names."""

    study: str
    run: str
    kind: str
    sender: str
    receiver: str

    @classmethod
    def parse(cls, path: str) -> Self:
        """Take a path apart; anything that no slot can have is refused.

        This is the only way from a received name to a file name: what passes has no "..", no
        leading "/", no empty part and only ASCII characters.
        """
        found = _PATH.fullmatch(path)
        if found is None:
            raise ParameterError(
                "path must have the form <32 hex digits>/<run>/<kind>.<16 hex>.<16 hex> of a slot, "
                f"got {path[:120]!r}"
            )
        return cls(**found.groupdict())

    @property
    def parts(self) -> tuple[str, str, str]:
        """Folder of the study, folder of the run, file name."""
        return self.study, self.run, f"{self.kind}.{self.sender}.{self.receiver}"


def path_text(path: MessagePath) -> str:
    """Return a path as it is written in a mailbox."""
    return "/".join(path.parts)


def study_folder(study_hash: str) -> str:
    """Return the first part of the path of a study's messages."""
    if not _STUDY.fullmatch(study_hash):
        raise ParameterError("study_hash must be 64 hexadecimal digits, lower case")
    return study_hash[:32]


def open_mailbox(
    url: str,
    *,
    participant: str | None = None,
    signer: Signer | None = None,
    ca: Path | None = None,
    use_proxy: bool = False,
    options: Mapping[str, object] | None = None,
    retries: Retries | None = None,
) -> Mailbox:
    """Open the mailbox that a URL names.

    Args:
        url: A folder, `file://`, `memory://`, `sftp://user@host/folder`, `s3://bucket/folder` or
            another object store, or `https://host:port` of a relay.
        participant: Name of the participant who asks; needed for a relay.
        signer: Key that signs requests to a relay.
        ca: File with the certificates of the authority that a relay's certificate must come from;
            the system's authorities if not given.
        use_proxy: Reach a relay through the proxy that the environment names.
        options: For SFTP: `key_filename`, `known_hosts`, `password`; for an object store the
            settings of its driver.
        retries: How long a place on a network that does not answer is asked again.
    """
    scheme = scheme_of(url)
    if scheme in RELAYS:
        from splitmeans.mailbox.http import HttpMailbox

        if participant is None or signer is None:
            raise ParameterError(
                f"{public_url(url)} is a relay: participant and signer are needed to sign requests"
            )
        return HttpMailbox(
            url,
            participant=participant,
            signer=signer,
            ca=ca,
            use_proxy=use_proxy,
            retries=retries,
        )
    from splitmeans.mailbox.files import FileMailbox

    return FileMailbox(url, options=options, retries=retries)


def scheme_of(url: str) -> str:
    """Return the scheme of a URL in lower case; a plain folder name has the scheme "file"."""
    found = _SCHEME.match(url)
    return found.group(1).lower() if found else "file"


def public_url(url: str) -> str:
    """Return a URL without user name, password, query and fragment, for messages and logs."""
    if not _SCHEME.match(url):
        return url
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
