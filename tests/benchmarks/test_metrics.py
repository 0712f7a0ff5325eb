"""Metrics that need all parties' rows: hand-computed cases."""

import numpy as np
import pytest

from benchmarks.metrics import true_cell_weights, v_measure, weight_error
from splitmeans.errors import ParameterError


def test_v_measure_ignores_names_of_clusters():
    assert v_measure([0, 0, 1, 1], [5, 5, 2, 2]) == 1.0
    assert v_measure(["a", "a", "b", "b"], [0, 0, 0, 0]) == 0.0
    # One class split in two halves: homogeneity 1, completeness ln 2 / (1.5 ln 2).
    expected = 2 * (2 / 3) / (1 + 2 / 3)
    assert v_measure([0, 0, 1, 1], [0, 1, 2, 2]) == pytest.approx(expected)


def test_weight_error_by_hand():
    assert weight_error([[1.0, 3.0]], [[2, 2]]) == 0.5
    assert weight_error([2, 2], [2, 2]) == 0.0
    # Everything in the wrong cell is the worst that weights with the right sum can do.
    assert weight_error([4, 0], [0, 4]) == 2.0


def test_weight_error_rules():
    with pytest.raises(ParameterError, match=r"weights must have the shape of true_weights \(2,\)"):
        weight_error([1.0], [1, 1])
    with pytest.raises(ParameterError, match="true_weights must count at least one user"):
        weight_error([1.0], [0])


def test_true_cell_weights_by_hand():
    labels = [np.array([0, 0, 1, 1]), np.array([2, 2, 0, 1])]
    assert true_cell_weights(labels, [2, 3]).tolist() == [[0, 0, 2], [1, 1, 0]]
    assert true_cell_weights(labels, (2, 3)).dtype == np.int64
    with pytest.raises(ParameterError, match="one number for each of 2 parties, got 1"):
        true_cell_weights(labels, [2])
