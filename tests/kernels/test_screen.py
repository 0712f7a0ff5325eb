"""The screen in single precision: what it calls certain is certain, and nearly all is."""

import numpy as np
import pytest

from splitmeans.kernels.screen import empty_columns, in_single, screen, to_screen


@pytest.mark.parametrize(("d", "n"), [(1, 1), (4, 16), (5, 4096), (9, 1000)])
def test_columns_begin_with_a_line_of_the_cache(d: int, n: int) -> None:
    columns = empty_columns(d, n)
    assert columns.shape[0] in range(d, d + 4)
    assert columns.shape[0] % 4 == 0
    assert columns.shape[1] >= n
    assert columns.flags.c_contiguous
    assert not columns.any()
    assert {column.__array_interface__["data"][0] % 64 for column in columns} == {0}


@pytest.mark.parametrize("d", [1, 4, 7, 8, 9, 12, 20])
@pytest.mark.parametrize("k", [1, 2, 3, 5, 16])
def test_certain_labels_are_those_of_exact_distances(d: int, k: int) -> None:
    rng = np.random.default_rng([d, k])
    rows = rng.integers(-(2**20), 2**20, size=(1300, d))
    centres = rng.integers(-(2**20), 2**20, size=(k, d))
    # Some rows lie half-way between two centres: no screen can tell those.
    rows[:50] = (centres[0] + centres[-1]) // 2
    labels, certain = np.empty(1300, dtype=np.int32), np.empty(1300, dtype=np.bool_)
    screen(in_single(rows.T * 1.0), to_screen(centres * 1.0), labels=labels, certain=certain)
    exact = np.square(rows[:, np.newaxis] - centres).sum(axis=2)
    best = exact.min(axis=1)
    assert np.array_equal(exact[np.arange(1300), labels][certain], best[certain])
    # Of one centre every row is certain; scores of others are rarely that close.
    assert certain[50:].mean() > 0.99
    ties = (exact == best[:, np.newaxis]).sum(axis=1) > 1
    assert not certain[ties].any()
