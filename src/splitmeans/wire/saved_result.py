"""A published result as bytes, for the journal."""

import json

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
    except (ValueError, ProtocolError) as problem:
        raise JournalError("the stored result cannot be read") from problem
    if not isinstance(result, PublishedResult):
        raise JournalError("the stored result is not a result")
    return noisy_count, result
