"""Nearest centres: ties, exactness, and independence from the other rows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from splitmeans.errors import ParameterError
from splitmeans.kernels.assign import clipped_sums, nearest

COORDINATE = st.integers(-(2**22), 2**22)


def naive_nearest(rows: np.ndarray, centres: np.ndarray) -> list[int]:
    """The same with Python integers, which cannot overflow; `min` keeps the first of equals."""
    labels = []
    for row in rows.tolist():
        distances = [
            sum((x - y) ** 2 for x, y in zip(row, centre, strict=True))
            for centre in centres.tolist()
        ]
        labels.append(min(range(len(distances)), key=distances.__getitem__))
    return labels


@st.composite
def rows_and_centres(draw, coordinate=COORDINATE):
    d = draw(st.integers(1, 4))
    point = st.lists(coordinate, min_size=d, max_size=d)
    rows = draw(st.lists(point, min_size=1, max_size=12))
    centres = draw(st.lists(point, min_size=1, max_size=5))
    return np.array(rows, dtype=np.int64), np.array(centres, dtype=np.int64)


def test_rows_go_to_the_nearest_centre():
    rows = np.array([[0, 0], [9, 1], [4, 4]])
    centres = np.array([[10, 0], [0, 0], [5, 5]])
    labels = nearest(rows, centres)
    assert labels.tolist() == [1, 0, 2]
    assert labels.dtype == np.int32


def test_ties_go_to_the_lowest_index():
    rows = np.array([[0], [5], [-5]])
    assert nearest(rows, np.array([[10], [-10], [0], [0]])).tolist() == [2, 0, 1]
    assert nearest(rows, np.array([[-10], [10], [0], [0]])).tolist() == [2, 1, 0]


def test_a_difference_of_one_in_a_huge_squared_distance_counts():
    # 2^48 and 2^48 + 1 are the same number in single precision, and differ in double.
    rows = np.array([[0, 0]])
    centres = np.array([[2**24, 1], [2**24, 0]])
    assert np.float32(2**48 + 1) == np.float32(2**48)
    assert nearest(rows, centres).tolist() == [1]
    assert nearest(rows, centres[::-1]).tolist() == [0]


@given(rows_and_centres())
@settings(max_examples=50, deadline=None)
def test_agrees_with_naive_twin(case):
    rows, centres = case
    assert nearest(rows, centres).tolist() == naive_nearest(rows, centres)


@given(rows_and_centres(coordinate=st.integers(-2, 2)))
@settings(max_examples=50, deadline=None)
def test_agrees_with_naive_twin_on_many_ties(case):
    rows, centres = case
    assert nearest(rows, centres).tolist() == naive_nearest(rows, centres)


@given(rows_and_centres(), st.randoms(use_true_random=False))
@settings(max_examples=50, deadline=None)
def test_a_label_does_not_depend_on_other_rows(case, random):
    rows, centres = case
    labels = nearest(rows, centres)
    order = list(range(len(rows)))
    random.shuffle(order)
    kept = order[: random.randint(0, len(order))]
    assert nearest(rows[order], centres).tolist() == labels[order].tolist()
    assert nearest(rows[kept], centres).tolist() == labels[kept].tolist()


def test_memory_layout_does_not_matter():
    rng = np.random.default_rng(0)
    rows, centres = rng.integers(-100, 100, (50, 3)), rng.integers(-100, 100, (4, 3))
    expected = nearest(rows, centres)
    assert (nearest(np.asfortranarray(rows), np.asfortranarray(centres)) == expected).all()
    wide = np.repeat(rows, 2, axis=1)[:, ::2]
    assert (nearest(wide, centres) == expected).all()


def test_no_rows_no_labels():
    assert nearest(np.empty((0, 2), dtype=np.int64), np.array([[1, 2]])).shape == (0,)


def test_overflow_is_refused_and_the_largest_safe_case_works():
    # One column: (2 * bound)^2 < 2^53 holds for bound = 47453132 and fails one above.
    bound = 47_453_132
    assert (2 * bound) ** 2 < 2**53 <= (2 * bound + 2) ** 2
    assert nearest(np.array([[bound]]), np.array([[-bound], [bound]])).tolist() == [1]
    with pytest.raises(ParameterError, match="too large for exact distances"):
        nearest(np.array([[bound + 1]]), np.array([[-bound - 1]]))


@pytest.mark.parametrize(
    ("rows", "centres", "message"),
    [
        (np.zeros((2, 2), np.int64), np.zeros((1, 3), np.int64), "equal columns"),
        (np.zeros(2, np.int64), np.zeros((1, 2), np.int64), "equal columns"),
        (np.zeros((2, 2)), np.zeros((1, 2), np.int64), "must be int64"),
        (np.zeros((2, 2), np.int64), np.zeros((1, 2), np.float32), "must be int64"),
        (np.zeros((2, 2), np.int64), np.zeros((0, 2), np.int64), "at least one row"),
    ],
)
def test_wrong_arrays_are_refused(rows, centres, message):
    with pytest.raises(ParameterError, match=message):
        nearest(rows, centres)


def test_rows_as_they_are_kept_in_memory_give_the_same():
    rng = np.random.default_rng(4)
    rows, centres = rng.integers(-(2**20), 2**20, (9000, 3)), rng.integers(-(2**20), 2**20, (7, 3))
    narrow = rows.astype(np.int32)
    np.testing.assert_array_equal(nearest(narrow, centres), nearest(rows, centres))
    np.testing.assert_array_equal(nearest(narrow, centres.astype(np.int32)), nearest(rows, centres))
    facts = {"limits": np.full(3, 2**20), "centres": centres, "radii": np.full(7, 2**18)}
    np.testing.assert_array_equal(clipped_sums(narrow, **facts), clipped_sums(rows, **facts))
