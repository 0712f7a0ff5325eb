"""Cells scaled to the sizes that parties know better."""

import numpy as np

from splitmeans.synopsis.cluster_sizes import shares_of_clusters, with_cluster_sizes

LABELS = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])


def test_sizes_lie_between_cells_and_points() -> None:
    weights = np.array([10.0, 10.0, 10.0, 10.0])
    found = with_cluster_sizes(LABELS, weights, [np.array([0.7, 0.3]), np.array([0.5, 0.5])])
    # 0.7 of the way from 20 to 28, by hand; the other party's sizes and the total stay.
    np.testing.assert_allclose(found, [12.8, 12.8, 7.2, 7.2])


def test_empty_cells_stay_empty_and_nobody_stays_nobody() -> None:
    weights = np.array([30.0, 0.0, 0.0, 10.0])
    found = with_cluster_sizes(LABELS, weights, [np.array([0.5, 0.5]), np.array([0.5, 0.5])])
    assert found[1] == found[2] == 0
    np.testing.assert_allclose(found.sum(), 40)
    nobody = with_cluster_sizes(LABELS, np.zeros(4), [np.full(2, 0.5)] * 2)
    assert not nobody.any()


def test_points_count_where_they_are_nearest() -> None:
    points, centres = np.array([[1], [2], [9], [10]]), np.array([[0], [10], [99]])
    assert shares_of_clusters(points, centres).tolist() == [0.5, 0.5, 0.0]
