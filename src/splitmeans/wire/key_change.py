"""Signed words about a key: that another one follows it, and that it must not be used any more.

Both travel as a small JSON file. A renewal is signed by the old key, so that it comes from whoever
the study pinned, and by the new one, so that nobody can claim another's key. A revocation is signed
by the key that it ends. Layouts: docs/reference/wire.md.
"""

import json
from dataclasses import dataclass
from typing import Any

from splitmeans.errors import ParameterError
from splitmeans.wire.identity import Identity, PublicIdentity

_RENEWAL, _REVOCATION = "splitmeans key renewal 1", "splitmeans key revocation 1"
MAX_BYTES = 16 * 1024


@dataclass(frozen=True, kw_only=True)
class KeyRenewal:
    """A key that follows another one of the same participant."""

    old: PublicIdentity
    new: PublicIdentity
    time: str
    signatures: tuple[bytes, bytes]

    @staticmethod
    def make(old: Identity, new: Identity, *, time: str) -> "KeyRenewal":
        """Sign a renewal with both keys."""
        text = _renewal_text(old.public, new.public, time)
        return KeyRenewal(
            old=old.public, new=new.public, time=time, signatures=(old.sign(text), new.sign(text))
        )

    def to_text(self) -> str:
        """Return the renewal as it travels."""
        facts = {
            "format": _RENEWAL,
            "old": self.old.to_text(),
            "new": self.new.to_text(),
            "time": self.time,
            "signatures": [one.hex() for one in self.signatures],
        }
        return json.dumps(facts, indent=1) + "\n"

    @staticmethod
    def from_text(text: str, *, where: str) -> "KeyRenewal":
        """Read and check a renewal.

        Raises:
            ParameterError: It is none, or one of its signatures is wrong.
        """
        facts = _read(text, _RENEWAL, where=where)
        try:
            old, new = (PublicIdentity.from_text(facts[name]) for name in ("old", "new"))
            time = str(facts["time"])
            one, two = (bytes.fromhex(hexed) for hexed in facts["signatures"])
        except (KeyError, TypeError, ValueError) as problem:
            raise ParameterError(f"{where} is no key renewal that can be read: {problem}") from None
        signed = _renewal_text(old, new, time)
        if not (old.verify(signed, one) and new.verify(signed, two)) or old == new:
            raise ParameterError(
                f"{where}: a renewal must be signed by the old and the new key, and this one is "
                "not; it was changed or forged"
            )
        return KeyRenewal(old=old, new=new, time=time, signatures=(one, two))


@dataclass(frozen=True, kw_only=True)
class Revocation:
    """A key that must not be used any more.

    `is_signed` is whether the key itself said so; otherwise somebody in this home did.
    """

    digest: str
    reason: str
    time: str
    is_signed: bool


def revocation_text(identity: Identity, *, reason: str, time: str) -> str:
    """Return a revocation signed by the key that it ends, as it travels."""
    facts = {
        "format": _REVOCATION,
        "key": identity.public.to_text(),
        "reason": check_reason(reason),
        "time": time,
    }
    return json.dumps(facts | {"signature": identity.sign(_signed(facts)).hex()}, indent=1) + "\n"


def read_revocation(text: str, *, where: str) -> Revocation:
    """Read and check a signed revocation."""
    facts = _read(text, _REVOCATION, where=where)
    try:
        key = PublicIdentity.from_text(facts["key"])
        signature = bytes.fromhex(facts.pop("signature"))
        reason, time = check_reason(facts["reason"]), str(facts["time"])
    except (KeyError, TypeError, ValueError) as problem:
        raise ParameterError(f"{where} is no revocation that can be read: {problem}") from None
    if not key.verify(_signed(facts), signature):
        raise ParameterError(f"{where}: the revocation is not signed by the key that it ends")
    return Revocation(digest=key.digest.hex(), reason=reason, time=time, is_signed=True)


def check_reason(reason: Any) -> str:
    """Check the reason of a revocation: printable, so that a terminal can show it."""
    if not isinstance(reason, str) or not reason.strip() or not reason.isprintable():
        raise ParameterError("the reason of a revocation must be printable text")
    return reason


def _renewal_text(old: PublicIdentity, new: PublicIdentity, time: str) -> bytes:
    return f"{_RENEWAL}\n{old.to_text()}\n{new.to_text()}\n{time}\n".encode()


def _signed(facts: dict[str, Any]) -> bytes:
    return json.dumps(facts, sort_keys=True, separators=(",", ":")).encode()


def _read(text: str, kind: str, *, where: str) -> dict[str, Any]:
    try:
        facts = json.loads(text) if len(text) <= MAX_BYTES else None
    except (ValueError, RecursionError):
        facts = None
    if not isinstance(facts, dict) or facts.get("format") != kind:
        raise ParameterError(f"{where} must have format {kind!r}")
    return facts
