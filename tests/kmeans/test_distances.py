"""Squared distances against three plain loops."""

import numpy as np
import pytest

from splitmeans.kmeans.distances import (
    distance_chunks,
    nearest_distance,
    squared_distances,
)


def naive(points: np.ndarray, centres: np.ndarray) -> np.ndarray:
    found = np.zeros((len(points), len(centres)))
    for i, point in enumerate(points):
        for j, centre in enumerate(centres):
            found[i, j] = sum((a - b) ** 2 for a, b in zip(point, centre, strict=True))
    return found


def test_by_hand() -> None:
    points, centres = np.array([[0.0, 0.0], [3.0, 4.0]]), np.array([[0.0, 0.0], [0.0, 4.0]])
    assert squared_distances(points, centres).tolist() == [[0, 16], [25, 9]]
    assert nearest_distance(points, centres).tolist() == [0, 9]


@pytest.mark.parametrize(("n", "k", "d"), [(0, 2, 3), (5, 0, 3), (7, 1, 1), (40, 6, 17)])
def test_all_forms_are_the_plain_loops(n: int, k: int, d: int) -> None:
    rng = np.random.default_rng([n, k, d])
    points, centres = rng.normal(size=(n, d)), rng.normal(size=(k, d))
    expected = naive(points, centres)
    np.testing.assert_allclose(squared_distances(points, centres), expected, rtol=1e-13)


@pytest.mark.parametrize("chunk_rows", [1, 7, 40, 41])
def test_chunks_have_the_same_bits(chunk_rows: int) -> None:
    rng = np.random.default_rng(5)
    points, centres = rng.normal(size=(40, 3)), rng.normal(size=(4, 3))
    found = np.full((40, 4), np.nan)
    for rows, distances in distance_chunks(points, centres, chunk_rows=chunk_rows):
        found[rows] = distances
    np.testing.assert_array_equal(found, squared_distances(points, centres))


def test_differences_do_not_cancel() -> None:
    """Why the square is not expanded: far from the origin that loses what lies near a centre."""
    points, centres = np.array([[1e8 + 1.0]]), np.array([[1e8]])
    assert squared_distances(points, centres).item() == 1.0
    expanded = points**2 + centres**2 - 2 * points @ centres
    assert expanded.item() != 1.0
