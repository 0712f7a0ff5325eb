import time

import numpy as np
import pytest

from splitmeans.errors import ParameterError
from splitmeans.synopsis.choose_k import ChooseK, choose_k, even_spread


def blobs(*, k, per=30, d=4, std=0.05, seed=0):
    """Points around k corners of a hypercube, with random weights."""
    rng = np.random.default_rng(seed)
    corners = rng.permutation(np.array(np.meshgrid(*[[-0.8, 0.8]] * d)).reshape(d, -1).T)[:k]
    points = np.repeat(corners, per, axis=0) + std * rng.standard_normal((k * per, d))
    return points, rng.uniform(1, 20, size=k * per)


def choose(points, weights, ks, **options):
    return choose_k(points, weights, ks=ks, rng=np.random.default_rng(0), **options)


def test_by_hand():
    """Two pairs of points on a line, weights 1 and 3; every distance can be done on paper."""
    points = np.array([[0.0], [0.4], [2.0], [2.4]])
    weights = np.array([1.0, 1.0, 3.0, 3.0])
    found = choose(points, weights, [2])
    # Centres 0.2 and 2.2; a = 0.2 for all, b = 2.2, 1.8, 1.8, 2.2.
    assert found.ks == (2,)
    assert found.losses == pytest.approx((0.04,))
    expected = (2.0 / 2.2 + 1.6 / 1.8 + 3 * 1.6 / 1.8 + 3 * 2.0 / 2.2) / 8
    assert found.silhouettes == pytest.approx((expected,))


def test_spread_by_hand():
    points, weights = np.array([[0.0], [3.0]]), np.array([1.0, 1.0])
    without, with_spread = (
        choose(points, weights, [2], node_spread=spread) for spread in (None, np.array([16.0, 0.0]))
    )
    assert without.silhouettes == (1.0,)
    # The first node's users: a = sqrt(0 + 16), b = sqrt(9 + 16).
    assert with_spread.silhouettes == pytest.approx(((1 / 5 + 1) / 2,))
    assert with_spread.losses == without.losses == (0.0,)


@pytest.mark.parametrize("k", [2, 3, 5, 8])
def test_separated_clusters_are_counted(k):
    points, weights = blobs(k=k)
    found = choose(points, weights, range(2, 12))
    assert found.suggested == k
    assert found.ks == tuple(range(2, 12))
    assert all(0 <= value <= 1 for value in found.silhouettes)


def test_losses_fall():
    points, weights = blobs(k=4)
    losses = choose(points, weights, [2, 3, 4, 8]).losses
    assert list(losses) == sorted(losses, reverse=True)


def test_smallest_of_nearly_equal_silhouettes_is_suggested():
    near = ChooseK(ks=(2, 3, 4), losses=(3.0, 2.0, 1.0), silhouettes=(0.5, 0.795, 0.8))
    assert near.suggested == 3
    apart = ChooseK(ks=(2, 3, 4), losses=(3.0, 2.0, 1.0), silhouettes=(0.5, 0.78, 0.8))
    assert apart.suggested == 4


def test_repr_is_a_table():
    text = repr(ChooseK(ks=(2, 3), losses=(0.5, 0.25), silhouettes=(0.5, 0.75)))
    assert text.splitlines() == [
        "   k       loss  silhouette",
        "   2        0.5       0.500  ############",
        "   3       0.25       0.750  ##################  <- suggested",
    ]


def test_order_and_repeats_of_ks_do_not_matter():
    points, weights = blobs(k=3)
    first, second = choose(points, weights, [4, 2, 3, 2]), choose(points, weights, range(2, 5))
    assert first == second


def test_empty_nodes_do_not_count():
    points, weights = blobs(k=3)
    more = np.vstack([points, [[50.0] * 4]])
    assert choose(more, np.append(weights, 0.0), [2, 3]) == choose(points, weights, [2, 3])


def test_more_clusters_than_nodes():
    found = choose(np.array([[0.0], [1.0]]), np.array([1.0, 2.0]), [2, 5])
    assert found.losses == (0.0, 0.0)
    assert found.suggested == 2
    single = choose(np.zeros((1, 1)), np.ones(1), [2])
    assert single.silhouettes == (0.0,)


def test_bad_arguments_are_refused():
    points, weights = blobs(k=2)
    with pytest.raises(ParameterError, match="at least one number of clusters, got none"):
        choose(points, weights, [])
    with pytest.raises(ParameterError, match="k must be a whole number >= 2, got 1"):
        choose(points, weights, [1, 2])
    with pytest.raises(ParameterError, match="weights must count at least one user"):
        choose(points, np.zeros(len(points)), [2])
    with pytest.raises(ParameterError, match="must be of equal length, at least one"):
        ChooseK(ks=(2,), losses=(), silhouettes=(0.5,))


def test_even_spread_by_hand():
    centres = np.array([[0.0], [0.6], [np.nan], [1.8]])
    np.testing.assert_allclose(even_spread(centres), np.array([0.36, 0.36, 0, 1.44]) / 12)
    assert even_spread(np.zeros((1, 2))).tolist() == [0]


def test_six_hundred_nodes_are_fast():
    rng = np.random.default_rng(0)
    start = time.process_time()
    choose(rng.uniform(-1, 1, size=(625, 8)), rng.uniform(0, 50, size=625), range(2, 16))
    assert time.process_time() - start < 5  # measured: 0.5 s, plus a second to load scikit-learn
