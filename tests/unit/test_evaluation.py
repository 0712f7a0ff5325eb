"""Metrics: hand-computed cases, and the chunked loss against a plain one."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from splitmeans.errors import ParameterError
from splitmeans.evaluation import (
    Evaluation,
    assign_labels,
    evaluate,
    normalised_loss,
    true_cell_weights,
    v_measure,
    weight_error,
)

ROWS = np.array([[0.0, 0.0], [0.0, 2.0], [4.0, 0.0], [4.0, 4.0]])
CENTRES = np.array([[0.0, 1.0], [4.0, 1.0]])


def test_loss_and_labels_by_hand():
    # Squared distances to the nearest centre: 1, 1, 1, 9.
    assert normalised_loss(ROWS, CENTRES) == 3.0
    assert assign_labels(ROWS, CENTRES).tolist() == [0, 0, 1, 1]
    assert assign_labels(ROWS, CENTRES).dtype == np.int32


def test_ties_go_to_the_lowest_index():
    assert assign_labels(np.array([[0.0]]), np.array([[1.0], [-1.0], [1.0]])).tolist() == [0]


def plain_distances(rows, centres):
    return ((rows[:, np.newaxis] - centres) ** 2).sum(axis=2)


@given(n=st.integers(1, 30), k=st.integers(1, 5), d=st.integers(1, 4), seed=st.integers(0, 999))
@settings(max_examples=50, deadline=None)
def test_loss_and_labels_equal_the_plain_form(n, k, d, seed):
    rng = np.random.default_rng(seed)
    rows, centres = rng.uniform(-1, 1, (n, d)), rng.uniform(-1, 1, (k, d))
    distances = plain_distances(rows, centres)
    assert normalised_loss(rows, centres) == pytest.approx(distances.min(axis=1).mean())
    assert assign_labels(rows, centres).tolist() == distances.argmin(axis=1).tolist()


def test_many_chunks():
    rng = np.random.default_rng(0)
    rows, centres = rng.uniform(-1, 1, (10_001, 3)), rng.uniform(-1, 1, (4, 3))
    distances = plain_distances(rows, centres)
    assert normalised_loss(rows, centres) == pytest.approx(distances.min(axis=1).mean(), rel=1e-12)
    assert np.array_equal(assign_labels(rows, centres), distances.argmin(axis=1))


def test_no_cancellation_far_from_the_origin():
    # The expanded form |x|^2 - 2xc + |c|^2 loses all digits here.
    rows = np.array([[1e8 + 1.0], [1e8 - 1.0]])
    assert normalised_loss(rows, np.array([[1e8]])) == 1.0


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


def test_evaluate_collects_all_figures():
    central = np.array([[0.0, 1.0], [4.0, 2.0]])
    # Central loss (1 + 1 + 4 + 4) / 4 = 2.5.
    found = evaluate(ROWS, CENTRES, central_centres=central, weight_error=0.25)
    assert found == Evaluation(loss=3.0, central_loss=2.5, v_measure=1.0, weight_error=0.25)
    assert found.loss_ratio == 1.2
    assert dataclasses.asdict(found)["loss_ratio"] == 1.2
    worse = evaluate(ROWS, CENTRES, central_centres=central, labels_true=[0, 1, 0, 1])
    assert worse.v_measure == pytest.approx(0.0, abs=1e-12)
    assert worse.weight_error is None


def test_ratio_of_perfect_clusterings():
    assert Evaluation(loss=0.0, central_loss=0.0, v_measure=1.0).loss_ratio == 1.0
    assert Evaluation(loss=0.1, central_loss=0.0, v_measure=1.0).loss_ratio == math.inf
