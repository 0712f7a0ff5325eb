"""What of a noisy table is believed: beside clusters or beside a copula, and nothing of noise."""

import numpy as np
import pytest

from splitmeans.synopsis.counted_tables import CountedTable, believed, finer


def rising(correlation, n=40_000, bins=8, seed=0):
    """A table of two numbers that rise together, in bins of equal shares."""
    rng = np.random.default_rng(seed)
    one = rng.normal(size=n)
    other = correlation * one + np.sqrt(1 - correlation**2) * rng.normal(size=n)
    ranks = [np.argsort(np.argsort(own)) * bins // n for own in (one, other)]
    table = np.zeros((bins, bins))
    np.add.at(table, tuple(ranks), 1)
    return table


@pytest.mark.parametrize("correlation", [0.9, -0.6])
def test_a_copula_is_found_and_is_nearer_than_the_counts(correlation) -> None:
    truth = rising(correlation)
    found = np.full(truth.shape, truth.mean())
    noisy = truth + np.random.default_rng(1).normal(0, 80, truth.shape)
    table = CountedTable(columns=(0, 1), users=noisy, deviation=80.0, in_order=True)
    with_copula = believed(found, table)
    without = believed(found, table._replace(in_order=False))
    assert with_copula.correlation == pytest.approx(correlation, abs=0.05)
    assert without.correlation == 0
    errors = [np.abs(own - truth).sum() for own in (with_copula.cells, without.cells, noisy)]
    assert errors[0] < 0.7 * errors[1] < 0.7 * errors[2]


def test_sums_over_rows_and_columns_stay_as_persons_have_them() -> None:
    truth = rising(0.8)
    found = np.outer(np.arange(1, 9), np.arange(8, 0, -1)) * 30.0
    for in_order in (False, True):
        table = CountedTable(columns=(0, 1), users=truth, deviation=10.0, in_order=in_order)
        cells = believed(found, table).cells
        assert cells.min() >= 0
        assert cells.sum(axis=1) == pytest.approx(found.sum(axis=1), rel=1e-3)
        assert cells.sum(axis=0) == pytest.approx(found.sum(axis=0), rel=1e-6)


def test_noise_alone_changes_nothing() -> None:
    found = rising(0.5, n=2000)
    noise = np.random.default_rng(2).normal(0, 400, found.shape)
    table = CountedTable(columns=(0, 1), users=found + noise, deviation=400.0, in_order=True)
    wanted = believed(found, table)
    assert wanted.correlation == 0
    assert wanted.cells == pytest.approx(found, abs=1.0)


def test_a_finer_table_has_the_sums_of_the_wide_one_and_rises_within_it() -> None:
    truth = rising(0.95, bins=4)
    table = CountedTable(columns=(0, 1), users=truth, deviation=5.0, in_order=True)
    wanted = believed(np.full((4, 4), truth.mean()), table)
    narrow = finer(wanted, np.full((12, 12), truth.sum() / 144))
    assert narrow.sum() == pytest.approx(truth.sum())
    wide = narrow.reshape(4, 3, 4, 3).sum(axis=(1, 3))
    assert np.abs(wide - wanted.cells).max() < 0.02 * truth.max()
    exact = rising(0.95, bins=12)
    assert np.abs(narrow - exact).sum() < 0.1 * exact.sum()
