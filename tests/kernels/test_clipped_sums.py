"""Clipped sums around centres: by hand, against a naive twin, and what one row may add."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from splitmeans.errors import ParameterError
from splitmeans.kernels.assign import clipped_sums, nearest

UNIT = 2**20


def naive_clipped_sums(rows, centres, radii):
    """Row by row, in Python's whole numbers but for the clipping."""
    k, d = centres.shape
    found = np.zeros((k, 2 * d + 1), dtype=np.int64)
    for row, label in zip(rows, nearest(rows, centres), strict=True):
        offset = [int(x) for x in row - centres[label]]
        radius = int(radii[label])
        square = sum(x * x for x in offset)
        if square > radius**2:
            factor = radius / math.sqrt(square) * (1 - 2.0**-40)
            offset = [math.trunc(x * factor) for x in offset]
        found[label] += [*offset, 1, *(x * x // (2 * radius) for x in offset)]
    return found


def sums_of(rows, centres, radii):
    limits = np.full(rows.shape[1], UNIT)
    return clipped_sums(rows, limits=limits, centres=centres, radii=radii)


def test_by_hand():
    rows = np.array([[3, 4], [30, 40], [100, 110]])
    centres = np.array([[0, 0], [100, 99]])
    found = sums_of(rows, centres, np.array([10, 4]))
    # (3, 4) has length 5, inside 10; (30, 40) becomes just under (6, 8), cut to (5, 7).
    first = [3 + 5, 4 + 7, 2, 9 // 20 + 25 // 20, 16 // 20 + 49 // 20]
    # (0, 11) becomes just under (0, 4), cut to (0, 3).
    assert found.tolist() == [first, [0, 3, 1, 0, 9 // 8]]


@given(
    d=st.integers(1, 5),
    k=st.integers(1, 4),
    n=st.sampled_from([0, 1, 7, 511, 512, 513, 1100]),
    seed=st.integers(0, 10**6),
)
@settings(max_examples=30, deadline=None)
def test_agrees_with_the_naive_twin(d, k, n, seed):
    rng = np.random.default_rng(seed)
    rows = rng.integers(-UNIT, UNIT + 1, (n, d))
    centres = rng.integers(-UNIT, UNIT + 1, (k, d))
    radii = rng.integers(1, 2 * UNIT, k)
    found = sums_of(rows, centres, radii)
    assert found.dtype == np.int64
    assert (found == naive_clipped_sums(rows, centres, radii)).all()


@given(
    row=st.lists(st.integers(-UNIT, UNIT), min_size=1, max_size=6), radius=st.integers(1, 3 * UNIT)
)
@settings(max_examples=100, deadline=None)
def test_one_row_is_within_its_lengths(row, radius):
    d = len(row)
    centres = np.zeros((1, d), dtype=np.int64)
    (found,) = sums_of(np.array([row]), centres, np.array([radius])).tolist()
    assert found[d] == 1
    assert sum(x * x for x in found[:d]) <= radius**2
    assert 4 * sum(x * x for x in found[d + 1 :]) <= radius**2


def test_a_row_changes_one_centre():
    rng = np.random.default_rng(3)
    rows = rng.integers(-UNIT, UNIT, (700, 3))
    centres = rng.integers(-UNIT, UNIT, (5, 3))
    radii = np.full(5, UNIT // 3)
    with_all = sums_of(rows, centres, radii)
    for left_out in (0, 350, 699):
        without = sums_of(np.delete(rows, left_out, axis=0), centres, radii)
        changed = np.flatnonzero((with_all != without).any(axis=1))
        assert changed.tolist() == nearest(rows[[left_out]], centres).tolist()


def test_order_and_parts_do_not_matter():
    rng = np.random.default_rng(4)
    rows, centres = rng.integers(-UNIT, UNIT, (900, 4)), rng.integers(-UNIT, UNIT, (3, 4))
    radii = np.full(3, UNIT // 2)
    whole = sums_of(rows, centres, radii)
    assert (whole == sums_of(rng.permutation(rows), centres, radii)).all()
    parts = sums_of(rows[:100], centres, radii) + sums_of(rows[100:], centres, radii)
    assert (whole == parts).all()


def test_rows_are_clipped_to_the_limits():
    rows = np.array([[300, -7], [-300, 4]])
    options = {"centres": np.array([[0, 0]]), "radii": np.array([1000])}
    clipped = clipped_sums(rows, limits=np.array([100, 5]), **options)
    inside = clipped_sums(np.array([[100, -5], [-100, 4]]), limits=np.array([100, 5]), **options)
    assert clipped.tolist() == inside.tolist() == [[0, -1, 2, 2 * (10_000 // 2000), 0]]


def test_the_largest_weight_of_a_column_is_exact():
    # Weight 44: the row is as far from the centre as the box allows.
    bound = 44 * UNIT
    found = clipped_sums(
        np.array([[bound]]),
        limits=np.array([bound]),
        centres=np.array([[-bound]]),
        radii=np.array([2 * bound]),
    )
    assert found.tolist() == [[2 * bound, 1, bound]]


def test_what_is_not_exact_is_refused():
    rows, limits = np.array([[1, 2]]), np.array([UNIT, UNIT])
    with pytest.raises(ParameterError, match="too large for exact distances"):
        clipped_sums(rows, limits=limits * 128, centres=rows, radii=np.array([1]))
    with pytest.raises(ParameterError, match="too large for exact distances"):
        clipped_sums(rows, limits=limits, centres=np.array([[2**27, 0]]), radii=np.array([1]))
    with pytest.raises(ParameterError, match="every radius must be >= 1"):
        clipped_sums(rows, limits=limits, centres=rows, radii=np.array([0]))
    with pytest.raises(ParameterError, match="do not fit"):
        clipped_sums(rows, limits=limits[:1], centres=rows, radii=np.array([1]))
