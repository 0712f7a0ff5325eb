"""Changes of valid examples that stay close enough to valid to get past the first check.

A blind change of bytes breaks the JSON of a header long before it reaches what the header
describes. These change the tree that was parsed, or the numbers of an array, and put the rest
together again. A mutator takes bytes and a source of chance, and never fails.
"""

import contextlib
import io
import json
import random
import tomllib
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import tomli_w

from splitmeans.wire.codec import _TYPES, MAGIC, _fields

Mutator = Callable[[bytes, random.Random], bytes]

MAX_BYTES = 1 << 16

_ODD_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, 2, -1, 3, 16, 250, 251, 255, 256, 2**16, 2**31, 2**32, 2**53),
    *(2**62, 2**62 - 1, 2**63, -(2**63), 2**64, 10**30, 10**400, -(10**400)),
    *(0.0, -0.0, 0.5, 1e-300, 1e300, 1e308, -1e308, 5e-324, float("nan"), float("inf")),
    *("", "a", "é", "\ud800", "\0", "x" * 300, "1e9", "nan", "auto", "decoy", "sketch"),
    *("error", "midpoint", "00", "zz", "org0", "server", [], {}, [[]], [{}], [0], [0, 0], [1, 2]),
    *([None], ["a", "a"], {"a": 1}, [[[]]], [2**63], [0, 2**63], [2**31, 2**31]),
)
_ODD_TOML = (
    *(b"9" * 5000, b"0x" + b"f" * 5000, b"[" * 5000, b"[0x" + b"f" * 5000 + b"]", b"1979-05-27"),
    *(b"{a=" * 2000, b"nan", b"-inf", b"07:32:00", b"1e999", b'"\\ud800"', b'"\\u0000"'),
)
_ODD_BYTES = (
    *(b"\0" * 8, b"\xff" * 8, b"\xff" * 7 + b"\x7f", b"\0" * 7 + b"\x80", b"\0" * 6 + b"\xf0\x7f"),
    *(b"\0" * 6 + b"\xf8\x7f", b"\xff" * 6 + b"\xef\x7f", b"\xff" * 6 + b"\xef\xff"),
    *(b"\1" + b"\0" * 7, b"\0\0", b"\xff\xff", b"\1\0", b"\0", b"\xff", b"\x80", b"\2", b"\xfa"),
)


def change_bytes(data: bytes, rng: random.Random) -> bytes:
    """Flip, set, cut, repeat or insert bytes."""
    buffer = bytearray(data or b"\0")
    for _ in range(rng.choice((1, 1, 1, 2, 4, 16))):
        place = rng.randrange(len(buffer))
        match rng.randrange(7):
            case 0:
                buffer[place] ^= 1 << rng.randrange(8)
            case 1:
                buffer[place] = rng.randrange(256)
            case 2:
                buffer[place:] = b""
            case 3:
                length = rng.randrange(1, 33)
                del buffer[place : place + length]
            case 4:
                piece = buffer[place : place + rng.randrange(1, 65)]
                buffer[place:place] = piece * rng.choice((1, 2, 50))
            case 5:
                odd = rng.choice(_ODD_BYTES)
                buffer[place : place + len(odd)] = odd
            case 6:
                buffer[place:place] = rng.choice(_ODD_BYTES)
        buffer = buffer[:MAX_BYTES] or bytearray(b"\0")
    return bytes(buffer)


def change_tree(value: Any, rng: random.Random) -> Any:
    """Return parsed JSON with one place changed."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice(list(value))
        if rng.random() < 0.06:
            return {name: item for name, item in value.items() if name != key}
        if rng.random() < 0.04:
            return value | {rng.choice(("extra", "low", "format", "")): rng.choice(_ODD_VALUES)}
        return value | {key: change_tree(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.85:
        place = rng.randrange(len(value))
        match rng.randrange(8):
            case 0:
                return value[:place] + value[place + 1 :]
            case 1:
                return value[:place] + [value[place]] * rng.choice((2, 3, 20)) + value[place:]
        return [*value[:place], change_tree(value[place], rng), *value[place + 1 :]]
    if isinstance(value, int | float) and not isinstance(value, bool) and rng.random() < 0.5:
        with contextlib.suppress(OverflowError, ValueError):
            return rng.choice((value + 1, value - 1, -value, value * 2, value * 1000, value / 3))
    if isinstance(value, str) and rng.random() < 0.3:
        return change_bytes(value.encode(errors="replace"), rng).decode(errors="replace")
    return rng.choice(_ODD_VALUES)


def json_text(data: bytes, rng: random.Random) -> bytes:
    """Change one place of a JSON text."""
    try:
        tree = json.loads(data)
    except (ValueError, RecursionError):
        return change_bytes(data, rng)
    return json.dumps(change_tree(tree, rng)).encode()


def study_toml(data: bytes, rng: random.Random) -> bytes:
    """Change one place of a TOML text: of its tree, or a value to what no tree can hold."""
    if rng.random() < 0.2:
        before, equals, after = data.partition(b" = ")
        for _ in range(rng.randrange(20)):
            more, sign, rest = after.partition(b" = ")
            if sign:
                before, after = before + equals + more, rest
        return before + equals + rng.choice(_ODD_TOML) + after[after.find(b"\n") :]
    try:
        tree = change_tree(tomllib.loads(data.decode()), rng)
        return tomli_w.dumps(tree).encode()
    except (ValueError, TypeError, AttributeError, RecursionError, OverflowError):
        return change_bytes(data, rng)


def message(data: bytes, rng: random.Random) -> bytes:
    """Change a message: a field of its header, the shape of an array, or numbers in one."""
    start = data.find(MAGIC)
    if start < 0 or rng.random() < 0.1:
        return change_bytes(data, rng)
    prefix, rest = data[:start], data[start:]
    length = int.from_bytes(rest[4:8], "little")
    try:
        header = json.loads(rest[8 : 8 + length])
        arrays = _arrays(header)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return change_bytes(data, rng)
    body, pieces = rest[8 + length :], []
    for fields, name, item_size in arrays:
        size = _size(fields[name]) * item_size
        pieces.append(body[:size])
        body = body[size:]
    match rng.randrange(6):
        case 0:
            prefix = change_bytes(prefix, rng)[: len(prefix)].ljust(len(prefix), b"\0")
        case 1:
            header = change_tree(header, rng)
        case 2 | 3 if arrays:
            which = rng.randrange(len(arrays))
            fields, name, item_size = arrays[which]
            fields[name] = _another_shape(fields[name], rng)
            size = min(_size(fields[name]) * item_size, MAX_BYTES)
            filling = pieces[which] or rng.choice(_ODD_BYTES)
            pieces[which] = (filling * (size // len(filling) + 1))[:size]
        case _ if arrays:
            which = rng.randrange(len(arrays))
            pieces[which] = _another_content(pieces[which], arrays[which][2], rng)
    text = json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
    return prefix + MAGIC + len(text).to_bytes(4, "little") + text + b"".join(pieces) + body


def _arrays(header: Any) -> list[tuple[dict[str, Any], str, int]]:
    """Return where the shapes of a header's arrays are, and the size of an element."""
    found: list[tuple[dict[str, Any], str, int]] = []
    fields = header["fields"]
    for name, (_, dtype) in _fields(_TYPES[header["type"]]).items():
        if dtype is not None and isinstance(fields[name], list):
            found.append((fields, name, dtype.itemsize))
        elif isinstance(fields[name], dict):
            found += _arrays(fields[name])
    return found


def _size(shape: list[Any]) -> int:
    size = 1
    for length in shape:
        size *= length if isinstance(length, int) and 0 <= length <= MAX_BYTES else 0
    return min(size, MAX_BYTES)


def _another_shape(shape: list[Any], rng: random.Random) -> list[Any]:
    changed = list(shape) or [1]
    place = rng.randrange(len(changed))
    match rng.randrange(5):
        case 0:
            changed[place] = rng.choice((0, 1, 2, 3, 4, 8, 300, 2**31, 2**62, 2**63))
        case 1:
            changed.reverse()
        case 2:
            changed = changed[:1] if len(changed) == 2 else [*changed, rng.choice((0, 1, 2))]
        case _:
            old = changed[place]
            if isinstance(old, int):
                changed[place] = max(0, old + rng.choice((-1, 1, -8, 8, old)))
    return changed


def _another_content(piece: bytes, item_size: int, rng: random.Random) -> bytes:
    """Set some elements, or all of them, to values at the edge of their type."""
    if not piece:
        return piece
    buffer = bytearray(piece)
    if rng.random() < 0.15:
        odd = rng.choice(_ODD_BYTES)[:item_size].ljust(item_size, b"\0")
        return (odd * (len(buffer) // item_size + 1))[: len(buffer)]
    for _ in range(rng.choice((1, 1, 2, 8, 64))):
        place = rng.randrange(len(buffer)) // item_size * item_size
        odd = rng.choice((*_ODD_BYTES, rng.randbytes(item_size)))[:item_size]
        buffer[place : place + len(odd)] = odd
    return bytes(buffer[: len(piece)])


def after_first_byte(inner: Mutator) -> Mutator:
    """Keep the first byte, which picks a mode, most of the time."""

    def mutate(data: bytes, rng: random.Random) -> bytes:
        if not data or rng.random() < 0.05:
            return change_bytes(data, rng)
        return data[:1] + inner(data[1:], rng)

    return mutate


def saved_result(data: bytes, rng: random.Random) -> bytes:
    """Change the head or the message of a stored result."""
    if rng.random() < 0.3:
        head = json.dumps(rng.choice(_ODD_VALUES)).encode()
        end = 4 + int.from_bytes(data[:4], "little")
        return len(head).to_bytes(4, "little") + head + data[end:]
    return message(data, rng)


def saved_state(data: bytes, rng: random.Random) -> bytes:
    """Change a stored state, which is JSON or a stored result."""
    return saved_result(data, rng) if MAGIC in data else json_text(data, rng)


def same_size(data: bytes, rng: random.Random) -> bytes:
    """Change bytes in place; for files with offsets."""
    if rng.random() < 0.2:
        return change_bytes(data, rng)
    buffer = bytearray(data or b"\0")
    for _ in range(rng.choice((1, 1, 2, 4, 8))):
        # Headers and footers decide most; data pages come first and are long.
        near_end = rng.random() < 0.5
        place = max(0, len(buffer) - 1 - rng.randrange(600)) if near_end else 0
        place = place or rng.randrange(len(buffer))
        if rng.random() < 0.5:
            buffer[place] ^= 1 << rng.randrange(8)
        else:
            odd = rng.choice(_ODD_BYTES)
            buffer[place : place + len(odd)] = odd
    return bytes(buffer[: len(data) or 1])


def synopsis(data: bytes, rng: random.Random) -> bytes:
    """Change the header of a synopsis or one of its columns, and write the file anew."""
    if rng.random() < 0.3:
        return same_size(data, rng)
    try:
        table = pq.ParquetFile(io.BytesIO(data)).read()
        metadata = table.schema.metadata or {}
        key = next(iter(metadata))
        if rng.random() < 0.7:
            table = table.replace_schema_metadata({key: json_text(metadata[key], rng)})
        else:
            place = rng.randrange(table.num_columns)
            odd = rng.choice((float("nan"), 1e308, -1e308, -1.0, 2**40, "a", None, 0, 5e-324))
            column = [odd] * table.num_rows if rng.random() < 0.5 else [odd, odd]
            table = table.set_column(place, rng.choice(("weight", "x")), pa.array(column))
        sink = io.BytesIO()
        pq.write_table(table, sink)
    except (pa.ArrowException, OSError, ValueError, StopIteration, OverflowError, TypeError):
        return same_size(data, rng)
    return sink.getvalue()


MUTATORS: dict[str, Mutator] = {
    "codec": message,
    "sealed": change_bytes,
    "identity": change_bytes,
    "key_file": json_text,
    "saved_result": saved_result,
    "saved_state": after_first_byte(saved_state),
    "study_toml": study_toml,
    "study_mapping": json_text,
    "plan": json_text,
    "message_path": change_bytes,
    "request": change_bytes,
    "synopsis": synopsis,
    "release": message,
    "result": message,
    "server_step": message,
    "party_step": message,
    "source_csv": change_bytes,
    "source_parquet": same_size,
    "source_arrow": same_size,
}
