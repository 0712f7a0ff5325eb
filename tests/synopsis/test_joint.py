from dataclasses import dataclass

import numpy as np
import pytest

from splitmeans.errors import ParameterError
from splitmeans.synopsis.joint import joint_weights


@dataclass
class Table:
    """An estimator that returns a fixed array for all parties together."""

    estimate: np.ndarray

    @property
    def n_local_clusters(self):
        return self.estimate.shape

    def one(self, party):
        raise AssertionError("joint weights need no single sizes")

    def joint(self, parties):
        assert list(parties) == list(range(self.estimate.ndim))
        return self.estimate


def test_estimate_is_projected_onto_the_total():
    weights = joint_weights(Table(np.array([[3.0, 2.0], [1.0, -9.0]])), total=9)
    np.testing.assert_allclose(weights, [[4, 3], [2, 0]])


def test_without_a_total_the_sum_of_the_estimate_stays():
    weights = joint_weights(Table(np.array([[3.0, -1.0], [1.0, 2.0]])), total=None)
    np.testing.assert_allclose(weights, [[3 - 1 / 3, 0], [2 / 3, 5 / 3]])


def test_a_negative_sum_gives_zeros():
    weights = joint_weights(Table(np.array([[-3.0, 1.0]])), total=None)
    np.testing.assert_array_equal(weights, [[0, 0]])


def test_a_grid_that_is_too_large_is_refused_before_it_is_estimated():
    class Huge(Table):
        n_local_clusters = (255, 255, 255)

    with pytest.raises(ParameterError, match="at most 10000000 cells, got 16581375"):
        joint_weights(Huge(np.zeros(1)), total=1)


def test_what_is_left_after_the_cut_keeps_the_total():
    """Cells up to two deviations go; 18 users are in them, who are not lost."""
    table = Table(np.array([[100.0, 20.0], [-2.0, 50.0]]))
    weights = joint_weights(table, total=None, deviation=10.0)
    np.testing.assert_allclose(weights, np.array([[100, 0], [0, 50]]) * 168 / 150)


def test_the_cut_is_the_highest_that_leaves_most_users():
    """Of 200 users 160 are in cells above 3.5 deviations, 194 in those above 3: that is the cut."""
    table = Table(np.array([[160.0, 34.0], [-20.0, 26.0]]))
    weights = joint_weights(table, total=None, deviation=10.0)
    np.testing.assert_allclose(weights, np.array([[160, 34], [0, 0]]) * 200 / 194)


def test_a_cell_of_three_deviations_far_from_all_others_is_noise():
    """Above 3.5 deviations there are 1,000 of 1,033 users, so the cell of 33 goes."""
    table = Table(np.array([[500.0, 0.0, 33.0], [0.0, 500.0, 0.0]]))
    weights = joint_weights(table, total=None, deviation=10.0)
    assert weights[0, 2] == 0
    assert weights.sum() == pytest.approx(1033)


def test_nothing_is_cut_where_noise_is_all_there_is():
    table = Table(np.array([[15.0, 12.0], [14.0, -1.0]]))
    weights = joint_weights(table, total=None, deviation=10.0)
    np.testing.assert_allclose(weights, [[15 - 1 / 3, 12 - 1 / 3], [14 - 1 / 3, 0]])


@pytest.mark.parametrize("deviation", [-1.0, float("nan")])
def test_a_deviation_that_is_none_is_refused(deviation):
    with pytest.raises(ParameterError, match="deviation"):
        joint_weights(Table(np.ones((2, 2))), total=None, deviation=deviation)
