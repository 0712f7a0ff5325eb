"""Pseudo-users: they keep the weights of cells, and lie where the parties' points of a cell are."""

import numpy as np
import pytest

from splitmeans.kernels.assign import nearest
from splitmeans.synopsis.build import all_cells
from splitmeans.synopsis.pseudo_users import place_users

CENTRES = [np.array([[-100], [100]]), np.array([[0, -50], [0, 50], [0, 200]])]


def points_of(rng, n=400):
    """Points of both parties; none is nearest to the second party's last centre."""
    return [
        rng.integers(-200, 200, (n, 1)),
        np.stack([rng.integers(-9, 9, n), rng.integers(-90, 90, n)], axis=1),
    ]


def placed(weights, *, n_users, seed=0, points=None):
    rng = np.random.default_rng(seed)
    weights = np.asarray(weights, dtype=np.float64)
    return place_users(
        all_cells(weights.shape),
        weights.ravel(),
        CENTRES,
        points or points_of(rng),
        rng=rng,
        n_users=n_users,
    )


def test_weights_of_cells_are_kept():
    weights = np.array([[600.0, 0.25, 0.0], [90.5, 300.0, 9.25]])
    labels, users, places = placed(weights, n_users=1000)
    assert labels.shape == (len(users), 2)
    assert places.shape == (len(users), 3)
    found = np.zeros(weights.shape)
    np.add.at(found, tuple(labels.T), users)
    np.testing.assert_allclose(found, weights, rtol=1e-12)
    # In proportion to weight, one at least: 600 / 1000, 0.25 / 1000, and none for an empty cell.
    counts = np.zeros(weights.shape, dtype=int)
    np.add.at(counts, tuple(labels.T), 1)
    assert counts.tolist() == [[600, 1, 0], [90, 300, 9]]


def test_places_are_points_of_the_cluster():
    rng = np.random.default_rng(3)
    points = points_of(rng)
    labels, _, places = placed(np.ones((2, 2)), n_users=500, points=points)
    for party, columns in ((0, slice(0, 1)), (1, slice(1, 3))):
        own = places[:, columns]
        assert nearest(np.ascontiguousarray(own), CENTRES[party]).tolist() == (
            labels[:, party].tolist()
        )
        assert {tuple(row) for row in own.tolist()} <= {
            tuple(row) for row in points[party].tolist()
        }


def test_points_are_taken_equally_often():
    """One party's ten points of a cluster stand for a hundred users: ten each."""
    points = [np.arange(-10, 0)[:, np.newaxis], np.array([[0, -50]])]
    _, _, places = placed([[1.0, 0, 0], [0, 0, 0]], n_users=100, points=points)
    assert np.unique(places[:, 0], return_counts=True)[1].tolist() == [10] * 10


def test_a_cluster_without_points_is_at_its_centre():
    _, _, places = placed([[0.0, 0, 5], [0, 0, 5]], n_users=50)
    assert {tuple(row) for row in places[:, 1:].tolist()} == {(0, 200)}


def test_nobody_is_one_user_of_weight_zero():
    labels, users, places = placed(np.zeros((2, 3)), n_users=50)
    assert users.tolist() == [0.0]
    assert labels.shape == (1, 2)
    assert places.shape == (1, 3)


def test_more_cells_than_users_keep_the_total():
    """Cells are drawn evenly: each as often as its weight says, up to one."""
    weights = np.array([[5.0, 1.0, 1.0], [1.0, 1.0, 1.0]])
    labels, users, _ = placed(weights, n_users=4)
    assert users.tolist() == [2.5] * 4
    first = int(np.sum((labels == 0).all(axis=1)))
    assert first == 2
    assert users.sum() == weights.sum()


@pytest.mark.parametrize("seed", range(5))
def test_equal_seeds_place_equally(seed):
    one, two = (placed([[3.0, 1, 0], [0, 2, 0]], n_users=60, seed=seed) for _ in range(2))
    for first, second in zip(one, two, strict=True):
        np.testing.assert_array_equal(first, second)
