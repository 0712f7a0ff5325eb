"""Metrics: hand-computed cases, and the chunked loss against a plain one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from splitmeans.simulate.evaluation import assign_labels, normalised_loss

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
