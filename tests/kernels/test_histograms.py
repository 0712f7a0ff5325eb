"""Histograms and products of scores: by hand, and against NumPy on random rows."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from splitmeans.errors import ParameterError
from splitmeans.kernels.histograms import cell_histogram, column_histograms, score_products

UNIT = 2**20


def naive_bins(rows: np.ndarray, limits: np.ndarray, n_bins: int) -> np.ndarray:
    inside = np.clip(rows, -limits, limits)
    return (inside + limits) * n_bins // (2 * limits + 1)


def test_bins_by_hand():
    # 21 values in 7 bins of three: -10 and -9 in the first, 0 in the fourth, 10 in the last.
    rows = np.array([[-10], [-9], [0], [10]])
    found = column_histograms(rows, limits=np.array([10]), n_bins=7)
    assert found.tolist() == [[2, 0, 0, 1, 0, 0, 1]]


def test_rows_beyond_the_limits_are_in_the_outer_bins():
    rows = np.array([[-(2**40), 3], [2**40, -3]])
    found = column_histograms(rows, limits=np.array([5, 2]), n_bins=2)
    assert found.tolist() == [[1, 1], [1, 1]]


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
    found = column_histograms(np.asfortranarray(rows), limits=bounds, n_bins=n_bins)
    assert found.tolist() == np.array(expected).tolist()


@given(n=st.integers(0, 60), d=st.integers(1, 4), seed=st.integers(0, 10**6))
@settings(max_examples=50, deadline=None)
def test_cell_histogram_agrees_with_numpy(n, d, seed):
    rng = np.random.default_rng(seed)
    bounds, n_bins = rng.integers(1, UNIT, d), 16
    rows = rng.integers(-bounds, bounds + 1, (n, d))
    places = rng.integers(0, 4, (d, n_bins))
    bins = naive_bins(rows, bounds, n_bins)
    cells = sum(places[column][bins[:, column]] for column in range(d))
    found = cell_histogram(rows, limits=bounds, places=places, n_cells=3 * d + 1)
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
    options = {"limits": np.array([5, 5]), "scores": scores}
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
    found = score_products(rows, limits=limits, scores=scores, longest=longest)
    assert found.dtype == np.int64
    assert found.tolist() == naive_products(rows, limits, scores, longest)


@given(z=st.lists(st.integers(-2000, 2000), min_size=2, max_size=8), longest=st.integers(1, 3000))
@settings(max_examples=100, deadline=None)
def test_products_of_one_row_are_within_their_length(z, longest):
    d = len(z)
    scores = np.array(z)[:, np.newaxis]
    rows, limits = np.zeros((1, d), dtype=np.int64), np.ones(d, dtype=np.int64)
    found = score_products(rows, limits=limits, scores=scores, longest=longest)
    assert sum(found.diagonal().tolist()) <= longest**2
    square = sum(x * x for x in found[np.triu_indices(d, 1)].tolist())
    assert square * 2 * d <= longest**4 * (d - 1)


def test_products_are_the_same_in_any_order_and_in_parts():
    # More rows than are added up at a time.
    rng = np.random.default_rng(5)
    rows = rng.integers(-UNIT, UNIT, (2**15 + 77, 3))
    scores = rng.integers(-952, 953, (3, 32))
    options = {"limits": np.full(3, UNIT), "scores": scores, "longest": 543}
    whole = score_products(rows, **options)
    assert (whole == score_products(rng.permutation(rows), **options)).all()
    parts = score_products(rows[:1000], **options) + score_products(rows[1000:], **options)
    assert (whole == parts).all()


def test_scores_that_are_not_exact_are_refused():
    scores = np.zeros((1, 4), dtype=np.int64)
    with pytest.raises(ParameterError, match="too large for exact products"):
        score_products(
            np.zeros((1, 1), np.int64), limits=np.array([1]), scores=scores, longest=2**20
        )


@pytest.mark.parametrize("rows", [np.zeros((2, 3)), np.zeros((2, 2), np.int64), np.zeros(3)])
def test_wrong_rows_are_refused(rows):
    limits = np.array([1, 1, 1])
    with pytest.raises(ParameterError, match="rows must be int64 of shape"):
        column_histograms(rows, limits=limits, n_bins=4)
    with pytest.raises(ParameterError, match="rows must be int64 of shape"):
        cell_histogram(rows, limits=limits, places=np.zeros((3, 4), np.int64), n_cells=1)
    with pytest.raises(ParameterError, match="rows must be int64 of shape"):
        score_products(rows, limits=limits, scores=np.zeros((3, 4), np.int64), longest=9)
