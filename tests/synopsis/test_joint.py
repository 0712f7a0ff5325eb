from dataclasses import dataclass

import numpy as np
import pytest

from splitmeans.errors import ParameterError
from splitmeans.synopsis.joint import joint_weights, mend_sums


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


def test_sums_are_not_mended_where_nobody_was_counted():
    """K-means finds no segment then, and every cell is of block -1."""
    nobody, estimate = np.zeros((2, 2, 2)), np.full((2, 2, 2), -5.0)
    blocks = np.full(8, -1)
    assert mend_sums(nobody, estimate, deviation=3.0, blocks=blocks).sum() == 0


def test_what_is_left_after_the_cut_keeps_the_total():
    """Cells below three deviations go; 18 users are in them, who are not lost."""
    table = Table(np.array([[100.0, 20.0], [-2.0, 50.0]]))
    weights = joint_weights(table, total=None, deviation=10.0)
    np.testing.assert_allclose(weights, np.array([[100, 0], [0, 50]]) * 168 / 150)


def test_sums_are_mended_where_the_cut_has_a_bias():
    """Block 0 lost 300 of 400 users in small cells; block 1 none of its 600."""
    estimate = np.array([[100.0, 100.0, 100.0, 100.0], [600.0, 0.0, 0.0, 0.0]])
    cut = np.array([[250.0, 0.0, 0.0, 0.0], [750.0, 0.0, 0.0, 0.0]])
    blocks = np.repeat([0, 1], 4)
    # (150^2 - 4) on average beyond the noise of four cells of variance 1: trusted to 22496/22500.
    mended = mend_sums(cut, estimate, deviation=1.0, blocks=blocks)
    np.testing.assert_allclose(mended.sum(axis=1), [400, 600], atol=0.05)
    # Noise that explains the difference leaves everything as it is.
    np.testing.assert_allclose(mend_sums(cut, estimate, deviation=75.0, blocks=blocks), cut)
    assert mended.sum() == pytest.approx(1000)


def test_a_block_without_users_stays_empty():
    estimate = np.array([-5.0, -3.0, 40.0])
    mended = mend_sums(
        np.array([0.0, 0.0, 32.0]), estimate, deviation=0.1, blocks=np.array([0, 0, 1])
    )
    np.testing.assert_allclose(mended, [0, 0, 32])
