"""Tables that the cut would take users from: when they are softened, and what that gains."""

import numpy as np
import pytest

from splitmeans.synopsis.pairs import max_entropy_weights
from splitmeans.synopsis.softening import softened_weights

from .test_pairs import Table, clustered, error


def smooth(*, n_parties=4, width=8, n=20_000, correlation=0.5, seed=0):
    """Users whose labels are ranges of normal columns that depend on each other; no gaps."""
    rng = np.random.default_rng(seed)
    cause = rng.standard_normal((n, 1))
    own = rng.standard_normal((n, n_parties))
    columns = np.sqrt(correlation) * cause + np.sqrt(1 - correlation) * own
    labels = columns.argsort(axis=0).argsort(axis=0) * width // n
    cells = np.zeros((width,) * n_parties)
    np.add.at(cells, tuple(labels.T), 1.0)
    return cells


def softened(cells, *, deviation, seed=0):
    estimator = Table(cells, deviation=deviation, seed=seed)
    return softened_weights(
        estimator, deviation=deviation, n_classes=10, rng=np.random.default_rng(seed)
    )


def cut(cells, *, deviation, seed=0):
    return max_entropy_weights(Table(cells, deviation=deviation, seed=seed), deviation=deviation)


def test_spread_users_are_counted_better_under_strong_noise():
    cells = smooth()
    gains = [
        error(softened(cells, deviation=150.0, seed=seed), cells)
        / error(cut(cells, deviation=150.0, seed=seed), cells)
        for seed in range(4)
    ]
    assert np.mean(gains) < 0.95


@pytest.mark.parametrize("deviation", [20.0, 70.0])
def test_clear_segments_are_cut_as_before(deviation):
    cells = clustered(n_parties=4, width=8)
    np.testing.assert_array_equal(
        softened(cells, deviation=deviation), cut(cells, deviation=deviation)
    )


def test_what_classes_do_not_explain_is_cut_as_before():
    # Labels of two parties are the same, of which a few classes can say little.
    cells = np.zeros((30, 30, 2))
    cells[np.arange(30), np.arange(30)] = 300.0
    estimator = Table(cells, deviation=20.0)
    rng = np.random.default_rng(0)
    found = softened_weights(estimator, deviation=20.0, n_classes=4, rng=rng)
    np.testing.assert_array_equal(found, cut(cells, deviation=20.0))


def test_weights_are_users_under_any_noise():
    cells = smooth(n_parties=3, width=5, n=2_000)
    for deviation in (5.0, 100.0, 3_000.0):
        for seed in range(5):
            found = softened(cells, deviation=deviation, seed=seed)
            assert found.shape == cells.shape
            assert np.isfinite(found).all()
            assert (found >= 0).all()
            expected = cut(cells, deviation=deviation, seed=seed).sum()
            assert found.sum() == pytest.approx(expected)


def test_two_parties_and_unknown_noise_are_left_alone():
    rng = np.random.default_rng(0)
    two = Table(smooth(n_parties=2), deviation=50.0)
    np.testing.assert_array_equal(
        softened_weights(two, deviation=50.0, n_classes=10, rng=rng),
        max_entropy_weights(two, deviation=50.0),
    )
    three = Table(smooth(n_parties=3, width=4))
    np.testing.assert_array_equal(
        softened_weights(three, deviation=None, n_classes=10, rng=rng), max_entropy_weights(three)
    )
