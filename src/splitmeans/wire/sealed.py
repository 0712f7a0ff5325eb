"""Sealed messages: bytes that one participant can read, signed by one other, for one slot.

The payload is encrypted to the receiver, then everything is signed by the sender. Encryption and
signature both cover the whole slot and the public identities of both sides, so a message opens in
no other study, run, place or direction. The version byte fixes every algorithm; nothing is
negotiated. All fields have fixed places and sizes except the ciphertext, which is the rest.
Layout: docs/reference/wire.md.
"""

import hashlib

from cryptography.exceptions import InvalidTag

from splitmeans.errors import MessageRefused, ParameterError
from splitmeans.wire.identity import SEAL_BYTES, SIGNATURE_BYTES, Identity, PublicIdentity
from splitmeans.wire.slot import Slot

MAGIC = b"SMSE"
VERSION = 1
MAX_PAYLOAD_BYTES = 2**31 - 1  # what one call of the cipher can take

_INFO = b"splitmeans sealed message 1\0"
_SIGNED = b"splitmeans sealed signature 1\0"
_MARK = b"splitmeans slot mark 1\0"
_MARK_BYTES = 16
_LENGTH_AT = len(MAGIC) + 1
_MARKS_AT = _LENGTH_AT + 8
_PARTS = ("study", "run", "sender", "receiver", "kind", "sender's key", "receiver's key")
_HEADER_BYTES = _MARKS_AT + len(_PARTS) * _MARK_BYTES

OVERHEAD_BYTES = _HEADER_BYTES + SEAL_BYTES + SIGNATURE_BYTES
"""How much longer a sealed message is than its payload, always."""


def seal(payload: bytes, *, slot: Slot, sender: Identity, receiver: PublicIdentity) -> bytes:
    """Return the payload encrypted to the receiver and signed by the sender, for this slot.

    Sealing the same payload again gives other bytes; store what was sent and resend that (R11).
    """
    if len(payload) > MAX_PAYLOAD_BYTES:
        raise ParameterError(
            f"payload must have at most {MAX_PAYLOAD_BYTES} bytes, got {len(payload)}"
        )
    info = _info(slot, sender=sender.public, receiver=receiver)
    length = (len(payload) + OVERHEAD_BYTES).to_bytes(8, "little")
    marks = b"".join(_marks(slot, sender=sender.public, receiver=receiver))
    header = MAGIC + bytes([VERSION]) + length + marks
    ciphertext = receiver.encrypt(payload, info=info)
    signature = sender.sign(_to_sign(info, header, ciphertext))
    return b"".join([header, ciphertext, signature])


def open_sealed(
    data: bytes, *, slot: Slot, sender: PublicIdentity, receiver: Identity, max_bytes: int
) -> bytes:
    """Return the payload of a sealed message, or raise `MessageRefused`.

    Nothing is decrypted before the signature has been found good, and nothing is copied or
    allocated before the size has.

    Args:
        data: What was received.
        slot: The slot that the receiver expects a message in.
        sender: Pinned identity of `slot.sender`.
        receiver: Own identity.
        max_bytes: Largest `data` to accept: the largest payload plus `OVERHEAD_BYTES`.
    """
    check_signed(data, slot=slot, sender=sender, receiver=receiver.public, max_bytes=max_bytes)
    ciphertext = memoryview(data)[_HEADER_BYTES:-SIGNATURE_BYTES]
    info = _info(slot, sender=sender, receiver=receiver.public)
    try:
        return receiver.decrypt(ciphertext, info=info)
    except (InvalidTag, ValueError):
        raise _refused(slot, "it is signed, but not sealed to this receiver's key") from None


def check_signed(
    data: bytes, *, slot: Slot, sender: PublicIdentity, receiver: PublicIdentity, max_bytes: int
) -> None:
    """Raise `MessageRefused` unless the sender made these bytes for this slot and receiver.

    Anyone with the public keys can tell; what is inside stays sealed. For the arguments see
    `open_sealed`.
    """
    _check_frame(data, slot, max_bytes=max_bytes)
    view = memoryview(data)
    marks = _marks(slot, sender=sender, receiver=receiver)
    for place, (part, mark) in enumerate(zip(_PARTS, marks, strict=True)):
        start = _MARKS_AT + place * _MARK_BYTES
        if view[start : start + _MARK_BYTES] != mark:
            raise _refused(slot, f"its {part} is not the one expected here")
    info = _info(slot, sender=sender, receiver=receiver)
    header, ciphertext = view[:_HEADER_BYTES], view[_HEADER_BYTES:-SIGNATURE_BYTES]
    if not sender.verify(_to_sign(info, header, ciphertext), bytes(view[-SIGNATURE_BYTES:])):
        raise _refused(slot, "its signature is wrong; it was damaged or forged")


def _check_frame(data: bytes, slot: Slot, *, max_bytes: int) -> None:
    """Check size, magic, version and length, in this order."""
    limit = min(max_bytes, MAX_PAYLOAD_BYTES + OVERHEAD_BYTES)
    if len(data) > limit:
        raise _refused(slot, f"it has {len(data)} bytes, at most {limit} are allowed")
    if data[: len(MAGIC)] != MAGIC[: len(data)]:
        raise _refused(slot, "it does not start with the mark of a sealed splitmeans message")
    if len(data) > len(MAGIC) and data[len(MAGIC)] != VERSION:
        version = data[len(MAGIC)]
        age = "older; the sender must update" if version < VERSION else "newer; update splitmeans"
        raise _refused(slot, f"it has version {version}, only {VERSION} is read: {age}")
    if len(data) < OVERHEAD_BYTES:
        raise _refused(slot, f"it is cut off after {len(data)} bytes")
    length = int.from_bytes(data[_LENGTH_AT:_MARKS_AT], "little")
    if length != len(data):
        raise _refused(slot, f"it has {len(data)} bytes and says {length}; is it cut off?")


def _marks(slot: Slot, *, sender: PublicIdentity, receiver: PublicIdentity) -> list[bytes]:
    """Return a short digest of each part, so that a refusal can name the part that differs.

    Digests have a fixed size and do not show participants' names to those who carry the message.
    They bind nothing; `_info` does.
    """
    parts = [slot.study_hash, slot.run, slot.sender, slot.receiver, slot.kind]
    values = [*(part.encode() for part in parts), sender.digest, receiver.digest]
    return [
        hashlib.sha256(_MARK + name.encode() + b"\0" + value).digest()[:_MARK_BYTES]
        for name, value in zip(_PARTS, values, strict=True)
    ]


def _info(slot: Slot, *, sender: PublicIdentity, receiver: PublicIdentity) -> bytes:
    """Return what the message is bound to; each part has a known or stated length."""
    keys = sender.signing + sender.sealing + receiver.signing + receiver.sealing
    return _INFO + slot.text + keys


def _to_sign(info: bytes, header: bytes | memoryview, ciphertext: bytes | memoryview) -> bytes:
    """Return what is signed: a digest, so that a large message is read once and not copied."""
    digest = hashlib.sha256(len(info).to_bytes(8, "little"))
    for part in (info, header, ciphertext):
        digest.update(part)
    return _SIGNED + digest.digest()


def _refused(slot: Slot, reason: str) -> MessageRefused:
    return MessageRefused(f"{slot.kind} from {slot.sender!r} in run {slot.run!r} refused: {reason}")
