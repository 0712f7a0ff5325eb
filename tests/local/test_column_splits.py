"""Splitting columns into intervals: by hand, and against trying all cuts."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from splitmeans.local.column_splits import best_cuts, split_columns


def naive_cost(weights, positions, edges):
    total = 0.0
    for start, end in itertools.pairwise(edges):
        w, x = weights[start:end], positions[start:end]
        if w.sum() > 0:
            total += float((w * (x - np.average(x, weights=w)) ** 2).sum())
    return total


@given(st.lists(st.integers(0, 9), min_size=3, max_size=8))
@settings(max_examples=40, deadline=None)
def test_best_cuts_agree_with_trying_all(counts):
    weights, positions = np.array(counts, dtype=float), np.arange(len(counts), dtype=float)
    for m, (cost, edges) in enumerate(best_cuts(weights, positions, most=3), start=1):
        inner = itertools.combinations(range(1, len(counts)), m - 1)
        least = min(naive_cost(weights, positions, (0, *cut, len(counts))) for cut in inner)
        assert cost == pytest.approx(least, abs=1e-9)
        assert naive_cost(weights, positions, edges) == pytest.approx(least, abs=1e-9)
        assert len(edges) == m + 1
        assert (np.diff(edges) > 0).all()


def test_the_column_that_varies_gets_the_intervals():
    positions = np.arange(8.0)
    narrow, wide = np.array([0, 0, 0, 9, 9, 0, 0, 0.0]), np.array([9, 0, 0, 0, 0, 0, 0, 9.0])
    first, second = split_columns([narrow, wide], [positions, positions], max_cells=3)
    assert first.points.tolist() == [3.5]
    assert second.points.tolist() == [0, 7]
    # Nothing but the width of a bin is left in it.
    assert second.spreads == pytest.approx([1 / 12, 1 / 12])
    assert first.spreads == pytest.approx([0.25 + 1 / 12])
    assert second.interval_of_bin[0] == 0
    assert second.interval_of_bin[7] == 1


@pytest.mark.parametrize("max_cells", [1, 2, 10, 100])
def test_the_number_of_cells_is_kept(max_cells):
    rng = np.random.default_rng(0)
    weights = [rng.uniform(size=16) for _ in range(4)]
    columns = split_columns(weights, [np.arange(16.0)] * 4, max_cells=max_cells)
    assert math.prod(len(column.points) for column in columns) <= max_cells


def test_a_column_without_weight_is_one_interval_in_the_middle():
    (column,) = split_columns([np.zeros(4)], [np.arange(4.0)], max_cells=9)
    assert column.points.tolist() == [1.5]
