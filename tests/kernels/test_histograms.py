"""Histogram kernels: bins by hand, and against NumPy on random rows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from splitmeans.errors import ParameterError
from splitmeans.kernels.histograms import cell_histogram, column_histograms

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


@pytest.mark.parametrize("rows", [np.zeros((2, 3)), np.zeros((2, 2), np.int64), np.zeros(3)])
def test_wrong_rows_are_refused(rows):
    limits = np.array([1, 1, 1])
    with pytest.raises(ParameterError, match="rows must be int64 of shape"):
        column_histograms(rows, limits=limits, n_bins=4)
    with pytest.raises(ParameterError, match="rows must be int64 of shape"):
        cell_histogram(rows, limits=limits, places=np.zeros((3, 4), np.int64), n_cells=1)
