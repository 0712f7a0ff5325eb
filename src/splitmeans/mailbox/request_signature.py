"""How a request to the relay is signed; shared by the relay and its client.

A request names its participant, the time and a random nonce, and its signature covers these with
the method, the message's path and the hash of the body. The relay can therefore decide from the
headers alone, before it reads any of the body, and compares the body's hash when it has it.
"""

import hashlib
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, Self

from splitmeans.wire.slot import short_name

# The same key also signs messages; nothing else that it signs may begin with this line.
_DOMAIN = b"splitmeans relay request, version 1\n"

_PREFIX = "splitmeans-"
_FORMS = {
    "participant": re.compile(r"[0-9a-f]{16}"),
    "time": re.compile(r"[0-9]{1,12}"),
    "nonce": re.compile(r"[0-9a-f]{32}"),
    "body": re.compile(r"[0-9a-f]{64}"),
    "signature": re.compile(r"[0-9a-f]{128}"),
}

EMPTY_HASH = hashlib.sha256(b"").hexdigest()


class Signer(Protocol):
    """A participant's private key; `wire.identity.Identity` is one."""

    def sign(self, data: bytes, /) -> bytes:
        """Return an Ed25519 signature of the data."""
        ...


class Verifier(Protocol):
    """A participant's public key; `wire.identity.PublicIdentity` is one."""

    def verify(self, data: bytes, signature: bytes, /) -> bool:
        """Tell whether the signature of the data is right."""
        ...


@dataclass(frozen=True, kw_only=True)
class SignedRequest:
    """What the headers of a request say, in the right form but not yet believed.

    Attributes:
        participant: Short name of who asks.
        time: Unix time of the request in seconds, by the clock of who asks.
        nonce: 32 random hexadecimal digits, fresh for every request.
        body_hash: SHA-256 of the body, hexadecimal.
        signature: Ed25519 signature.
    """

    participant: str
    time: int
    nonce: str
    body_hash: str
    signature: bytes

    @classmethod
    def read(cls, headers: Mapping[str, str]) -> Self | None:
        """Read the headers of a request; None if one is missing or malformed."""
        values = {name: headers.get(_PREFIX + name, "") for name in _FORMS}
        if not all(form.fullmatch(values[name]) for name, form in _FORMS.items()):
            return None
        return cls(
            participant=values["participant"],
            time=int(values["time"]),
            nonce=values["nonce"],
            body_hash=values["body"],
            signature=bytes.fromhex(values["signature"]),
        )

    def is_signed_by(self, verifier: Verifier, *, method: str, path: str) -> bool:
        """Tell whether this key signed the request for this method and message path."""
        text = _signed_text(
            method,
            path,
            body_hash=self.body_hash,
            time=self.time,
            nonce=self.nonce,
            participant=self.participant,
        )
        return verifier.verify(text, self.signature)


def sign_request(
    method: str, path: str, *, body_hash: str, participant: str, signer: Signer, time: int
) -> dict[str, str]:
    """Return the headers that sign one request; a repeated request needs new ones.

    Args:
        method: "PUT" or "GET".
        path: Path of the message.
        body_hash: SHA-256 of the body, hexadecimal; `EMPTY_HASH` for none.
        participant: Name of who asks (not the short name).
        signer: The participant's private key.
        time: Unix time in seconds.
    """
    nonce = secrets.token_hex(16)
    name = short_name(participant)
    text = _signed_text(method, path, body_hash=body_hash, time=time, nonce=nonce, participant=name)
    values = {
        "participant": name,
        "time": str(time),
        "nonce": nonce,
        "body": body_hash,
        "signature": signer.sign(text).hex(),
    }
    return {_PREFIX + key: value for key, value in values.items()}


def _signed_text(
    method: str, path: str, *, body_hash: str, time: int, nonce: str, participant: str
) -> bytes:
    # One part a line: none of them can hold a line break, so no two requests have one text.
    study = path.partition("/")[0]
    parts = (method, study, path, body_hash, str(time), nonce, participant)
    return _DOMAIN + "\n".join(parts).encode()
