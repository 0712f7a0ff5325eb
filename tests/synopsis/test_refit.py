"""The grid of maximum entropy with given pairs: by hand, against a loop, under any noise."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from splitmeans.synopsis.decode.cleaned import agree, cut_noise, total_of
from splitmeans.synopsis.replicates import refit
from splitmeans.synopsis.replicates.refit import refitted_grid
from tests.synopsis.decode.scene import tables_of


def noisy(cells, *, deviation, seed=0):
    rng = np.random.default_rng(seed)
    return {
        pair: table + deviation * rng.standard_normal(table.shape)
        for pair, table in tables_of(cells).items()
    }


def test_two_parties_give_their_table():
    cells = np.array([[5.0, 0.0, 1.0], [0.0, 7.0, 2.0]])
    np.testing.assert_allclose(refitted_grid({(0, 1): cells}, (2, 3)), cells, atol=1e-9)


def test_equal_labels_are_restored():
    """Every party has the same label for a user: pairs rule out all cells off the diagonal."""
    cells = np.zeros((3, 3, 3))
    cells[0, 0, 0], cells[1, 1, 1], cells[2, 2, 2] = 5, 6, 7
    np.testing.assert_allclose(refitted_grid(tables_of(cells), (3, 3, 3)), cells, atol=1e-9)


def test_maximum_entropy_by_hand():
    """Parties 1 and 2 are independent given party 0, which is what the pairs cannot contradict."""
    cells = np.zeros((2, 2, 2))
    cells[0] = np.outer([0.9, 0.1], [0.8, 0.2]) * 60
    cells[1] = np.outer([0.3, 0.7], [0.5, 0.5]) * 40
    np.testing.assert_allclose(refitted_grid(tables_of(cells), (2, 2, 2)), cells, rtol=1e-2)


def naive_fit(tables, shape):
    """Proportional fitting cell by cell."""
    total = float(tables[0, 1].sum())
    cells = list(itertools.product(*map(range, shape)))
    weights = {cell: total / len(cells) for cell in cells}
    for _ in range(refit._ROUNDS):
        for (i, j), wanted in tables.items():
            margin = np.zeros(wanted.shape)
            for cell in cells:
                margin[cell[i], cell[j]] += weights[cell]
            for cell in cells:
                at = cell[i], cell[j]
                weights[cell] *= wanted[at] / margin[at] if margin[at] > 0 else 0.0
    slow = np.array([weights[cell] for cell in cells]).reshape(shape)
    return slow * (total / slow.sum())


def test_fast_fit_equals_naive_fit(monkeypatch):
    monkeypatch.setattr(refit, "_NEGLIGIBLE", 0.0)
    monkeypatch.setattr(refit, "_TOLERANCE", 0.0)
    tables = noisy(np.random.default_rng(3).gamma(0.5, 40.0, size=(2, 3, 4)), deviation=4.0)
    clean = cut_noise(agree(tables, same_labels=True), deviation=4.0)
    fast = refitted_grid(tables, (2, 3, 4), deviation=4.0)
    np.testing.assert_allclose(fast, naive_fit(clean, (2, 3, 4)), rtol=1e-9)


def test_contradicting_cuts_do_not_lose_users():
    """Supports that no cell satisfies (0=1, 1=2, 0!=2) still give weights with the right sum."""
    same, crossed = np.diag([50.0, 50.0]), np.array([[0.0, 50.0], [50.0, 0.0]])
    tables = {(0, 1): same, (0, 2): crossed, (1, 2): same}
    weights = refitted_grid(tables, (2, 2, 2), deviation=1.0)
    assert weights.sum() == pytest.approx(100)
    assert weights.min() >= 0


def test_the_cut_leaves_little_weight_where_nobody_is():
    rng = np.random.default_rng(0)
    homes = rng.integers(8, size=(4, 5))[:, rng.integers(5, size=20_000)]
    labels = np.where(rng.random(homes.shape) < 0.9, homes, (homes + 1) % 8)
    cells = np.zeros((8,) * 4)
    np.add.at(cells, tuple(labels), 1.0)
    tables = noisy(cells, deviation=20.0)
    cut = refitted_grid(tables, cells.shape, deviation=20.0)
    uncut = refitted_grid(tables, cells.shape)
    assert np.abs(cut - cells).sum() < 0.15 * cells.sum()
    assert cut[cells == 0].sum() < 0.5 * uncut[cells == 0].sum()


@settings(max_examples=50, deadline=None)
@given(
    shape=st.lists(st.integers(1, 4), min_size=2, max_size=4),
    scale=st.sampled_from([0.0, 1e-3, 1.0, 1e4]),
    deviation=st.sampled_from([None, 0.0, 1e-6, 1.0, 1e5]),
    seed=st.integers(0, 2**32 - 1),
)
def test_weights_are_always_valid(shape, scale, deviation, seed):
    cells = np.random.default_rng(seed).gamma(0.1, 1.0, size=shape) * scale
    tables = noisy(cells, deviation=deviation or 0.0, seed=seed)
    kept = {pair: table.copy() for pair, table in tables.items()}
    weights = refitted_grid(tables, tuple(shape), deviation=deviation)
    assert weights.shape == tuple(shape)
    assert np.isfinite(weights).all()
    assert weights.min() >= 0
    assert weights.sum() == pytest.approx(max(total_of(tables), 0))
    for pair, table in tables.items():
        np.testing.assert_array_equal(table, kept[pair])
