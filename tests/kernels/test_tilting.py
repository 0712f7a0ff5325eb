"""Tilted weights against a plain twin, and sums that no number would hold."""

import numpy as np
import pytest

from splitmeans.kernels.tilting import tilted_sums


def _plain(features, groups, slopes, logs):
    moved = logs + np.array(
        [
            sum(own @ slopes[group] for own, group in zip(point, where, strict=True))
            for point, where in zip(features, groups, strict=True)
        ]
    )
    largest = moved.max()
    shares = np.exp(moved - largest)
    total = shares.sum()
    sums = np.zeros(slopes.shape)
    for share, point, where in zip(shares / total, features, groups, strict=True):
        for own, group in zip(point, where, strict=True):
            sums[group] += share * own
    return largest + np.log(total), shares / total, sums


@pytest.mark.parametrize("shape", [(1, 1, 1), (7, 2, 3), (200, 5, 17)])
def test_tilted_sums_are_those_of_the_plain_twin(shape):
    rng = np.random.default_rng(len(shape) + shape[0])
    features, logs = rng.normal(size=shape), rng.normal(size=shape[0])
    groups, slopes = rng.integers(4, size=shape[:2]), rng.normal(size=(4, shape[2]))
    found, expected = (own(features, groups, slopes, logs) for own in (tilted_sums, _plain))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)


def test_without_slopes_shares_stay_and_means_are_plain():
    features = np.array([[[1.0]], [[2.0]], [[6.0]]])
    total, shares, means = tilted_sums(
        features, np.array([[0], [0], [1]]), np.zeros((2, 1)), np.log([0.5, 0.25, 0.25])
    )
    assert total == pytest.approx(0.0)
    np.testing.assert_allclose(shares, [0.5, 0.25, 0.25])
    np.testing.assert_allclose(means, [[1.0], [1.5]])


def test_exponents_beyond_all_numbers_are_no_matter():
    features = np.array([[[0.0]], [[1.0]], [[2.0]]])
    total, shares, means = tilted_sums(
        features, np.zeros((3, 1), dtype=np.int64), np.array([[5_000.0]]), np.zeros(3)
    )
    assert total == pytest.approx(10_000.0)
    np.testing.assert_array_equal(shares, [0.0, 0.0, 1.0])
    np.testing.assert_array_equal(means, [[2.0]])
