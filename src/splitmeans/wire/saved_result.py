"""A published result as bytes, for the journal."""

import json
from typing import Any

from splitmeans.errors import JournalError, ProtocolError
from splitmeans.wire.codec import decode, encode
from splitmeans.wire.messages import PublishedResult


def dump_result(noisy_count: int | None, result: PublishedResult) -> bytes:
    """Return a result with the user count that its plan follows from."""
    head = json.dumps(noisy_count).encode()
    return len(head).to_bytes(4, "little") + head + encode(result)


def load_result(data: bytes) -> tuple[int | None, PublishedResult]:
    """Return what `dump_result` stored."""
    end = 4 + int.from_bytes(data[:4], "little")
    try:
        noisy_count, result = json.loads(data[4:end]), decode(data[end:])
    except (ValueError, RecursionError, ProtocolError) as problem:
        raise JournalError("the stored result cannot be read") from problem
    if not isinstance(result, PublishedResult) or not is_count(noisy_count):
        raise JournalError("the stored result is not a result")
    return noisy_count, result


def is_count(value: Any) -> bool:
    """Whether a stored value can be a noisy count of users, or that there is none."""
    return value is None or (type(value) is int and abs(value) < 2**62)
