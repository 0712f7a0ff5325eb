"""SipHash-2-4 (Aumasson and Bernstein, 2012) as a keyed hash of ids and as a counter-mode PRF.

Ids are hashed to 128 bits straight from Arrow's string buffers. An id's 128 bits then serve as the
key of a stream of 64-bit words: word c of the stream is the hash of the counter c. Words are
little-endian, as in the reference, so results do not depend on the machine.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from splitmeans._types import IntArray, WordArray
from splitmeans.errors import ParameterError
from splitmeans.kernels.compiled import kernel
from splitmeans.kernels.row_numbers import RowNumbers

# All operands are np.uint64: a mix with signed integers would turn into floats in numba.
_Word = np.uint64
# The reference's start values: the ASCII text "somepseudorandomlygeneratedbytes".
_INIT0 = _Word(0x736F6D6570736575)
_INIT1 = _Word(0x646F72616E646F6D)
_INIT2 = _Word(0x6C7967656E657261)
_INIT3 = _Word(0x7465646279746573)
_EE = _Word(0xEE)
_DD = _Word(0xDD)
_FF = _Word(0xFF)
_56 = _Word(56)
_64 = _Word(64)
# The length byte of an 8-byte message, at the top of its last block.
_EIGHT_BYTES = _Word(8 << 56)


def hash_ids(key: bytes, ids: "pa.StringArray | pa.LargeStringArray | RowNumbers") -> WordArray:
    """Hash every id under a 16-byte key.

    Args:
        key: The 128-bit key.
        ids: Strings without nulls (already validated), possibly a slice of a longer array; or row
            numbers of a simulation, which have tags of their own.

    Returns:
        Shape (n, 2): the first and the last 64 bits of each 128-bit hash.
    """
    if len(key) != 16:
        raise ParameterError(f"key must have 16 bytes, got {len(key)}")
    if isinstance(ids, RowNumbers):
        return ids.tags(key)
    data, offsets = string_buffers(ids)
    out = np.empty((len(ids), 2), dtype=np.uint64)
    first, second = np.frombuffer(key, dtype="<u8").astype(np.uint64)
    # Additions wrap by design; NumPy warns of it when the kernels run uncompiled (for coverage).
    with np.errstate(over="ignore"):
        _hash_strings(first, second, data, offsets, out)
    return out


def string_buffers(ids: "pa.Array") -> tuple[npt.NDArray[np.uint8], IntArray]:
    """Return the bytes of all strings, and where each string starts and ends, shape (n + 1,)."""
    if isinstance(ids, pa.Array) and pa.types.is_string(ids.type):
        width = 4
    elif isinstance(ids, pa.Array) and pa.types.is_large_string(ids.type):
        width = 8
    else:
        found = getattr(ids, "type", type(ids).__name__)
        raise ParameterError(f"ids must be an Arrow string or large_string array, got {found}")
    _, ends, data = ids.buffers()
    empty = np.zeros(0, dtype=np.uint8)
    # Arrow may leave out the buffers of an array that has no rows or only empty strings.
    if len(ids) == 0:
        offsets = np.zeros(1, dtype=np.int64)
    else:
        start = ids.offset * width
        stored = np.frombuffer(ends, dtype=f"i{width}", count=len(ids) + 1, offset=start)
        offsets = stored.astype(np.int64)
    view = np.frombuffer(data, dtype=np.uint8) if data is not None and data.size else empty
    # Read-only whatever the source, so that the kernel is compiled for one type only.
    view.setflags(write=False)
    return view, offsets


@kernel
def prf_word(key0, key1, counter):  # type: ignore[no-untyped-def]
    """Return word `counter` of the stream under (key0, key1): SipHash-2-4 of its 8 bytes."""
    v0, v1, v2, v3 = key0 ^ _INIT0, key1 ^ _INIT1, key0 ^ _INIT2, key1 ^ _INIT3
    v0, v1, v2, v3 = _absorb(v0, v1, v2, v3, counter)
    v0, v1, v2, v3 = _absorb(v0, v1, v2, v3, _EIGHT_BYTES)
    v0, v1, v2, v3 = _four_rounds(v0, v1, v2 ^ _FF, v3)
    return v0 ^ v1 ^ v2 ^ v3


@kernel
def _hash_strings(key0, key1, data, offsets, out):  # type: ignore[no-untyped-def]
    """OUT `out` (n, 2): SipHash-2-4 with 128-bit output of data[offsets[i]:offsets[i + 1]]."""
    for i in range(offsets.size - 1):
        length = offsets[i + 1] - offsets[i]
        tail = offsets[i] + (length >> 3 << 3)
        v0, v1, v2, v3 = key0 ^ _INIT0, key1 ^ _INIT1 ^ _EE, key0 ^ _INIT2, key1 ^ _INIT3
        for position in range(offsets[i], tail, 8):
            # A loop of fixed length compiles to one load.
            block = _Word(0)
            for byte in range(8):
                block |= _Word(data[position + byte]) << _Word(8 * byte)
            v0, v1, v2, v3 = _absorb(v0, v1, v2, v3, block)
        # The last block is what is left, at most 7 bytes, and the length modulo 256 on top.
        block = _Word(length & 255) << _56
        for byte in range(length & 7):
            block |= _Word(data[tail + byte]) << _Word(8 * byte)
        v0, v1, v2, v3 = _absorb(v0, v1, v2, v3, block)
        v0, v1, v2, v3 = _four_rounds(v0, v1, v2 ^ _EE, v3)
        out[i, 0] = v0 ^ v1 ^ v2 ^ v3
        v0, v1, v2, v3 = _four_rounds(v0, v1 ^ _DD, v2, v3)
        out[i, 1] = v0 ^ v1 ^ v2 ^ v3


@kernel
def _absorb(v0, v1, v2, v3, block):  # type: ignore[no-untyped-def]
    v0, v1, v2, v3 = _round(v0, v1, v2, v3 ^ block)
    v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    return v0 ^ block, v1, v2, v3


@kernel
def _four_rounds(v0, v1, v2, v3):  # type: ignore[no-untyped-def]
    for _ in range(4):
        v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    return v0, v1, v2, v3


@kernel
def _round(v0, v1, v2, v3):  # type: ignore[no-untyped-def]
    v0 = v0 + v1
    v2 = v2 + v3
    v1 = _rotate(v1, _Word(13)) ^ v0
    v3 = _rotate(v3, _Word(16)) ^ v2
    v0 = _rotate(v0, _Word(32))
    v2 = v2 + v1
    v0 = v0 + v3
    v1 = _rotate(v1, _Word(17)) ^ v2
    v3 = _rotate(v3, _Word(21)) ^ v0
    v2 = _rotate(v2, _Word(32))
    return v0, v1, v2, v3


@kernel
def _rotate(word, bits):  # type: ignore[no-untyped-def]
    return (word << bits) | (word >> (_64 - bits))
