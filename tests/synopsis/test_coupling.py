"""Places of parties are put together as counted, and noise alone moves nobody."""

import numpy as np
import pytest

from splitmeans.synopsis.coupling import CountedTable, coupled


def persons(n=4000, seed=0):
    """Two parties with one column and one cluster each; columns are independent."""
    rng = np.random.default_rng(seed)
    labels = np.zeros((n, 4), dtype=np.int64)
    labels[:, 0], labels[:, 2] = rng.integers(4, size=n), rng.integers(4, size=n)
    return labels, np.array([0, 0, 1, 1])


def together(labels, rows):
    found = np.zeros((4, 4))
    np.add.at(found, (labels[rows[0], 0], labels[rows[1], 2]), 1)
    return found / len(labels)


def test_two_columns_go_together_as_they_were_counted() -> None:
    labels, parties = persons()
    truth = np.full((4, 4), 1 / 40)
    np.fill_diagonal(truth, 0.7 / 4)
    rng = np.random.default_rng(1)
    users = 20_000 * truth + rng.normal(0, 60, truth.shape)
    tables = [CountedTable(columns=(0, 2), users=users, deviation=60.0)]
    rows = coupled(labels, parties=parties, tables=tables, rng=rng)
    # Noise of 60 in 1,250 users of a cell, and what single columns are off.
    assert np.abs(together(labels, rows) - truth).max() < 0.012
    assert all(sorted(own) == list(range(len(labels))) for own in rows)


def test_a_table_that_is_noise_moves_nobody() -> None:
    labels, parties = persons()
    before = together(labels, np.tile(np.arange(len(labels)), (2, 1)))
    rng = np.random.default_rng(2)
    # Nine degrees of freedom stand for sixteen cells, so noise is below what is expected of it; a
    # seed in a few hundred would be above the bound.
    users = 20_000 * before + rng.normal(0, 900, before.shape)
    tables = [CountedTable(columns=(0, 2), users=users, deviation=900.0)]
    rows = coupled(labels, parties=parties, tables=tables, rng=rng)
    assert np.abs(together(labels, rows) - before).max() < 0.002


def test_clusters_stay_together_as_they_are() -> None:
    labels, parties = persons()
    labels[:, 1] = labels[:, 3] = np.arange(len(labels)) % 2
    truth = np.full((4, 4), 1 / 40)
    np.fill_diagonal(truth, 0.7 / 4)
    tables = [CountedTable(columns=(0, 2), users=20_000 * truth, deviation=20.0)]
    rows = coupled(labels, parties=parties, tables=tables, rng=np.random.default_rng(3))
    same = labels[rows[0], 1] == labels[rows[1], 3]
    assert same.mean() > 0.97
    assert np.abs(together(labels, rows) - truth).max() < 0.02


@pytest.mark.parametrize("users", [np.zeros((4, 4)), np.full((4, 4), -3.0)])
def test_a_table_without_users_is_left_alone(users) -> None:
    labels, parties = persons(n=200)
    tables = [CountedTable(columns=(0, 2), users=users, deviation=5.0)]
    rows = coupled(labels, parties=parties, tables=tables, rng=np.random.default_rng(4))
    assert np.array_equal(rows, np.tile(np.arange(200), (2, 1)))


def test_labels_that_no_person_has_do_no_harm() -> None:
    labels, parties = persons(n=200)
    users = np.full((6, 5), 10.0)
    tables = [CountedTable(columns=(0, 2), users=users, deviation=1.0)]
    rows = coupled(labels, parties=parties, tables=tables, rng=np.random.default_rng(5))
    assert sorted(rows[1]) == list(range(200))
