"""Messages as bytes and back: typed, versioned, checked before anything is allocated.

Layout: 4 bytes magic "SMW1", 4 bytes header length (little-endian), the header as canonical JSON,
then the raw bytes of all arrays in the order of the header (little-endian, C order). The header
names the message type by its tag and gives every field; an array field gives its dtype and shape. A
decoder accepts exactly the fields, dtypes and total length that the type declares, and nothing
else; after a release there may be zeros, so that its length tells nothing
(`splitmeans.plan.message_sizes`).
"""

import dataclasses
import functools
import json
import math
import mmap
import typing
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from splitmeans.errors import ProtocolError
from splitmeans.wire import messages
from splitmeans.wire.tags import tag_of

MAGIC = b"SMW1"
MAX_HEADER_BYTES = 64 * 1024
MAX_MESSAGE_BYTES = 2**33
MAX_DIMENSIONS = 2

_TYPES: dict[str, type] = {
    tag_of(kind): kind
    for union in (messages.Message, messages.MembershipMessage)
    for kind in typing.get_args(union)
}


def encode(message: Any) -> bytes:
    """Return the bytes of a message."""
    return b"".join(encoded_parts(message))


def encoded_parts(message: Any) -> Iterator[bytes | memoryview]:
    """Yield the bytes of a message part by part, the arrays as they are, without a copy."""
    arrays: list[npt.NDArray[Any]] = []
    header = _describe(message, arrays)
    text = _canonical(header)
    yield MAGIC + len(text).to_bytes(4, "little") + text
    for array in arrays:
        if array.size:
            yield array.data.cast("B")


def decode(data: bytes | mmap.mmap) -> Any:
    """Return the message that the bytes describe, or raise `ProtocolError`."""
    if len(data) > MAX_MESSAGE_BYTES:
        raise ProtocolError(f"message is larger than {MAX_MESSAGE_BYTES} bytes")
    if data[:4] != MAGIC:
        raise ProtocolError("message does not start with the mark of a splitmeans message")
    header_length = int.from_bytes(data[4:8], "little")
    if len(data) < 8 or header_length > min(MAX_HEADER_BYTES, len(data) - 8):
        raise ProtocolError("message header is truncated or too long")
    try:
        header = json.loads(data[8 : 8 + header_length])
    except (ValueError, RecursionError) as problem:
        raise ProtocolError("message header is not valid JSON") from problem
    body = memoryview(data)[8 + header_length :]
    message, rest = _rebuild(header, body, allowed=tuple(_TYPES.values()), where="message")
    if len(rest) and not isinstance(message, messages.PartyRelease):
        raise ProtocolError(f"message has {len(rest)} bytes too many")
    if np.frombuffer(rest, dtype=np.uint8).any():
        raise ProtocolError("the padding of a release must be zeros")
    # One message has one form of bytes: no repeated keys, no spaces, no other order.
    if _canonical(header) != data[8 : 8 + header_length]:
        raise ProtocolError("message header is not in canonical form")
    return message


def _canonical(header: dict[str, Any]) -> bytes:
    return json.dumps(header, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def _describe(message: Any, arrays: list[npt.NDArray[Any]]) -> dict[str, Any]:
    kind: type = type(message)
    if kind not in _TYPES.values():
        raise ProtocolError(f"{kind.__name__} is not a message type")
    fields: dict[str, Any] = {}
    for name, (_, dtype) in _fields(kind).items():
        value = getattr(message, name)
        if name in _optional(kind) and (value is None or np.size(value) == 0):
            continue
        if dtype is not None:
            array = np.ascontiguousarray(value, dtype=dtype)
            arrays.append(array)
            fields[name] = list(array.shape)
        elif isinstance(value, bytes):
            fields[name] = value.hex()
        elif dataclasses.is_dataclass(value):
            fields[name] = _describe(value, arrays)
        else:
            fields[name] = value
    return {"type": tag_of(kind), "fields": fields}


def _rebuild(
    header: Any, body: memoryview, *, allowed: tuple[type, ...], where: str
) -> tuple[Any, memoryview]:
    if not isinstance(header, dict) or set(header) != {"type", "fields"}:
        raise ProtocolError("message header must have a type and fields")
    kind = _TYPES.get(header["type"]) if isinstance(header["type"], str) else None
    if kind is None:
        raise ProtocolError("message type is unknown; is the sender a newer version?")
    # Before the fields are looked at: a message inside another must not hold a third one.
    if kind not in allowed:
        raise ProtocolError(f"{where} must not be a {tag_of(kind)}")
    declared = _fields(kind)
    fields = header["fields"]
    optional = _optional(kind)
    if not isinstance(fields, dict) or set(fields) | optional != set(declared):
        raise ProtocolError(f"{tag_of(kind)} must have exactly the fields {', '.join(declared)}")
    values: dict[str, Any] = {}
    for name, (hint, dtype) in declared.items():
        where = f"{tag_of(kind)}.{name}"
        if name not in fields:
            continue
        # One message has one form of bytes: nothing that is empty is there.
        if name in optional and fields[name] in ([0], ""):
            raise ProtocolError(f"{where} must be left out where it is empty")
        if dtype is not None:
            values[name], body = _read_array(fields[name], dtype, body, where=where)
        else:
            values[name], body = _read_field(fields[name], hint, body, where=where)
    return kind(**values), body


def _read_field(value: Any, hint: Any, body: memoryview, *, where: str) -> tuple[Any, memoryview]:
    if hint is bytes:
        return _read_hex(value, where=where), body
    options = typing.get_args(hint) or (hint,)
    if any(dataclasses.is_dataclass(option) for option in options):
        return _rebuild(value, body, allowed=options, where=where)
    if isinstance(value, bool) or not isinstance(value, options):
        raise ProtocolError(f"{where} has a value of the wrong type")
    if isinstance(value, int) and abs(value) >= 2**62:
        raise ProtocolError(f"{where} is not a number that any run can have")
    return value, body


def _read_array(
    shape: Any, dtype: np.dtype[Any], body: memoryview, *, where: str
) -> tuple[npt.NDArray[Any], memoryview]:
    is_shape = isinstance(shape, list) and 1 <= len(shape) <= MAX_DIMENSIONS
    # Beside a length of 0, another one could be beyond what any array can have.
    if not is_shape or not all(
        type(length) is int and 0 <= length <= MAX_MESSAGE_BYTES for length in shape
    ):
        raise ProtocolError(f"{where} must have a shape of one or two lengths")
    size = math.prod(shape) * dtype.itemsize
    if size > len(body):
        raise ProtocolError(f"{where} needs {size} bytes, the message has {len(body)} left")
    array = np.frombuffer(body[:size], dtype=dtype).reshape(shape)
    return array, body[size:]


def _read_hex(value: Any, *, where: str) -> bytes:
    try:
        data = bytes.fromhex(value)
    except (TypeError, ValueError) as problem:
        raise ProtocolError(f"{where} must be hexadecimal text") from problem
    if data.hex() != value:
        raise ProtocolError(f"{where} must be hexadecimal text in small letters, without spaces")
    return data


@functools.cache
def _optional(kind: type) -> frozenset[str]:
    """Return the fields that are left out where they are empty."""
    return frozenset(
        item.name for item in dataclasses.fields(kind) if item.metadata.get("optional")
    )


@functools.cache
def _fields(kind: type) -> dict[str, tuple[Any, np.dtype[Any] | None]]:
    """Return for each field its annotation and, for an array, its element type."""
    hints = typing.get_type_hints(kind)
    return {
        item.name: (hints[item.name], item.metadata.get("dtype"))
        for item in dataclasses.fields(kind)
    }
