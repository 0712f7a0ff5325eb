"""How far noisy differences are believed, by hand."""

import numpy as np
import pytest

from splitmeans.local.belief import believed, believed_offsets


def test_the_share_that_is_not_noise():
    # Mean square 10, noise 2: signal 8 of 10.
    found = believed(np.array([[3.0, 1.0], [1.0, np.sqrt(29.0)]]), np.full((2, 2), np.sqrt(2.0)))
    np.testing.assert_allclose(found, 0.8)


def test_less_than_noise_is_not_believed():
    np.testing.assert_array_equal(believed(np.array([0.1, -0.2]), np.ones(2)), 0.0)


def test_a_cluster_that_stands_out_is_believed_by_itself():
    differences = np.zeros((50, 2))
    differences[7] = [30.0, 40.0]
    alone = believed_offsets(differences, np.ones((50, 2)))
    # Its squared length is 2,500, that of the noise 2, of which it is taken to be three times.
    np.testing.assert_allclose(alone[7], 1 - 6 / 2_500)
    together = believed(differences, np.ones((50, 2)))
    assert (alone[7] > together[7]).all()
    np.testing.assert_array_equal(np.delete(alone, 7, axis=0), np.delete(together, 7, axis=0))


@pytest.mark.parametrize("shape", [(0, 2), (3, 0)])
def test_nothing_to_believe(shape):
    assert believed_offsets(np.zeros(shape), np.ones(shape)).shape == shape
