"""Shrinkage weights of noisy values, by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from splitmeans.shrinkage import shrinkage


def test_the_share_that_is_not_noise():
    # Mean square 10, noise 2: signal 8 of 10.
    found = shrinkage(np.array([[3.0, 1.0], [1.0, np.sqrt(29.0)]]), np.sqrt(2.0))
    np.testing.assert_allclose(found, 0.8)


def test_differences_below_their_noise_have_no_weight():
    np.testing.assert_array_equal(shrinkage(np.array([0.1, -0.2]), np.ones(2)), 0.0)


def test_values_with_more_noise_say_less_about_the_model():
    # Noise 1 and 4, so weights 1 and 1/16: (8 + (2 - 4) / 16) / (17 / 16) = 126 / 17.
    found = shrinkage(np.array([3.0, np.sqrt(2.0)]), np.array([1.0, 2.0]))
    variance = 126 / 17
    np.testing.assert_allclose(found, [variance / (variance + 1), variance / (variance + 4)])


def test_a_model_is_off_by_more_where_counts_are_larger():
    # Surplus 12 + 3 over sizes 4 + 1: variances 12 and 3, noise 4.
    found = shrinkage(np.array([4.0, np.sqrt(7.0)]), 2.0, sizes=np.array([4.0, 1.0]))
    np.testing.assert_allclose(found, [12 / 16, 3 / 7])


def test_what_noise_alone_adds_is_left_out():
    # Surplus 16 + 16 - 2 of noise 1; noise alone adds sqrt(2 * 2) = 2 to it: mean variance 14.
    found = shrinkage(np.array([4.0, -4.0]), 1.0, beyond_chance=True)
    np.testing.assert_allclose(found, 14 / 15)


def test_exact_values_have_all_the_weight():
    np.testing.assert_array_equal(shrinkage(np.array([0.5, -2.0]), 0.0), 1.0)
    np.testing.assert_array_equal(shrinkage(np.zeros(2), 0.0), 0.0)


@pytest.mark.parametrize("shape", [(0, 2), (3, 0)])
def test_no_values_have_no_weights(shape):
    assert shrinkage(np.zeros(shape), np.ones(shape)).shape == shape


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20),
    st.floats(1e-3, 1e6),
    st.floats(0.1, 1e6),
)
def test_weights_are_shares(differences, deviation, size):
    found = shrinkage(np.array(differences), deviation, sizes=size)
    assert ((found >= 0) & (found <= 1)).all()
