"""Counts by bins within clusters, against a plain twin."""

import numpy as np
import pytest

from splitmeans._types import NO_VALUE
from splitmeans.errors import ParameterError
from splitmeans.kernels.cluster_bins import cluster_bins

EDGES, BINS, LEVELS = np.array([-3, 0, 4]), np.array([4, 3]), np.array([0, 3])
PAIRS = np.array([[0, 1]])


def counted(rows, labels, n_clusters=2, pairs=PAIRS):
    return cluster_bins(
        np.array(rows),
        np.array(labels, dtype=np.int32),
        n_clusters=n_clusters,
        edges=EDGES,
        bins=BINS,
        levels=LEVELS,
        pairs=pairs,
    )


def test_by_hand() -> None:
    # -3 is on an edge and belongs to the bin above it.
    found = counted([[-4, 0], [-3, 2], [9, 2], [NO_VALUE, 1]], [0, 0, 1, 1])
    assert found[:7].tolist() == [1, 1, 0, 0, 1, 0, 1]
    assert found[7:14].tolist() == [0, 0, 0, 1, 0, 1, 1]
    # The last row has no number, so it is in no cell of the pair.
    assert found[14:].reshape(4, 3).tolist() == [[1, 0, 0], [0, 0, 1], [0, 0, 0], [0, 0, 1]]


def test_agrees_with_numpy_and_parts_add_up() -> None:
    rng = np.random.default_rng(3)
    rows = np.column_stack([rng.integers(-9, 10, 500), rng.integers(-1, 4, 500)])
    rows[rng.random(500) < 0.1, 0] = NO_VALUE
    labels = rng.integers(0, 5, 500)
    found = counted(rows, labels, n_clusters=5)
    numbers = np.where(rows[:, 0] == NO_VALUE, -1, np.searchsorted(EDGES, rows[:, 0], "right"))
    # A level beyond the last stands for equal shares of all, and is in no bin.
    kinds = np.where((rows[:, 1] < 0) | (rows[:, 1] > 2), -1, rows[:, 1])
    for cluster in range(5):
        inside = labels == cluster
        own = found[7 * cluster : 7 * cluster + 7]
        assert own[:4].tolist() == [int((numbers[inside] == b).sum()) for b in range(4)]
        assert own[4:].tolist() == [int((kinds[inside] == b).sum()) for b in range(3)]
    table = [[int(((numbers == a) & (kinds == b)).sum()) for b in range(3)] for a in range(4)]
    assert found[35:].reshape(4, 3).tolist() == table
    halves = counted(rows[:200], labels[:200], 5) + counted(rows[200:], labels[200:], 5)
    np.testing.assert_array_equal(halves, found)


def test_a_row_moves_one_bin_of_each_column_and_one_cell_of_each_pair() -> None:
    rows, labels = [[1, 1], [-8, 2], [5, 0]], [0, 1, 1]
    change = counted(rows, labels) - counted(rows[:2], labels[:2])
    assert sorted(change[change != 0].tolist()) == [1, 1, 1]


def test_rows_of_another_shape_are_refused() -> None:
    with pytest.raises(ParameterError, match="rows must be int64 of shape"):
        counted([[1]], [0])
