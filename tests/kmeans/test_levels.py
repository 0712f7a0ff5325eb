"""Columns of levels as codes: the same k-means as on their features."""

import numpy as np
import pytest

from splitmeans.kmeans.distances import nearest_distance
from splitmeans.kmeans.levels import coded
from splitmeans.kmeans.weighted_kmeans import weighted_kmeans


def tables(n=900, *, n_levels=40, seed=0):
    """A number, a column of levels between -0.5 and 0.5, and another number."""
    rng = np.random.default_rng(seed)
    kinds = rng.integers(4, size=n)
    levels = np.where(
        ((kinds * 10 + rng.integers(10, size=n)) % n_levels)[:, np.newaxis] == np.arange(n_levels),
        0.5,
        -0.5,
    )
    numbers = kinds[:, np.newaxis] * [0.3, -0.2] + rng.normal(0, 0.1, (n, 2))
    points = np.hstack([numbers[:, :1], levels, numbers[:, 1:]])
    return points, rng.exponential(size=n), slice(1, 1 + n_levels)


def test_a_column_of_levels_is_one_code_and_comes_back_as_it_was():
    points, weights, own = tables()
    found = coded(points, weights, levels=[own])
    assert found.points.numbers.shape == (900, 2)
    assert found.points.codes[0].tolist() == points[:, own].argmax(axis=1).tolist()
    assert found.points.n_features == 42
    everyone = found.points.features(np.arange(900))
    np.testing.assert_allclose(found.features(everyone), points)


@pytest.mark.parametrize("spoil", [0.25, -0.5, 0.5])
def test_features_that_are_no_levels_stay_numbers(spoil):
    """A share, a point without a level, a point with two."""
    points, weights, own = tables()
    level = int(points[3, own].argmax())
    points[3, own.start + (level if spoil < 0.5 else (level + 1) % 40)] = spoil
    found = coded(points, weights, levels=[own])
    assert found.points.numbers.shape == (900, 42)
    assert len(found.points.codes) == 0


def test_few_levels_stay_numbers():
    points, weights, _ = tables(n_levels=5)
    assert coded(points, weights, levels=[slice(1, 6)]).points.numbers.shape == (900, 7)


@pytest.mark.parametrize("k", [3, 12])
def test_k_means_loses_nothing_by_codes(k):
    """Ties between points of equal numbers may go either way, so losses are compared."""
    points, weights, own = tables()
    losses = []
    for levels in ((), (own,)):
        rng = np.random.default_rng(k)
        centres = weighted_kmeans(points, weights, n_clusters=k, rng=rng, levels=levels)
        losses.append(float(weights @ nearest_distance(points, centres)))
        # Shares of levels are counted from the bottom and add up to one.
        np.testing.assert_allclose((centres[:, own] + 0.5).sum(axis=1), 1.0)
    assert losses[1] == pytest.approx(losses[0], rel=0.01)
