"""Pseudo-users: they keep the weights of cells, and lie where the parties' points of a cell are."""

import numpy as np

from splitmeans.kernels.assign import nearest
from splitmeans.synopsis.build import all_cells
from splitmeans.synopsis.decode import place_users

CENTRES = [np.array([[-100], [100]]), np.array([[0, -50], [0, 50], [0, 200]])]


def points_of(rng, n=400):
    """Points of both parties; none is nearest to the second party's last centre."""
    return [
        rng.integers(-200, 200, (n, 1)),
        np.stack([rng.integers(-9, 9, n), rng.integers(-90, 90, n)], axis=1),
    ]


def placed(weights, *, n_users, points=None, equal=False):
    rng = np.random.default_rng(0)
    weights = np.asarray(weights, dtype=np.float64)
    return place_users(
        all_cells(weights.shape),
        weights.ravel(),
        CENTRES,
        points or points_of(rng),
        rng=rng,
        n_users=n_users,
        equal=equal,
    )


def test_weights_of_cells_are_kept():
    weights = np.array([[600.0, 0.25, 0.0], [90.5, 300.0, 9.25]])
    users = placed(weights, n_users=1000)
    assert users.nodes.shape == (len(users.weights), 3)
    found = np.zeros(weights.shape)
    np.add.at(found, tuple(users.labels.T), users.weights)
    np.testing.assert_allclose(found, weights, rtol=1e-12)
    # In proportion to weight, one at least: 600 / 1000, 0.25 / 1000, and none for an empty cell.
    counts = np.zeros(weights.shape, dtype=int)
    np.add.at(counts, tuple(users.labels.T), 1)
    assert counts.tolist() == [[600, 1, 0], [90, 300, 9]]


def test_places_are_points_of_the_cluster():
    points = points_of(np.random.default_rng(3))
    users = placed(np.ones((2, 2)), n_users=500, points=points)
    for own, labels, centres, party_points in zip(
        users.places, users.labels.T, CENTRES, points, strict=True
    ):
        assert nearest(own, centres).tolist() == labels.tolist()
        assert set(map(tuple, own.tolist())) <= set(map(tuple, party_points.tolist()))


def test_points_are_taken_equally_often():
    """One party's ten points of a cluster stand for a hundred users: ten each."""
    points = [np.arange(-10, 0)[:, np.newaxis], np.array([[0, -50]])]
    users = placed([[1.0, 0, 0], [0, 0, 0]], n_users=100, points=points)
    assert np.unique(users.places[0], return_counts=True)[1].tolist() == [10] * 10


def test_a_cluster_without_points_is_at_its_centre():
    users = placed([[0.0, 0, 5], [0, 0, 5]], n_users=50)
    assert set(map(tuple, users.places[1].tolist())) == {(0, 200)}


def test_nobody_is_one_user_of_weight_zero():
    users = placed(np.zeros((2, 3)), n_users=50)
    assert users.weights.tolist() == [0.0]
    assert users.labels.shape == (1, 2)
    assert users.nodes.shape == (1, 3)


def test_more_cells_than_users_and_equal_weights_keep_the_total():
    """Cells are drawn evenly: each as often as its weight says, up to one."""
    weights = [[5.0, 1.0, 1.0], [1.0, 1.0, 1.0]]
    few = placed(weights, n_users=4)
    assert few.weights.tolist() == [2.5] * 4
    assert int(np.sum((few.labels == 0).all(axis=1))) == 2
    equal = placed(weights, n_users=20, equal=True)
    assert equal.weights.tolist() == [0.5] * 20
    assert int(np.sum((equal.labels == 0).all(axis=1))) == 10
