"""Maximum entropy by sampling: against proportional fitting, which finds it exactly."""

import itertools

import numpy as np

from splitmeans.synopsis import pairs
from splitmeans.synopsis.entropy_sampling import max_entropy_labels


def tables_of(grid):
    n_parties = grid.ndim
    return {
        (i, j): grid.sum(axis=tuple(axis for axis in range(n_parties) if axis not in (i, j)))
        for i, j in itertools.combinations(range(n_parties), 2)
    }


def share_of_cells(labels, shape):
    grid = np.zeros(shape)
    np.add.at(grid, tuple(labels.T), 1 / len(labels))
    return grid


def test_it_samples_what_proportional_fitting_finds():
    shape = (3, 4, 3)
    rng = np.random.default_rng(0)
    tables = tables_of(rng.gamma(0.5, size=shape) * 1000)
    total = tables[0, 1].sum()
    exact = pairs._fit(tables, shape, total=total) / total
    start = np.zeros((20_000, 3), dtype=np.int64)
    found = share_of_cells(max_entropy_labels(tables, start, deviation=0.0, rng=rng), shape)
    # 36 cells of 20,000 vectors: chance alone makes the sum of differences about 0.03.
    assert np.abs(found - exact).sum() < 0.08


def test_labels_that_never_meet_stay_apart():
    """Two segments that no label shares: vectors are of one or the other, as many as at first."""
    tables = {pair: np.diag([300.0, 700.0]) for pair in itertools.combinations(range(4), 2)}
    start = np.repeat([[0] * 4, [1] * 4], [1200, 2800], axis=0)
    start[::10, 0] = 1 - start[::10, 0]
    found = max_entropy_labels(tables, start, deviation=0.0, rng=np.random.default_rng(1))
    pure = found[(found == found[:, :1]).all(axis=1)]
    assert len(pure) > 0.99 * len(found)
    assert abs(np.mean(pure[:, 0]) - 0.7) < 0.02


def test_the_start_is_left_as_it_was_and_seeds_decide():
    tables = {(0, 1): np.array([[5.0, 1.0], [2.0, 8.0]])}
    start = np.zeros((100, 2), dtype=np.int64)
    first, second = (
        max_entropy_labels(tables, start, deviation=0.5, rng=np.random.default_rng(4))
        for _ in range(2)
    )
    assert not start.any()
    np.testing.assert_array_equal(first, second)


def test_a_label_without_users_and_parties_of_one_label():
    tables = {
        (0, 1): np.array([[10.0], [0.0], [30.0]]),
        (0, 2): np.array([[10.0, 0.0], [0.0, 0.0], [0.0, 30.0]]),
        (1, 2): np.array([[10.0, 30.0]]),
    }
    start = np.repeat([[0, 0, 0], [2, 0, 1]], [500, 1500], axis=0)
    found = max_entropy_labels(tables, start, deviation=0.0, rng=np.random.default_rng(0))
    assert np.count_nonzero(found[:, 0] == 1) < 20
    assert abs(np.mean(found[:, 2]) - 0.75) < 0.02
