"""Sealed messages: bytes that one participant can read, signed by one other, for one slot.

The payload is encrypted to a key of the receiver, then everything is signed by the sender.
Encryption and signature both cover the whole slot, the public identities of both sides and a digest
of the key, so a message opens in no other study, run, place or direction. The digest is in the
header: whether a message is signed can be told without the key, which may be of a run that somebody
has forgotten. The version byte fixes every algorithm; nothing is negotiated. All fields have fixed
places and sizes except the ciphertext, which is the rest. Layout: docs/reference/wire.md.
"""

import hashlib

from cryptography.exceptions import InvalidTag

from splitmeans.errors import MessageRefused, OtherRunKey, ParameterError
from splitmeans.wire.identity import SIGNATURE_BYTES, Identity, PublicIdentity
from splitmeans.wire.sealing import SEAL_BYTES, SEALING_DIGEST_BYTES, OpeningKey, SealingKey
from splitmeans.wire.slot import Slot

MAGIC = b"SMSE"
VERSION = 2
MAX_PAYLOAD_BYTES = 2**31 - 1  # what one call of the cipher can take

_INFO = b"splitmeans sealed message 2\0"
_SIGNED = b"splitmeans sealed signature 2\0"
_MARK = b"splitmeans slot mark 1\0"
_MARK_BYTES = 16
_LENGTH_AT = len(MAGIC) + 1
_MARKS_AT = _LENGTH_AT + 8
_PARTS = ("study", "run", "sender", "receiver", "kind", "sender's key", "receiver's key")
_DIGEST_AT = _MARKS_AT + len(_PARTS) * _MARK_BYTES
_HEADER_BYTES = _DIGEST_AT + SEALING_DIGEST_BYTES

OVERHEAD_BYTES = _HEADER_BYTES + SEAL_BYTES + SIGNATURE_BYTES
"""How much longer a sealed message is than its payload, always."""


def seal(
    payload: bytes, *, slot: Slot, sender: Identity, receiver: PublicIdentity, to: SealingKey
) -> bytes:
    """Return the payload encrypted to a key of the receiver and signed by the sender, for a slot.

    Sealing the same payload again gives other bytes; store what was sent and resend that (R11).

    The sender is the own identity, the receiver the pinned one of `slot.receiver`. `to` is the
    receiver's key of this run, or the one of its identity before that is known.
    """
    if len(payload) > MAX_PAYLOAD_BYTES:
        raise ParameterError(
            f"payload must have at most {MAX_PAYLOAD_BYTES} bytes, got {len(payload)}"
        )
    info = _info(slot, sender=sender.public, receiver=receiver, sealed_to=to.digest)
    length = (len(payload) + OVERHEAD_BYTES).to_bytes(8, "little")
    marks = b"".join(_marks(slot, sender=sender.public, receiver=receiver))
    header = MAGIC + bytes([VERSION]) + length + marks + to.digest
    ciphertext = to.encrypt(payload, info=info)
    signature = sender.sign(_to_sign(info, header, ciphertext))
    return b"".join([header, ciphertext, signature])


def open_sealed(
    data: bytes,
    *,
    slot: Slot,
    sender: PublicIdentity,
    receiver: PublicIdentity,
    opener: OpeningKey,
    max_bytes: int,
) -> bytes:
    """Return the payload of a sealed message, or raise `MessageRefused`.

    Nothing is decrypted before the signature has been found good, and nothing is copied or
    allocated before the size has.

    The sender is the pinned identity of `slot.sender`, the receiver the own one; `opener` is the
    own key that messages in this slot are sealed to. `max_bytes` is the largest payload plus
    `OVERHEAD_BYTES`.

    Raises:
        OtherRunKey: The sender signed it, and sealed it to another key.
    """
    check_signed(data, slot=slot, sender=sender, receiver=receiver, max_bytes=max_bytes)
    view = memoryview(data)
    sealed_to = bytes(view[_DIGEST_AT:_HEADER_BYTES])
    if sealed_to != opener.public.digest:
        raise OtherRunKey(_words(slot, "it is signed, but sealed to a key that is not here"))
    info = _info(slot, sender=sender, receiver=receiver, sealed_to=sealed_to)
    try:
        return opener.decrypt(view[_HEADER_BYTES:-SIGNATURE_BYTES], info=info)
    except (InvalidTag, ValueError):
        raise _refused(slot, "it is signed, but not sealed to the key that it names") from None


def check_signed(
    data: bytes, *, slot: Slot, sender: PublicIdentity, receiver: PublicIdentity, max_bytes: int
) -> None:
    """Raise `MessageRefused` unless the sender made these bytes for this slot and receiver.

    Anyone with the public identities can tell; what is inside stays sealed. For the arguments see
    `open_sealed`.
    """
    _check_frame(data, slot, max_bytes=max_bytes)
    view = memoryview(data)
    marks = _marks(slot, sender=sender, receiver=receiver)
    for place, (part, mark) in enumerate(zip(_PARTS, marks, strict=True)):
        start = _MARKS_AT + place * _MARK_BYTES
        if view[start : start + _MARK_BYTES] != mark:
            raise _refused(slot, f"its {part} is not the one expected here")
    sealed_to = bytes(view[_DIGEST_AT:_HEADER_BYTES])
    info = _info(slot, sender=sender, receiver=receiver, sealed_to=sealed_to)
    header, ciphertext = view[:_HEADER_BYTES], view[_HEADER_BYTES:-SIGNATURE_BYTES]
    if not sender.verify(_to_sign(info, header, ciphertext), bytes(view[-SIGNATURE_BYTES:])):
        raise _refused(slot, "its signature is wrong; it was damaged or forged")


def other_version(data: bytes) -> int | None:
    """Return the version of a sealed message that has another one than is read here, else None."""
    is_sealed = len(data) > len(MAGIC) and data[: len(MAGIC)] == MAGIC
    return data[len(MAGIC)] if is_sealed and data[len(MAGIC)] != VERSION else None


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


def _info(
    slot: Slot, *, sender: PublicIdentity, receiver: PublicIdentity, sealed_to: bytes
) -> bytes:
    """Return what the message is bound to; each part has a known or stated length."""
    keys = sender.signing + sender.sealing + receiver.signing + receiver.sealing
    return _INFO + slot.text + keys + sealed_to


def _to_sign(info: bytes, header: bytes | memoryview, ciphertext: bytes | memoryview) -> bytes:
    """Return what is signed: a digest, so that a large message is read once and not copied."""
    digest = hashlib.sha256(len(info).to_bytes(8, "little"))
    for part in (info, header, ciphertext):
        digest.update(part)
    return _SIGNED + digest.digest()


def _refused(slot: Slot, reason: str) -> MessageRefused:
    return MessageRefused(_words(slot, reason))


def _words(slot: Slot, reason: str) -> str:
    return f"{slot.kind} from {slot.sender!r} in run {slot.run!r} refused: {reason}"
