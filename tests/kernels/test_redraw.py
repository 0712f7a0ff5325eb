"""Redrawing labels: against a naive twin, and that it samples the distribution it should."""

import itertools

import numpy as np
import pytest

from splitmeans.kernels.redraw import count_pairs, redraw_labels

SHAPE = (3, 2, 4)
STARTS = np.array([0, 3, 5, 9])


def random_ties(seed):
    rng = np.random.default_rng(seed)
    ties = rng.normal(size=(9, 9))
    return rng.normal(size=9), ties + ties.T


def naive_redraw(labels, *, sizes, ties, uniforms):
    labels = labels.copy()
    for user in range(len(labels)):
        for party, width in enumerate(SHAPE):
            own = np.arange(STARTS[party], STARTS[party] + width)
            others = [STARTS[i] + labels[user, i] for i in range(3) if i != party]
            odds = np.exp(sizes[own] + ties[others][:, own].sum(axis=0))
            below = np.cumsum(odds) / odds.sum()
            labels[user, party] = np.searchsorted(below, uniforms[user, party], side="right")
    return labels


def test_it_equals_a_naive_twin():
    rng = np.random.default_rng(0)
    sizes, ties = random_ties(1)
    labels = np.stack([rng.integers(width, size=200) for width in SHAPE], axis=1)
    uniforms = rng.random(labels.shape)
    expected = naive_redraw(labels, sizes=sizes, ties=ties, uniforms=uniforms)
    redraw_labels(labels, sizes=sizes, ties=ties, starts=STARTS, uniforms=uniforms)
    np.testing.assert_array_equal(labels, expected)


def test_many_rounds_give_the_distribution():
    """24 cells, 100,000 vectors: five deviations of a share are 0.008; fails once in 10^5."""
    rng = np.random.default_rng(3)
    sizes, ties = random_ties(2)
    labels = np.zeros((100_000, 3), dtype=np.int64)
    for _ in range(40):
        redraw_labels(
            labels, sizes=sizes, ties=ties, starts=STARTS, uniforms=rng.random((10**5, 3))
        )
    expected = np.zeros(SHAPE)
    for cell in np.ndindex(SHAPE):
        numbers = STARTS[:3] + cell
        tied = sum(ties[a, b] for a, b in itertools.combinations(numbers, 2))
        expected[cell] = np.exp(sizes[numbers].sum() + tied)
    expected /= expected.sum()
    found = np.zeros(SHAPE)
    np.add.at(found, tuple(labels.T), 1 / len(labels))
    assert np.abs(found - expected).max() < 0.008


def test_huge_ties_are_no_overflow():
    ties = np.zeros((9, 9))
    ties[0, 4] = ties[4, 0] = 1e4
    labels = np.zeros((5, 3), dtype=np.int64)
    uniforms = np.full((5, 3), 0.999)
    redraw_labels(labels, sizes=np.zeros(9), ties=ties, starts=STARTS, uniforms=uniforms)
    # The first party's label is drawn while the second's is 0, which is not tied to it.
    assert labels.tolist() == [[2, 1, 3]] * 5


def test_pairs_are_counted_by_hand():
    counts = count_pairs(np.array([[0, 1, 3], [0, 1, 0], [2, 0, 3]]), starts=STARTS)
    assert counts[0, 4] == counts[4, 0] == 2
    assert counts[2, 3] == counts[3, 2] == 1
    assert counts[4, 8] == counts[8, 4] == 1
    assert counts[2, 8] == 1
    assert counts.sum() == 2 * 3 * 3
    assert counts[:3, :3].sum() == 0


@pytest.mark.parametrize("mark", [0.0, np.nextafter(1.0, 0.0)])
def test_the_outermost_draws_are_labels(mark):
    labels = np.zeros((1, 3), dtype=np.int64)
    redraw_labels(
        labels,
        sizes=np.zeros(9),
        ties=np.zeros((9, 9)),
        starts=STARTS,
        uniforms=np.full((1, 3), mark),
    )
    assert labels.tolist() == [[0, 0, 0] if mark == 0 else [2, 1, 3]]
