"""Short tags as bytes and back: any list, any range at a time, and no bytes but those of a list."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from splitmeans.errors import ProtocolError
from splitmeans.membership.decoy.tag_lists import (
    LOW_BITS,
    bitmap_size,
    code_tags,
    coded_size,
    high_bits_for,
    short_tags,
    tag_pieces,
)

HIGH_BITS = 5
BITS = LOW_BITS + HIGH_BITS


def coded(numbers, *, high_bits: int = HIGH_BITS):
    words = np.array(sorted(numbers), dtype=np.uint64) << np.uint64(64 - LOW_BITS - high_bits)
    return code_tags(words, high_bits=high_bits)


def read(lows, bitmap, *, high_bits=HIGH_BITS, n_pieces=1, most=10**6) -> list[list[int]]:
    found = tag_pieces(lows, bitmap, high_bits=high_bits, n_pieces=n_pieces, most=most)
    return [piece.tolist() for piece in found]


def joined(pieces: list[list[int]]) -> list[int]:
    return list(itertools.chain.from_iterable(pieces))


# Few values as well, so that tags repeat, and the ends of the range.
NUMBERS = st.lists(
    st.one_of(st.integers(0, 2**BITS - 1), st.integers(0, 3), st.just(2**BITS - 1)), max_size=60
)


@settings(max_examples=200, deadline=None)
@given(NUMBERS, st.sampled_from([1, 2, 8, 32]))
def test_lists_come_back_in_pieces_of_equal_ranges(numbers, n_pieces):
    lows, bitmap = coded(numbers)
    assert 2 * len(lows) + len(bitmap) == coded_size(len(numbers), high_bits=HIGH_BITS)
    pieces = read(lows, bitmap, n_pieces=n_pieces)
    assert joined(pieces) == sorted(numbers)
    assert len(pieces) == n_pieces
    for place, piece in enumerate(pieces):
        assert {number * n_pieces >> BITS for number in piece} <= {place}


def test_coding_by_hand():
    # High parts 0, 0 and 2 of four: two ones, end, end, one, end, end.
    lows, bitmap = coded([5, 9, 2 * 2**16 + 7], high_bits=2)
    assert lows.tolist() == [5, 9, 7]
    assert bitmap.tolist() == [0b0010011]


def test_a_list_without_tags():
    lows, bitmap = coded([])
    assert len(lows) == 0
    assert not bitmap.any()
    assert read(lows, bitmap, n_pieces=4) == [[], [], [], []]


def test_many_more_tags_than_expected():
    numbers = np.random.default_rng(1).integers(2**BITS, size=5_000).tolist()
    assert joined(read(*coded(numbers), n_pieces=32)) == sorted(numbers)


def test_a_million_tags_take_less_than_two_and_a_half_bytes_each():
    n = 10**6
    high_bits = high_bits_for(n)
    words = np.sort(np.random.default_rng(2).integers(2**64, size=n, dtype=np.uint64))
    tags = short_tags(words, high_bits=high_bits)
    lows, bitmap = code_tags(tags, high_bits=high_bits)
    assert lows.nbytes + bitmap.nbytes == coded_size(n, high_bits=high_bits) < 2.5 * n
    found = np.concatenate(
        list(tag_pieces(lows, bitmap, high_bits=high_bits, n_pieces=16, most=2**17))
    )
    np.testing.assert_array_equal(found, tags >> np.uint64(64 - LOW_BITS - high_bits))


def test_high_bits():
    assert [high_bits_for(n) for n in (0, 1, 4096, 4097, 10**6, 2**20)] == [12, 12, 12, 13, 20, 20]
    assert high_bits_for(1e300) == 40


def test_short_tags_keep_the_leading_bits():
    words = np.array([2**64 - 1, 2**47, 2**63], dtype=np.uint64)
    assert short_tags(words, high_bits=0).tolist() == [(2**16 - 1) << 48, 0, 2**63]


# ---- bytes that nobody makes ----


def changed(array: np.ndarray, place: int, value: int) -> np.ndarray:
    found = array.copy()
    found[place] = value
    return found


GOOD = coded([5, 9, 40, 2**17, 2**20])


@pytest.mark.parametrize(
    ("lows", "bitmap", "message"),
    [
        (GOOD[0], GOOD[1][:-1], "wrong size"),
        (GOOD[0], np.append(GOOD[1], np.uint8(0)), "wrong size"),
        (GOOD[0], GOOD[1].reshape(-1, 1), "wrong size"),
        (GOOD[0], changed(GOOD[1], 2, GOOD[1][2] ^ 4), "more tags than there are|fewer|crowd"),
        (GOOD[0], changed(GOOD[1], 0, GOOD[1][0] ^ 1), "fewer tags|after its end"),
        (GOOD[0], changed(GOOD[1], 4, GOOD[1][4] | 128), "after its end"),
        (changed(GOOD[0], 0, 10), GOOD[1], "must ascend"),
    ],
)
@pytest.mark.parametrize("n_pieces", [1, 32])
def test_other_bytes_are_refused(lows, bitmap, message, n_pieces):
    assert bitmap_size(5, high_bits=HIGH_BITS) == 5
    with pytest.raises(ProtocolError, match=message):
        read(lows, bitmap, n_pieces=n_pieces)


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 20), st.data(), st.sampled_from([1, 4, 32]))
def test_whatever_bytes_are_read_are_those_of_the_list(n, data, n_pieces):
    """One list has one form: what is not refused is coded to the same bytes again."""
    size = bitmap_size(n, high_bits=HIGH_BITS)
    bitmap = np.frombuffer(data.draw(st.binary(min_size=size, max_size=size)), dtype=np.uint8)
    lows = np.frombuffer(data.draw(st.binary(min_size=2 * n, max_size=2 * n)), dtype="<u2")
    try:
        found = joined(read(lows, bitmap, n_pieces=n_pieces))
    except ProtocolError:
        return
    again = coded(found)
    assert again[0].tolist() == lows.tolist()
    assert again[1].tolist() == bitmap.tolist()


def test_more_tags_in_a_range_than_memory_is_for_are_refused():
    numbers = [7] * 50
    assert joined(read(*coded(numbers), n_pieces=32, most=50)) == numbers
    with pytest.raises(ProtocolError, match="crowd in one part"):
        read(*coded(numbers), n_pieces=32, most=49)
