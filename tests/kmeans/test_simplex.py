import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from splitmeans.errors import ParameterError
from splitmeans.kmeans.simplex import project_to_simplex


def bisect_projection(values, total):
    """The same projection, by bisection on the number that is subtracted."""
    low, high = values.max() - total, values.max()
    for _ in range(200):
        middle = (low + high) / 2
        if np.maximum(values - middle, 0).sum() > total:
            low = middle
        else:
            high = middle
    return np.maximum(values - (low + high) / 2, 0)


arrays = hnp.arrays(
    np.float64, hnp.array_shapes(max_dims=3, max_side=5), elements=st.floats(-1e3, 1e3)
)


@settings(max_examples=50, deadline=None)
@given(arrays, st.floats(1e-3, 1e4))
def test_equals_bisection(values, total):
    projected = project_to_simplex(values, total=total)
    assert projected.shape == values.shape
    assert projected.min() >= 0
    assert projected.sum() == pytest.approx(total, rel=1e-12)
    np.testing.assert_allclose(projected, bisect_projection(values, total), atol=1e-9)


@settings(max_examples=50, deadline=None)
@given(arrays, st.floats(1e-3, 1e4), st.integers(0, 2**32 - 1))
def test_no_other_valid_point_is_closer(values, total, seed):
    projected = project_to_simplex(values, total=total)
    rng = np.random.default_rng(seed)
    other = rng.dirichlet(np.ones(values.size)).reshape(values.shape) * total
    # For a projection onto a convex set the angle at the projected point is never acute.
    inner = np.sum((values - projected) * (other - projected))
    assert inner <= 1e-9 * (1 + np.abs(values).max() + total) ** 2


@settings(max_examples=50, deadline=None)
@given(arrays, st.floats(1e-3, 1e4))
def test_projecting_twice_changes_nothing(values, total):
    once = project_to_simplex(values, total=total)
    np.testing.assert_allclose(project_to_simplex(once, total=total), once, atol=1e-9)


def test_by_hand():
    np.testing.assert_allclose(project_to_simplex(np.array([3.0, 1.0, -2.0]), total=2), [2, 0, 0])
    np.testing.assert_allclose(
        project_to_simplex(np.array([[3.0, 2.0], [1.0, -9.0]]), total=9), [[4, 3], [2, 0]]
    )


def test_valid_weights_stay():
    weights = np.array([[1.0, 0.0], [2.5, 4.0]])
    np.testing.assert_allclose(project_to_simplex(weights, total=7.5), weights, atol=1e-12)


def test_equal_values_share_equally():
    np.testing.assert_allclose(project_to_simplex(np.full(4, -7.0), total=2), np.full(4, 0.5))


def test_total_zero_gives_zeros():
    np.testing.assert_array_equal(project_to_simplex(np.array([[5.0, -1.0]]), total=0), [[0, 0]])


def test_one_value_becomes_the_total():
    np.testing.assert_array_equal(project_to_simplex(np.array([-3.0]), total=8), [8])


def test_total_far_below_the_values():
    np.testing.assert_array_equal(project_to_simplex(np.array([1e20, 0.0]), total=1), [1, 0])


def test_values_at_the_ends_of_the_range():
    np.testing.assert_array_equal(
        project_to_simplex(np.array([1.7e308, -1.7e308]), total=1), [1, 0]
    )


def test_input_is_left_alone():
    values = np.array([1.0, -1.0])
    project_to_simplex(values, total=3)
    assert values.tolist() == [1, -1]


@pytest.mark.parametrize("total", [-1.0, float("nan"), float("inf")])
def test_bad_total_is_refused(total):
    with pytest.raises(ParameterError, match="total must be a finite number >= 0"):
        project_to_simplex(np.ones(2), total=total)


@pytest.mark.parametrize("values", [np.empty(0), np.array([1.0, np.nan])], ids=["none", "nan"])
def test_bad_values_are_refused(values):
    with pytest.raises(ParameterError, match="values must be finite and at least one"):
        project_to_simplex(values, total=1)
