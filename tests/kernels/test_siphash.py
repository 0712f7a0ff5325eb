"""The keyed hash: reference vectors, a plain-Python twin, and every layout of Arrow strings."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from splitmeans.errors import ParameterError
from splitmeans.kernels.siphash import hash_ids, prf_word

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "siphash.json").read_text())
KEY = bytes.fromhex(VECTORS["key"])
MASK = 2**64 - 1


def siphash(key: bytes, message: bytes, *, size: int) -> bytes:
    """SipHash-2-4 on Python integers, `size` 8 or 16 bytes."""
    k0, k1 = (int.from_bytes(key[i : i + 8], "little") for i in (0, 8))
    text = b"somepseudorandomlygeneratedbytes"
    v = [int.from_bytes(text[8 * i : 8 * i + 8], "big") ^ (k0, k1)[i % 2] for i in range(4)]
    wide = size == 16
    v[1] ^= 0xEE * wide

    def rotate(word: int, bits: int) -> int:
        return (word << bits | word >> (64 - bits)) & MASK

    def rounds(count: int) -> None:
        for _ in range(count):
            for a, b, turn in ((0, 1, 13), (2, 3, 16)):
                v[a] = (v[a] + v[b]) & MASK
                v[b] = rotate(v[b], turn) ^ v[a]
            v[0] = rotate(v[0], 32)
            for a, b, turn in ((2, 1, 17), (0, 3, 21)):
                v[a] = (v[a] + v[b]) & MASK
                v[b] = rotate(v[b], turn) ^ v[a]
            v[2] = rotate(v[2], 32)

    padded = message + bytes(-(len(message) + 1) % 8) + bytes([len(message) % 256])
    for start in range(0, len(padded), 8):
        block = int.from_bytes(padded[start : start + 8], "little")
        v[3] ^= block
        rounds(2)
        v[0] ^= block
    v[2] ^= 0xEE if wide else 0xFF
    rounds(4)
    out = (v[0] ^ v[1] ^ v[2] ^ v[3]).to_bytes(8, "little")
    if wide:
        v[1] ^= 0xDD
        rounds(4)
        out += (v[0] ^ v[1] ^ v[2] ^ v[3]).to_bytes(8, "little")
    return out


def as_bytes(words: np.ndarray) -> list[bytes]:
    return [row.astype("<u8").tobytes() for row in words]


def stream_word(key: bytes, counter: int) -> int:
    k0, k1 = np.frombuffer(key, dtype="<u8")
    with np.errstate(over="ignore"):
        return int(prf_word(np.uint64(k0), np.uint64(k1), np.uint64(counter)))


@pytest.mark.parametrize(("name", "size"), [("siphash64", 8), ("siphash128", 16)])
def test_twin_gives_the_reference_vectors(name: str, size: int) -> None:
    assert len(VECTORS[name]) == 64
    for length, expected in enumerate(VECTORS[name]):
        assert siphash(KEY, bytes(range(length)), size=size).hex() == expected


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_kernel_gives_the_reference_vectors(kind: pa.DataType) -> None:
    # Bytes 0 to 62 are ASCII, so the reference's messages are valid strings.
    messages = [bytes(range(length)).decode("ascii") for length in range(64)]
    hashes = as_bytes(hash_ids(KEY, pa.array(messages, type=kind)))
    assert [value.hex() for value in hashes] == VECTORS["siphash128"]


def test_stream_gives_the_reference_vector_of_eight_bytes() -> None:
    counter = int.from_bytes(bytes(range(8)), "little")
    assert stream_word(KEY, counter).to_bytes(8, "little").hex() == VECTORS["siphash64"][8]


@settings(max_examples=50, deadline=None)
@given(key=st.binary(min_size=16, max_size=16), counter=st.integers(0, MASK))
def test_stream_equals_twin(key: bytes, counter: int) -> None:
    expected = siphash(key, counter.to_bytes(8, "little"), size=8)
    assert stream_word(key, counter) == int.from_bytes(expected, "little")


@settings(max_examples=50, deadline=None)
@given(
    key=st.binary(min_size=16, max_size=16),
    ids=st.lists(st.text(st.characters(codec="utf-8"), max_size=40), max_size=8),
    large=st.booleans(),
    cut=st.integers(0, 8),
)
def test_hashes_of_any_slice_equal_twin(key: bytes, ids: list[str], large: bool, cut: int) -> None:
    array = pa.array(ids, type=pa.large_string() if large else pa.string()).slice(cut)
    expected = [siphash(key, text.encode(), size=16) for text in ids[cut:]]
    assert as_bytes(hash_ids(key, array)) == expected


@pytest.mark.parametrize("length", [255, 256, 263, 1000])
def test_length_counts_modulo_256(length: int) -> None:
    text = "x" * length
    hashes = as_bytes(hash_ids(KEY, pa.array([text])))
    assert hashes == [siphash(KEY, text.encode(), size=16)]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_slice_in_the_middle_hashes_like_a_copy(kind: pa.DataType) -> None:
    array = pa.array([f"id-{i}" for i in range(20)], type=kind)
    middle = array.slice(5, 7)
    assert middle.offset == 5
    np.testing.assert_array_equal(hash_ids(KEY, middle), hash_ids(KEY, array)[5:12])


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_no_ids_and_empty_ids(kind: pa.DataType) -> None:
    assert hash_ids(KEY, pa.array([], type=kind)).shape == (0, 2)
    hashes = as_bytes(hash_ids(KEY, pa.array(["", ""], type=kind)))
    assert [value.hex() for value in hashes] == [VECTORS["siphash128"][0]] * 2


def test_writable_buffers_hash_like_read_only_ones() -> None:
    offsets = pa.py_buffer(bytearray(np.array([0, 2, 5], dtype=np.int32).tobytes()))
    data = pa.py_buffer(bytearray(b"abcde"))
    array = pa.StringArray.from_buffers(2, offsets, data)
    np.testing.assert_array_equal(hash_ids(KEY, array), hash_ids(KEY, pa.array(["ab", "cde"])))


@pytest.mark.parametrize("length", [0, 15, 17, 32])
def test_key_of_wrong_length_is_refused(length: int) -> None:
    with pytest.raises(ParameterError, match=f"key must have 16 bytes, got {length}"):
        hash_ids(bytes(length), pa.array(["a"]))


@pytest.mark.parametrize("ids", [pa.array([1, 2]), ["a"], pa.array(["a"]).dictionary_encode()])
def test_other_than_strings_is_refused(ids: object) -> None:
    with pytest.raises(ParameterError, match="ids must be an Arrow string or large_string array"):
        hash_ids(KEY, ids)
