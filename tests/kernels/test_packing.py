"""Packed labels: by hand, against NumPy's bits, and there and back."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from splitmeans.kernels.packing import pack_bits, unpack_bits
from splitmeans.kernels.tallies import tally_columns


def naive(labels: np.ndarray, width: int) -> np.ndarray:
    bits = np.unpackbits(labels[:, np.newaxis], axis=1, count=width, bitorder="little")
    return np.packbits(bits, bitorder="little")


def test_by_hand():
    # 5 = 101, 2 = 010, 7 = 111: from the low end 10 1 010 111 -> 11 010 101, then 1.
    packed = pack_bits(np.array([5, 2, 7], dtype=np.uint8), width=3)
    assert packed.tolist() == [0b11010101, 0b1]


@given(width=st.integers(1, 8), n=st.integers(0, 70), seed=st.integers(0, 10**6))
@settings(max_examples=50, deadline=None)
def test_packing_agrees_with_numpy_and_comes_back(width, n, seed):
    labels = np.random.default_rng(seed).integers(0, 2**width, n).astype(np.uint8)
    packed = pack_bits(labels, width=width)
    assert packed.tolist() == naive(labels, width).tolist()
    found, clean = unpack_bits(packed, n, width=width)
    assert found.tolist() == labels.tolist()
    assert clean


@pytest.mark.parametrize("bit", range(3, 8))
def test_a_bit_after_the_last_label_is_noticed(bit):
    packed = np.array([0b101 | 1 << bit], dtype=np.uint8)
    labels, clean = unpack_bits(packed, 1, width=3)
    assert labels.tolist() == [0b101]
    assert not clean


@given(seed=st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_tallies_agree_with_a_naive_twin(seed):
    rng = np.random.default_rng(seed)
    floor, size = int(rng.integers(0, 9)), 6
    one, other = (
        rng.integers(floor, floor + size, (20, k)).astype(np.uint16) for k in rng.integers(1, 4, 2)
    )
    first, second, equal = tally_columns(one, other, floor=floor, size=size)
    for i in range(one.shape[1]):
        for j in range(other.shape[1]):
            for value in range(size):
                x, y = one[:, i], other[:, j]
                larger = np.maximum(x, y) == value + floor
                assert first[i, j, value] == (larger & (x > y)).sum()
                assert second[i, j, value] == (larger & (y > x)).sum()
                assert equal[i, j, value] == (larger & (x == y)).sum()
