"""Figures of the evaluation: hand-computed cases."""

import pytest

from splitmeans.errors import ParameterError
from splitmeans.paper.metrics import v_score, weight_error


def test_v_score_ignores_names_of_clusters():
    assert v_score([0, 0, 1, 1], [5, 5, 2, 2]) == 1.0
    assert v_score(["a", "a", "b", "b"], [0, 0, 0, 0]) == 0.0
    # One class split in two halves: homogeneity 1, completeness ln 2 / (1.5 ln 2).
    expected = 2 * (2 / 3) / (1 + 2 / 3)
    assert v_score([0, 0, 1, 1], [0, 1, 2, 2]) == pytest.approx(expected)


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
