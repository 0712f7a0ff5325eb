import numpy as np
import pytest

from splitmeans.kernels.points import as_points
from splitmeans.kmeans.distances import nearest_distance
from splitmeans.kmeans.relocation import relocated
from splitmeans.kmeans.weighted_kmeans import weighted_kmeans


def clusters_apart(*, k, per_cluster=20, seed=0):
    """Points of k clusters of standard deviation 0.01 at whole numbers of a plane's grid."""
    rng = np.random.default_rng(seed)
    side = int(np.ceil(np.sqrt(k)))
    truth = np.stack(np.divmod(np.arange(k), side), axis=1).astype(float)
    points = np.repeat(truth, per_cluster, axis=0)
    return points + 0.01 * rng.standard_normal(points.shape), truth


def loss(points, weights, centres):
    return float(weights @ nearest_distance(points, centres))


def test_a_centre_too_many_goes_where_one_is_missing():
    """Four points on a line: two centres share the first place, one stands between the last two."""
    points = np.array([[0.0], [0.2], [5.0], [9.0]])
    stuck = np.array([[0.0], [0.2], [7.0]])
    found = relocated(as_points(points, np.ones(4)), stuck)
    np.testing.assert_allclose(np.sort(found.ravel()), [0.1, 5.0, 9.0])


def test_weights_count():
    """With this little weight the far point is not worth a centre of its own."""
    points = np.array([[0.0], [1.0], [5.0], [9.0]])
    weights = np.array([100.0, 100.0, 1.0, 1.0])
    at_rest = np.array([[0.0], [1.0], [7.0]])
    np.testing.assert_allclose(relocated(as_points(points, weights), at_rest), at_rest)


@pytest.mark.parametrize("k", [5, 20, 50])
def test_clusters_apart_are_all_found_from_one_start(k):
    points, truth = clusters_apart(k=k)
    weights = np.ones(len(points))
    # All starts in one cluster: Lloyd's steps alone would stay near it.
    found = relocated(as_points(points, weights), points[:k] if k <= 20 else points[: 2 * k : 2])
    assert loss(points, weights, found) < 1.1 * loss(points, weights, truth)


def test_the_loss_never_grows_and_nothing_given_changes():
    rng = np.random.default_rng(3)
    points, weights = rng.standard_normal((400, 3)), rng.random(400) + 0.1
    before = (points.copy(), weights.copy())
    start = weighted_kmeans(points, weights, n_clusters=12, rng=rng, starts=1)
    kept = start.copy()
    found = relocated(as_points(points, weights), start)
    assert found.shape == (12, 3)
    assert loss(points, weights, found) <= loss(points, weights, start) * (1 + 1e-12)
    for given, copy in zip((points, weights, start), (*before, kept), strict=True):
        np.testing.assert_array_equal(given, copy)


@pytest.mark.parametrize("k", [1, 2])
def test_one_or_two_centres_stay(k):
    points = np.arange(6.0).reshape(-1, 1)
    centres = points[:k].copy()
    np.testing.assert_array_equal(relocated(as_points(points, np.ones(6)), centres), centres)


def test_centres_on_one_place_are_no_problem():
    points = np.array([[0.0], [0.0], [1.0], [2.0], [3.0]])
    found = relocated(as_points(points, np.ones(5)), np.zeros((4, 1)))
    np.testing.assert_allclose(np.sort(found.ravel()), [0.0, 1.0, 2.0, 3.0])
