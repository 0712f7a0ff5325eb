"""A hash of a set that needs no order: the sum of one long pseudorandom number for each id.

An id's number has 4,096 bits: the first 512 bytes of keyed BLAKE3 (O'Connor, Aumasson, Neves,
Wilcox-O'Hearn 2020), whose output is as long as one asks for. The sum is of whole numbers, without
a modulus, so parts of a set may be added up anywhere and in any order. Why 4,096 bits:
docs/concepts/guarantee.md, "Comparing users".

Ids are hashed many at a time, one in each lane, word by word as the reference describes it. All of
an id is one chunk: up to 1,024 bytes that is BLAKE3 itself, and longer ids go on with the chain
where BLAKE3 would begin a tree.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from splitmeans._types import WordArray
from splitmeans.errors import ParameterError
from splitmeans.kernels.compiled import kernel
from splitmeans.kernels.siphash import string_buffers

KEY_BYTES = 32
NUMBER_BITS = 4096

_Half = np.uint32
_Word = np.uint64
_LIMB_BITS = 32
_LIMBS = NUMBER_BITS // _LIMB_BITS
# One compression gives 64 bytes, 16 limbs; all of them together the number.
_BLOCK_BYTES = 64
_BLOCK_LIMBS = 16
_BLOCKS = _LIMBS // _BLOCK_LIMBS
# Lanes: enough for the widest vectors of a processor, few enough for its first cache.
_LANES = 64
_ROUNDS = 7
_START, _END, _ROOT, _KEYED = 1, 2, 8, 16
# The reference's constants: start values, and how message words move between rounds.
_INIT = np.array([0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A], dtype=np.uint32)
_MOVES = [2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8]


def _message_rows() -> WordArray:
    """Return where each round finds its 16 message words in an array of lanes."""
    orders = [np.arange(_BLOCK_LIMBS)]
    for _ in range(_ROUNDS - 1):
        orders.append(orders[-1][_MOVES])
    return (np.array(orders) * _LANES).astype(np.uint64)


_ROWS = _message_rows()


def number_sum(key: bytes, ids: "pa.StringArray | pa.LargeStringArray") -> int:
    """Return the sum of the numbers of all ids under a 32-byte key.

    Args:
        key: The key; other keys have numbers that have nothing to do with these.
        ids: Strings without nulls, possibly a slice of a longer array, at most 2^31 of them.
    """
    if len(key) != KEY_BYTES:
        raise ParameterError(f"key must have {KEY_BYTES} bytes, got {len(key)}")
    data, offsets = string_buffers(ids)
    # Sums of 32-bit limbs, which 64 bits hold; carries are left to Python's integers.
    totals = np.zeros((_LIMBS, _LANES), dtype=np.uint64)
    words = np.frombuffer(key, dtype="<u4").astype(np.uint32)
    # Additions wrap by design; NumPy warns of it when the kernels run uncompiled (for coverage).
    with np.errstate(over="ignore"):
        _add_numbers(words, data, offsets, _ROWS, _INIT, *_scratch(), totals)
    limbs = totals.sum(axis=1, dtype=np.uint64)
    low, high = limbs.astype("<u4"), (limbs >> _Word(_LIMB_BITS)).astype("<u4")
    return int.from_bytes(low.tobytes(), "little") + (
        int.from_bytes(high.tobytes(), "little") << _LIMB_BITS
    )


def _scratch() -> tuple[npt.NDArray[Any], ...]:
    """Return room for message, state and chain of all lanes, for places, lengths and flags."""
    words = (np.zeros(rows * _LANES, dtype=np.uint32) for rows in (_BLOCK_LIMBS, _BLOCK_LIMBS, 8))
    places = np.zeros((2, _LANES), dtype=np.int64)
    return *words, *places, np.zeros(_LANES, dtype=np.uint32)


@kernel
def _add_numbers(  # type: ignore[no-untyped-def]
    key, data, offsets, rows, init, message, state, chain, starts, left, flags, totals
):
    """OUT `totals` (limbs, lanes) grows by the numbers of data[offsets[i]:offsets[i + 1]]."""
    n_ids = offsets.size - 1
    for first in range(0, n_ids, _LANES):
        count = min(_LANES, n_ids - first)
        longest = 0
        for lane in range(count):
            starts[lane] = offsets[first + lane]
            left[lane] = offsets[first + lane + 1] - offsets[first + lane]
            flags[lane] = _START | _KEYED
            longest = max(longest, left[lane])
        for word in range(8):
            for lane in range(_LANES):
                chain[word * _LANES + lane] = key[word]
        while longest > _BLOCK_BYTES:
            _chain_blocks(rows, init, message, state, chain, data, starts, left, flags, count)
            longest -= _BLOCK_BYTES
        _read_blocks(message, data, starts, left, count)
        for lane in range(count):
            flags[lane] |= _END | _ROOT
        for block in range(_BLOCKS):
            _begin(init, state, chain, left, flags, block)
            for number in range(_ROUNDS):
                _one_round(state, message, rows[number])
            for word in range(8):
                at = block * _BLOCK_LIMBS + word
                for lane in range(count):
                    low, high = state[word * _LANES + lane], state[(word + 8) * _LANES + lane]
                    totals[at, lane] += _Word(low ^ high)
                    totals[at + 8, lane] += _Word(high ^ chain[word * _LANES + lane])


@kernel
def _chain_blocks(  # type: ignore[no-untyped-def]
    rows, init, message, state, chain, data, starts, left, flags, count
):
    """Take a block of every id that has more than one left: OUT `chain` and what is left of it."""
    _read_blocks(message, data, starts, left, count)
    _begin(init, state, chain, left, flags, 0)
    for number in range(_ROUNDS):
        _one_round(state, message, rows[number])
    for lane in range(count):
        if left[lane] > _BLOCK_BYTES:
            for word in range(8):
                low, high = state[word * _LANES + lane], state[(word + 8) * _LANES + lane]
                chain[word * _LANES + lane] = low ^ high
            starts[lane] += _BLOCK_BYTES
            left[lane] -= _BLOCK_BYTES
            flags[lane] = _KEYED


@kernel
def _read_blocks(message, data, starts, left, count):  # type: ignore[no-untyped-def]
    """OUT `message`: the next block of each lane, zeros after the end of an id."""
    for lane in range(count):
        start, size = starts[lane], min(left[lane], _BLOCK_BYTES)
        for word in range(_BLOCK_LIMBS):
            value = _Half(0)
            if 4 * word + 4 <= size:
                # A loop of fixed length compiles to one load.
                for byte in range(4):
                    value |= _Half(data[start + 4 * word + byte]) << _Half(8 * byte)
            else:
                for byte in range(size - 4 * word):
                    value |= _Half(data[start + 4 * word + byte]) << _Half(8 * byte)
            message[word * _LANES + lane] = value


@kernel
def _begin(init, state, chain, left, flags, block):  # type: ignore[no-untyped-def]
    """OUT `state`: what a compression starts with."""
    for row in range(8):
        for lane in range(_LANES):
            state[row * _LANES + lane] = chain[row * _LANES + lane]
    for row in range(4):
        for lane in range(_LANES):
            state[(8 + row) * _LANES + lane] = init[row]
    for lane in range(_LANES):
        state[12 * _LANES + lane] = block
        state[13 * _LANES + lane] = 0
        state[14 * _LANES + lane] = min(left[lane], _BLOCK_BYTES)
        state[15 * _LANES + lane] = flags[lane]


@kernel
def _one_round(state, message, rows):  # type: ignore[no-untyped-def]
    """One round of all lanes, OUT `state`.

    Row j of the state begins at j _LANES, row j of the message at `rows[j]`. All places are
    unsigned and their distances constant, so the compiler sees that lanes do not touch each other
    and computes many at once.
    """
    r0, r1, r2, r3 = rows[0], rows[1], rows[2], rows[3]
    r4, r5, r6, r7 = rows[4], rows[5], rows[6], rows[7]
    r8, r9, r10, r11 = rows[8], rows[9], rows[10], rows[11]
    r12, r13, r14, r15 = rows[12], rows[13], rows[14], rows[15]
    for number in range(_LANES):
        i = _Word(number)
        a, b, c, d = state[i], state[_1 + i], state[_2 + i], state[_3 + i]
        e, f, g, h = state[_4 + i], state[_5 + i], state[_6 + i], state[_7 + i]
        j, k, m, n = state[_8 + i], state[_9 + i], state[_10 + i], state[_11 + i]
        p, q, r, s = state[_12 + i], state[_13 + i], state[_14 + i], state[_15 + i]
        a, e, j, p = _mix(a, e, j, p, message[r0 + i], message[r1 + i])
        b, f, k, q = _mix(b, f, k, q, message[r2 + i], message[r3 + i])
        c, g, m, r = _mix(c, g, m, r, message[r4 + i], message[r5 + i])
        d, h, n, s = _mix(d, h, n, s, message[r6 + i], message[r7 + i])
        a, f, m, s = _mix(a, f, m, s, message[r8 + i], message[r9 + i])
        b, g, n, p = _mix(b, g, n, p, message[r10 + i], message[r11 + i])
        c, h, j, q = _mix(c, h, j, q, message[r12 + i], message[r13 + i])
        d, e, k, r = _mix(d, e, k, r, message[r14 + i], message[r15 + i])
        state[i], state[_1 + i], state[_2 + i], state[_3 + i] = a, b, c, d
        state[_4 + i], state[_5 + i], state[_6 + i], state[_7 + i] = e, f, g, h
        state[_8 + i], state[_9 + i], state[_10 + i], state[_11 + i] = j, k, m, n
        state[_12 + i], state[_13 + i], state[_14 + i], state[_15 + i] = p, q, r, s


_1, _2, _3, _4, _5 = (_Word(row * _LANES) for row in range(1, 6))
_6, _7, _8, _9, _10 = (_Word(row * _LANES) for row in range(6, 11))
_11, _12, _13, _14, _15 = (_Word(row * _LANES) for row in range(11, 16))


@kernel
def _mix(a, b, c, d, x, y):  # type: ignore[no-untyped-def]
    a = _Half(a + b + x)
    d = _rotated(d ^ a, _Half(16))
    c = _Half(c + d)
    b = _rotated(b ^ c, _Half(12))
    a = _Half(a + b + y)
    d = _rotated(d ^ a, _Half(8))
    c = _Half(c + d)
    b = _rotated(b ^ c, _Half(7))
    return a, b, c, d


@kernel
def _rotated(value, bits):  # type: ignore[no-untyped-def]
    word = _Half(value)
    return _Half((word >> bits) | (word << (_Half(32) - bits)))
