"""Places of parties are put together as counted, and noise alone moves nobody."""

import numpy as np
import pytest

from splitmeans.synopsis.counted_tables import CountedTable
from splitmeans.synopsis.coupling import PARTS, coupled, parts_of


def persons(n=4000, seed=0):
    """Two parties with one column and one cluster each; columns are independent."""
    rng = np.random.default_rng(seed)
    labels = np.zeros((n, 4), dtype=np.int64)
    labels[:, 0], labels[:, 2] = rng.integers(4, size=n), rng.integers(4, size=n)
    return labels, np.array([0, 0, 1, 1])


def together(labels, rows):
    found = np.zeros((4, 4))
    np.add.at(found, (labels[rows[0], 0], labels[rows[2], 2]), 1)
    return found / len(labels)


def test_two_columns_go_together_as_they_were_counted() -> None:
    labels, parties = persons()
    truth = np.full((4, 4), 1 / 40)
    np.fill_diagonal(truth, 0.7 / 4)
    rng = np.random.default_rng(1)
    users = 20_000 * truth + rng.normal(0, 60, truth.shape)
    tables = [CountedTable(columns=(0, 2), users=users, deviation=60.0)]
    rows = coupled(labels, labels, parties=parties, tables=tables, rng=rng)
    # Noise of 60 in 1,250 users of a cell, and what single columns are off.
    assert np.abs(together(labels, rows) - truth).max() < 0.012
    assert all(sorted(own) == list(range(len(labels))) for own in rows)


def test_a_table_that_is_noise_moves_nobody() -> None:
    labels, parties = persons()
    before = together(labels, np.tile(np.arange(len(labels)), (4, 1)))
    rng = np.random.default_rng(2)
    # Nine degrees of freedom stand for sixteen cells, so noise is below what is expected of it; a
    # seed in a few hundred would be above the bound.
    users = 20_000 * before + rng.normal(0, 900, before.shape)
    tables = [CountedTable(columns=(0, 2), users=users, deviation=900.0)]
    rows = coupled(labels, labels, parties=parties, tables=tables, rng=rng)
    assert np.abs(together(labels, rows) - before).max() < 0.002


def test_clusters_stay_together_as_they_are() -> None:
    labels, parties = persons()
    labels[:, 1] = labels[:, 3] = np.arange(len(labels)) % 2
    truth = np.full((4, 4), 1 / 40)
    np.fill_diagonal(truth, 0.7 / 4)
    tables = [CountedTable(columns=(0, 2), users=20_000 * truth, deviation=20.0)]
    rows = coupled(labels, labels, parties=parties, tables=tables, rng=np.random.default_rng(3))
    same = labels[rows[1], 1] == labels[rows[3], 3]
    assert same.mean() > 0.97
    assert np.abs(together(labels, rows) - truth).max() < 0.02


@pytest.mark.parametrize("users", [np.zeros((4, 4)), np.full((4, 4), -3.0)])
def test_a_table_without_users_is_left_alone(users) -> None:
    labels, parties = persons(n=200)
    tables = [CountedTable(columns=(0, 2), users=users, deviation=5.0)]
    rows = coupled(labels, labels, parties=parties, tables=tables, rng=np.random.default_rng(4))
    assert np.array_equal(rows, np.tile(np.arange(200), (4, 1)))


def test_labels_that_no_person_has_do_no_harm() -> None:
    labels, parties = persons(n=200)
    users = np.full((6, 5), 10.0)
    tables = [CountedTable(columns=(0, 2), users=users, deviation=1.0)]
    rows = coupled(labels, labels, parties=parties, tables=tables, rng=np.random.default_rng(5))
    assert sorted(rows[1]) == list(range(200))


def test_two_columns_of_one_party_stay_together_when_single_columns_move() -> None:
    rng = np.random.default_rng(6)
    labels = np.zeros((4000, 5), dtype=np.int64)
    labels[:, 0] = rng.integers(4, size=4000)
    labels[:, 1] = np.where(rng.random(4000) < 0.8, labels[:, 0], rng.integers(4, size=4000))
    labels[:, 3] = rng.integers(4, size=4000)
    parties = np.array([0, 0, 0, 1, 1])
    truth = np.full((4, 4), 1 / 40)
    np.fill_diagonal(truth, 0.7 / 4)
    tables = [CountedTable(columns=(0, 3), users=20_000 * truth, deviation=20.0)]
    rows = coupled(labels, labels, parties=parties, tables=tables, rng=rng)
    assert (
        np.abs(
            np.bincount(4 * labels[rows[0], 0] + labels[rows[3], 3]) / 4000 - truth.ravel()
        ).max()
        < 0.01
    )
    before, after = (
        np.bincount(4 * one + other)
        for one, other in ((labels[:, 0], labels[:, 1]), (labels[rows[0], 0], labels[rows[1], 1]))
    )
    # Cells of up to 850 persons; each exchange costs what it moves here.
    assert np.abs(before - after).max() <= 6


def test_numbers_that_rise_together_do_so_within_labels_too() -> None:
    rng = np.random.default_rng(7)
    n = 6000
    one = np.sort(rng.integers(10**6, size=n))
    other = rng.permutation(one)
    wide = np.zeros((n, 4), dtype=np.int64)
    wide[:, 0], wide[:, 2] = one * 6 // 10**6, other * 6 // 10**6
    parts = wide.copy()
    parts[:, 0], parts[:, 2] = parts_of(one, wide[:, 0]), parts_of(other, wide[:, 2])
    users = 10_000 * np.eye(6) + rng.normal(0, 30, (6, 6))
    tables = [CountedTable(columns=(0, 2), users=users, deviation=30.0, in_order=True)]
    rows = coupled(wide, parts, parties=np.array([0, 0, 1, 1]), tables=tables, rng=rng)
    same = parts[rows[0], 0] == parts[rows[2], 2]
    # Within a label a third would be at one part by chance.
    assert same.mean() > 0.6
    unordered = [table._replace(in_order=False) for table in tables]
    rows = coupled(wide, parts, parties=np.array([0, 0, 1, 1]), tables=unordered, rng=rng)
    assert (parts[rows[0], 0] == parts[rows[2], 2]).mean() < 0.45


def test_parts_of_a_label_hold_equally_many_and_no_value_is_torn_apart() -> None:
    values = np.array([0, 0, 0, 0, 5, 6, 7, 8, 9, 10])
    labels = np.array([0, 0, 0, 0, 1, 1, 1, 1, 1, 1])
    parts = parts_of(values, labels)
    assert PARTS == 3
    # Four times zero is in the middle part of its label; six values fill three parts.
    assert parts.tolist() == [1, 1, 1, 1, 3, 3, 4, 4, 5, 5]
