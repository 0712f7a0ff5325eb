"""Weighted k-means returns the agreed number of centres, whatever the points are."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from splitmeans.errors import ParameterError
from splitmeans.kmeans.weighted_kmeans import n_different, weighted_kmeans


def cluster(points, weights, n_clusters, seed=0):
    return weighted_kmeans(
        np.array(points, dtype=float),
        np.array(weights, dtype=float),
        n_clusters=n_clusters,
        rng=np.random.default_rng(seed),
    )


def test_centres_are_weighted_means():
    # Two groups: {0, 2} with weights 3, 1 and {100, 104} with weights 1, 3.
    centres = cluster([[0], [2], [100], [104]], [3, 1, 1, 3], 2)
    assert sorted(centres.ravel().tolist()) == pytest.approx([0.5, 103.0])


def test_points_without_positive_weight_do_not_count():
    centres = cluster([[0], [2], [1000], [-1000]], [1, 1, 0, -5], 1)
    assert centres.tolist() == [[1.0]]


def test_all_points_count_equally_if_no_weight_is_positive():
    assert cluster([[0], [1], [5]], [0, -1, -2], 1).tolist() == [[2.0]]


def test_as_many_points_as_clusters_are_the_centres_heaviest_first():
    assert cluster([[1, 1], [2, 2], [3, 3]], [1, 5, 3], 3).tolist() == [[2, 2], [3, 3], [1, 1]]


def test_too_few_points_are_repeated_heaviest_first():
    assert cluster([[7], [8]], [1, 2], 5).tolist() == [[8], [7], [8], [7], [8]]
    assert cluster([[7], [8]], [1, 0], 3).tolist() == [[7], [7], [7]]


def test_equal_points_are_one_point_with_their_total_weight():
    assert cluster([[7], [8], [7], [7]], [1, 2, 1, 1], 3).tolist() == [[7], [8], [7]]


def test_many_equal_first_points_do_not_hide_later_ones():
    centres = cluster([[0]] * 100 + [[1], [2], [3]], [1] * 103, 2)
    # Best split: the zeros with 1, and 2 with 3.
    assert sorted(centres.ravel().tolist()) == pytest.approx([1 / 101, 2.5])


def test_same_seed_same_centres():
    points = np.random.default_rng(1).normal(size=(60, 3))
    first, second = (cluster(points, np.ones(60), 6, seed=3) for _ in range(2))
    assert (first == second).all()


def test_points_that_differ_in_the_last_digit_raise_no_warning():
    points = 1e6 + np.arange(6)[:, np.newaxis] * 1e-10
    assert len(np.unique(points)) > 3
    assert cluster(points, np.ones(6), 3).shape == (3, 1)


@given(
    points=st.lists(st.tuples(*[st.integers(-2, 2)] * 2), min_size=1, max_size=12),
    n_clusters=st.integers(1, 6),
    data=st.data(),
)
@settings(max_examples=40, deadline=None)
def test_always_the_agreed_number_inside_the_hull(points, n_clusters, data):
    weights = data.draw(st.lists(st.integers(-3, 9), min_size=len(points), max_size=len(points)))
    centres = cluster(points, weights, n_clusters)
    assert centres.shape == (n_clusters, 2)
    assert (centres >= np.min(points, axis=0) - 1e-9).all()
    assert (centres <= np.max(points, axis=0) + 1e-9).all()


@pytest.mark.parametrize(
    ("points", "weights", "n_clusters", "message"),
    [
        (np.empty((0, 2)), [], 2, "n >= 1"),
        ([1.0, 2.0], [1, 1], 2, "shape"),
        ([[1.0], [2.0]], [1, 1, 1], 1, "weights must have shape"),
        ([[1.0]], [1], 0, "n_clusters must be a whole number >= 1, got 0"),
    ],
)
def test_wrong_input_is_refused(points, weights, n_clusters, message):
    with pytest.raises(ParameterError, match=message):
        cluster(points, weights, n_clusters)


def test_different_places_are_counted_as_numpy_counts_rows():
    points = np.array([[0.0, 1.0], [-0.0, 1.0], [2.0, 1.0], [0.0, 1.0], [2.0, np.nextafter(1, 2)]])
    assert n_different(points) == 3 == len(np.unique(points, axis=0))
    assert n_different(points[:, ::-1].T) == 2
    assert n_different(np.zeros((4, 0))) == 1
    assert n_different(np.zeros((0, 3))) == 0
