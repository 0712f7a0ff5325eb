"""Histograms and products of scores: by hand, and against NumPy on random rows."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from splitmeans._types import NO_VALUE
from splitmeans.errors import ParameterError
from splitmeans.kernels.histograms import cell_histogram, column_histograms, score_products

UNIT = 2**20


def naive_bins(rows: np.ndarray, limits: np.ndarray, n_bins: int) -> np.ndarray:
    inside = np.clip(rows, -limits, limits)
    return (inside + limits) * n_bins // (2 * limits + 1)


def test_bins_by_hand():
    # 21 values in 7 bins of three: -10 and -9 in the first, 0 in the fourth, 10 in the last.
    rows = np.array([[-10], [-9], [0], [10]])
    found = column_histograms(rows, limits=np.array([10]), bins=np.array([7]))
    assert found.tolist() == [2, 0, 0, 1, 0, 0, 1]


def test_rows_beyond_the_limits_are_in_the_outer_bins():
    rows = np.array([[-(2**40), 3], [2**40, -3]])
    found = column_histograms(rows, limits=np.array([5, 2]), bins=np.array([2, 2]))
    assert found.tolist() == [1, 1, 1, 1]


def test_levels_have_a_bin_each_and_no_value_has_none():
    # A column of three levels and one of numbers; codes that are no level are in no bin.
    rows = np.array([[0, 4], [2, NO_VALUE], [2, -5], [3, 5], [-7, NO_VALUE], [NO_VALUE, 0]])
    columns = {"limits": np.array([0, 5]), "bins": np.array([3, 2])}
    # 11 values in two bins: -5 to 0, and 1 to 5.
    assert column_histograms(rows, **columns).tolist() == [1, 0, 2, 2, 2]
    # Cells: level 0 or another, times low or high; a row without one of both is in none.
    cells = cell_histogram(rows, places=np.array([0, 2, 2, 0, 1]), n_cells=4, **columns)
    assert cells.tolist() == [0, 1, 1, 0]
    # Where numbers are not cut, it does not matter who has one.
    cells = cell_histogram(rows, places=np.array([0, 1, 1, 0, 0]), n_cells=2, **columns)
    assert cells.tolist() == [1, 2]
    # No value has the score 0.
    found = score_products(rows, scores=np.array([1, 2, 3, 5, 7]), longest=100, **columns)
    assert found.tolist() == [[1 + 9 + 9, 7 + 15], [7 + 15, 49 + 25 + 49 + 25]]


@given(
    n=st.integers(0, 60),
    limits=st.lists(st.integers(1, 100 * UNIT), min_size=1, max_size=5),
    n_bins=st.integers(1, 256),
    seed=st.integers(0, 10**6),
)
@settings(max_examples=50, deadline=None)
def test_column_histograms_agree_with_numpy(n, limits, n_bins, seed):
    bounds = np.array(limits)
    rows = np.random.default_rng(seed).integers(-bounds - 9, bounds + 10, (n, len(limits)))
    expected = [
        np.bincount(column, minlength=n_bins) for column in naive_bins(rows, bounds, n_bins).T
    ]
    bins = np.full(len(limits), n_bins)
    found = column_histograms(np.asfortranarray(rows), limits=bounds, bins=bins)
    assert found.tolist() == np.concatenate(expected).tolist()


@given(n=st.integers(0, 60), d=st.integers(1, 4), seed=st.integers(0, 10**6))
@settings(max_examples=50, deadline=None)
def test_cell_histogram_agrees_with_numpy(n, d, seed):
    rng = np.random.default_rng(seed)
    bounds, n_bins = rng.integers(1, UNIT, d), 16
    rows = rng.integers(-bounds, bounds + 1, (n, d))
    places = rng.integers(0, 4, (d, n_bins))
    bins = naive_bins(rows, bounds, n_bins)
    cells = sum(places[column][bins[:, column]] for column in range(d))
    widths = np.full(d, n_bins)
    found = cell_histogram(
        rows, limits=bounds, bins=widths, places=places.ravel(), n_cells=3 * d + 1
    )
    assert found.tolist() == np.bincount(cells, minlength=3 * d + 1).tolist()


def naive_products(rows, limits, scores, longest):
    """Row by row, in Python's whole numbers but for the clipping."""
    d = len(limits)
    bins = naive_bins(rows, limits, scores.shape[1])
    sums = [[0] * d for _ in range(d)]
    for row in bins:
        z = [int(scores[j, row[j]]) for j in range(d)]
        square = sum(x * x for x in z)
        if square > longest**2:
            z = [math.trunc(x * (longest / math.sqrt(square) * (1 - 2.0**-40))) for x in z]
        for i, j in itertools.product(range(d), repeat=2):
            sums[i][j] += z[i] * z[j]
    return sums


def test_score_products_by_hand():
    # Two bins a column, at -5 .. -1 and 0 .. 5; scores -3 and 4, and -1 and 2.
    scores = np.array([[-3, 4], [-1, 2]])
    rows = np.array([[-5, -5], [5, 5], [5, -5]])
    options = {"limits": np.array([5, 5]), "bins": np.array([2, 2]), "scores": scores.ravel()}
    found = score_products(rows, longest=100, **options)
    assert found.tolist() == [[9 + 16 + 16, 3 + 8 - 4], [3 + 8 - 4, 1 + 4 + 1]]
    # (4, 2) has length 4.47; at length 3 it is (2.68, 1.34), cut to (2, 1).
    assert score_products(rows[1:2], longest=3, **options).tolist() == [[4, 2], [2, 1]]


@given(
    n=st.integers(0, 40),
    d=st.integers(1, 5),
    longest=st.sampled_from([1, 300, 627, 5000]),
    seed=st.integers(0, 10**6),
)
@settings(max_examples=40, deadline=None)
def test_score_products_agree_with_the_naive_twin(n, d, longest, seed):
    rng = np.random.default_rng(seed)
    limits, n_bins = rng.integers(1, UNIT, d), 16
    rows = rng.integers(-limits - 3, limits + 4, (n, d))
    scores = rng.integers(-952, 953, (d, n_bins))
    bins = np.full(d, n_bins)
    found = score_products(rows, limits=limits, bins=bins, scores=scores.ravel(), longest=longest)
    assert found.dtype == np.int64
    assert found.tolist() == naive_products(rows, limits, scores, longest)


@given(z=st.lists(st.integers(-2000, 2000), min_size=2, max_size=8), longest=st.integers(1, 3000))
@settings(max_examples=100, deadline=None)
def test_products_of_one_row_are_within_their_length(z, longest):
    d = len(z)
    rows, limits = np.zeros((1, d), dtype=np.int64), np.ones(d, dtype=np.int64)
    found = score_products(rows, limits=limits, bins=limits, scores=np.array(z), longest=longest)
    assert sum(found.diagonal().tolist()) <= longest**2
    square = sum(x * x for x in found[np.triu_indices(d, 1)].tolist())
    assert square * 2 * d <= longest**4 * (d - 1)


def test_products_are_the_same_in_any_order_and_in_parts():
    # More rows than are added up at a time.
    rng = np.random.default_rng(5)
    rows = rng.integers(-UNIT, UNIT, (2**15 + 77, 3))
    scores = rng.integers(-952, 953, (3, 32))
    columns = {"limits": np.full(3, UNIT), "bins": np.full(3, 32)}
    options = {**columns, "scores": scores.ravel(), "longest": 543}
    whole = score_products(rows, **options)
    assert (whole == score_products(rng.permutation(rows), **options)).all()
    parts = score_products(rows[:1000], **options) + score_products(rows[1000:], **options)
    assert (whole == parts).all()


def test_scores_that_are_not_exact_are_refused():
    columns = {"limits": np.array([1]), "bins": np.array([4])}
    scores = np.zeros(4, dtype=np.int64)
    with pytest.raises(ParameterError, match="too large for exact products"):
        score_products(np.zeros((1, 1), np.int64), scores=scores, longest=2**20, **columns)
    with pytest.raises(ParameterError, match="too large for exact products"):
        score_products(np.zeros((1, 1), np.int64), scores=scores - 2**26, longest=9, **columns)


@pytest.mark.parametrize("rows", [np.zeros((2, 3)), np.zeros((2, 2), np.int64), np.zeros(3)])
def test_wrong_rows_are_refused(rows):
    columns = {"limits": np.array([1, 1, 1]), "bins": np.array([4, 4, 4])}
    zeros = np.zeros(12, np.int64)
    with pytest.raises(ParameterError, match="rows must be int64 of shape"):
        column_histograms(rows, **columns)
    with pytest.raises(ParameterError, match="rows must be int64 of shape"):
        cell_histogram(rows, places=zeros, n_cells=1, **columns)
    with pytest.raises(ParameterError, match="rows must be int64 of shape"):
        score_products(rows, scores=zeros, longest=9, **columns)


def test_rows_as_they_are_kept_in_memory_give_the_same():
    # More rows than a block has, an odd number, with levels and values that are not there.
    rng = np.random.default_rng(8)
    rows = np.stack([rng.integers(-UNIT - 9, UNIT + 9, 1301), rng.integers(-2, 7, 1301)], axis=1)
    rows[::7, 0] = NO_VALUE
    columns = {"limits": np.array([UNIT, 0]), "bins": np.array([64, 5])}
    places, scores = rng.integers(0, 3, 69), rng.integers(-500, 500, 69)
    for counted, options in (
        (column_histograms, {}),
        (cell_histogram, {"places": places, "n_cells": 5}),
        (score_products, {"scores": scores, "longest": 400}),
    ):
        narrow = counted(rows.astype(np.int32), **columns, **options)
        np.testing.assert_array_equal(narrow, counted(rows, **columns, **options))
        single = [counted(row[np.newaxis], **columns, **options) for row in rows]
        np.testing.assert_array_equal(narrow, sum(single))


def test_limits_beyond_exact_bins_are_refused():
    with pytest.raises(ParameterError, match="too large for exact bins"):
        column_histograms(np.zeros((1, 1), np.int64), limits=np.array([2**50]), bins=np.array([16]))
