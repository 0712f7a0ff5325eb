"""The hash of a set that needs no order: BLAKE3 itself, a plain twin, and twins that fall."""

import hashlib
import json
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from splitmeans.errors import ParameterError
from splitmeans.kernels.set_sums import NUMBER_BITS, number_sum
from tests.kernels.plain_blake3 import number

VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "blake3.json").read_text())
KEY = bytes.fromhex(VECTORS["key"])
OTHER = bytes(32)


def summed(texts: list[str], *, key: bytes = KEY) -> int:
    return number_sum(key, pa.array(texts, pa.large_string()))


# ---- BLAKE3 ----


@pytest.mark.parametrize("length", VECTORS["digests"])
def test_a_number_is_what_blake3_gives(length):
    text = bytes(97 + i % 26 for i in range(int(length))).decode()
    found = summed([text]).to_bytes(NUMBER_BITS // 8, "little")
    assert hashlib.sha256(found).hexdigest() == VECTORS["digests"][length]
    assert summed([text]) == number(text.encode(), key=KEY)


TEXTS = st.lists(
    st.text(max_size=30) | st.sampled_from(["x" * 64, "x" * 65, "\u00e9" * 600, "y" * 3000]),
    max_size=70,
    unique=True,
)


@settings(max_examples=12, deadline=None)
@given(TEXTS)
def test_a_sum_is_that_of_the_plain_twin(texts):
    """More ids than lanes, ids of one and of many blocks side by side."""
    assert summed(texts) == sum(number(text.encode(), key=KEY) for text in texts)


# ---- properties ----


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text(max_size=9), max_size=200, unique=True), st.randoms(), st.integers(0, 200))
def test_order_and_parts_do_not_matter(texts, random, cut):
    whole = summed(texts)
    mixed = random.sample(texts, len(texts))
    assert summed(mixed) == whole
    ids = pa.array(mixed, pa.large_string())
    assert number_sum(KEY, ids.slice(0, cut)) + number_sum(KEY, ids.slice(cut)) == whole
    assert number_sum(KEY, pa.array(mixed, pa.string())) == whole


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text(max_size=9), min_size=1, max_size=100, unique=True), st.text(max_size=9))
def test_any_other_id_and_any_other_key_change_it(texts, other):
    whole = summed(texts)
    assert summed(texts, key=OTHER) != whole
    assert summed(texts[1:]) != whole
    if other not in texts:
        assert summed([other, *texts[1:]]) != whole
        assert summed([*texts, other]) != whole


def test_a_hundred_thousand_ids_carry():
    """Limbs are added in 64 bits and carried at the end; parts of any size give the same sum."""
    ids = pa.array([f"user {i}" for i in range(100_000)], pa.large_string())
    parts = [number_sum(KEY, ids.slice(start, 7919)) for start in range(0, len(ids), 7919)]
    assert number_sum(KEY, ids) == sum(parts)
    assert number_sum(KEY, ids) > 2**NUMBER_BITS


def test_a_key_has_32_bytes():
    with pytest.raises(ParameterError, match="32 bytes"):
        number_sum(b"short", pa.array(["a"]))


# ---- hashes of sets that would not do ----


def equal_xor(numbers: list[int]) -> set[int]:
    """Places of numbers whose XOR is zero, by elimination; one more than bits is always enough."""
    basis: dict[int, tuple[int, int]] = {}
    for place, value in enumerate(numbers):
        members = 1 << place
        while value:
            top = value.bit_length()
            if top not in basis:
                basis[top] = value, members
                break
            value, members = value ^ basis[top][0], members ^ basis[top][1]
        else:
            return {at for at in range(len(numbers)) if members >> at & 1}
    raise AssertionError("there are more numbers than bits")


def test_twin_that_takes_xor_falls_to_elimination_and_the_sum_does_not():
    """Ids that somebody chose: two sets whose 512-bit XOR is equal, found at once."""
    bits = 512
    ids = [f"made up {i}" for i in range(bits + 1)]
    own = [number(text.encode(), key=KEY) % 2**bits for text in ids]
    found = equal_xor(own)
    one = {place for place in found if place % 2}
    two = found - one
    assert one
    assert two
    xor_of = [0, 0]
    for side, places in enumerate((one, two)):
        for place in places:
            xor_of[side] ^= own[place]
    assert xor_of[0] == xor_of[1]
    first, second = (summed([ids[place] for place in places]) for places in (one, two))
    assert first != second
    assert first % 2**bits != second % 2**bits


def test_twin_with_short_numbers_falls_to_four_lists():
    """Sums of 36 bits: four lists of 2^12 ids give two sets with the same sum (Wagner 2002).

    Two lists joined on 12 low bits leave about 2^12 pairs, so do the other two, and one pair of
    pairs fits the 24 bits that are left, on average. That none fits in 30 attempts, one for each
    value of the low bits, has a probability of about e^-30.
    """
    lists = [{f"{name}{i}": short(f"{name}{i}") for i in range(2**12)} for name in "abcd"]
    attempts = (collision(lists, shift=shift, low=2**12, modulus=2**36) for shift in range(30))
    one, two = next(found for found in attempts if found is not None)
    assert set(one).isdisjoint(two)
    assert sum(map(short, one)) % 2**36 == sum(map(short, two)) % 2**36
    assert summed(list(one)) != summed(list(two))


def short(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest(), "little") % 2**36


def collision(
    lists: list[dict[str, int]], *, shift: int, low: int, modulus: int
) -> tuple[tuple[str, str], tuple[str, str]] | None:
    """Return (a, b) and (c, d) with a + b = c + d, where a + b is `shift` modulo `low`."""
    a, b, c, d = lists
    sums: dict[int, tuple[str, str]] = {}
    by_low: dict[int, list[str]] = {}
    for text, value in b.items():
        by_low.setdefault(value % low, []).append(text)
    for text, value in a.items():
        for other in by_low.get((shift - value) % low, ()):
            sums[(value + b[other]) % modulus] = text, other
    by_low = {}
    for text, value in d.items():
        by_low.setdefault(value % low, []).append(text)
    for text, value in c.items():
        for other in by_low.get((shift - value) % low, ()):
            if (value + d[other]) % modulus in sums:
                return sums[(value + d[other]) % modulus], (text, other)
    return None
