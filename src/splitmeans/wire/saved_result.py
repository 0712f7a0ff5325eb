"""A published result as bytes, for the journal."""

import json
from typing import Any

from splitmeans.errors import JournalError, ProtocolError
from splitmeans.wire.codec import decode, encode
from splitmeans.wire.messages import PublishedResult

# For each stage, for each of its parties, the values that it released.
_Released = tuple[tuple[tuple[int, ...], ...], ...]


def dump_result(released: _Released, result: PublishedResult) -> bytes:
    """Return a result with the released values that its plan follows from."""
    head = json.dumps(released).encode()
    return len(head).to_bytes(4, "little") + head + encode(result)


def load_result(data: bytes) -> tuple[_Released, PublishedResult]:
    """Return what `dump_result` stored."""
    end = 4 + int.from_bytes(data[:4], "little")
    try:
        released, result = read_values(json.loads(data[4:end])), decode(data[end:])
    except (ValueError, RecursionError, ProtocolError) as problem:
        raise JournalError("the stored result cannot be read") from problem
    if not isinstance(result, PublishedResult):
        raise JournalError("the stored result is not a result")
    return released, result


def read_values(stored: Any) -> _Released:
    """Return released values that were stored as lists.

    Raises:
        ValueError: They are something else.
    """
    return tuple(
        tuple(tuple(_whole(value) for value in _list(party)) for party in _list(stage))
        for stage in _list(stored)
    )


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError("released values must be lists")
    return value


def _whole(value: Any) -> int:
    if type(value) is not int or abs(value) >= 2**62:
        raise ValueError("released values must be whole numbers")
    return value
