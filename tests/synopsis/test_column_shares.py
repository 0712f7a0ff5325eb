"""Single columns: shares by all that was released, and rows drawn anew that have them."""

import numpy as np
import pytest

from splitmeans.synopsis.column_shares import rows_with_shares, shares_of_columns
from splitmeans.synopsis.counted_tables import CountedTable


def test_shares_are_the_mean_by_precision() -> None:
    labels = np.array([[0, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0], [1, 0, 1, 0]])
    users = np.array([[20.0, 20.0], [30.0, 30.0]])
    tables = [CountedTable(columns=(0, 2), users=users, deviation=3.0)]
    infinite = np.array([3.0, np.inf, 1e9, np.inf])
    found = shares_of_columns(labels, tables, deviations=infinite)
    # Persons say 3/4 with variance 9, the table 0.4 with variance 18 (two cells of 9).
    assert found[0] == pytest.approx([(2 * 0.75 + 0.4) / 3, (2 * 0.25 + 0.6) / 3])
    # Persons say nothing of the other column.
    assert found[2] == pytest.approx([0.5, 0.5])
    assert set(found) == {0, 2}


def test_a_table_without_users_says_nothing_and_no_share_is_negative() -> None:
    labels = np.zeros((4, 4), dtype=np.int64)
    empty = CountedTable(columns=(0, 2), users=np.full((2, 2), -1.0), deviation=3.0)
    assert shares_of_columns(labels, [empty], deviations=np.ones(4)) == {}
    users = np.array([[50.0, 60.0], [-40.0, -30.0]])
    table = CountedTable(columns=(0, 2), users=users, deviation=0.1)
    found = shares_of_columns(labels, [table], deviations=np.full(4, 10.0))
    assert found[0] == pytest.approx([1.0, 0.0])


def test_rows_get_the_shares_and_persons_stay_in_their_clusters() -> None:
    rng = np.random.default_rng(0)
    n = 6000
    clusters = rng.integers(3, size=n)
    column = np.where(rng.random(n) < 0.6, clusters, rng.integers(4, size=n))
    other = rng.integers(2, size=n)
    labels = np.stack([column, other, clusters, rng.integers(5, size=n), other], axis=1)
    parties = np.array([0, 0, 0, 1, 1])
    shares = {0: np.array([0.2, 0.3, 0.4, 0.1]), 1: np.array([0.45, 0.55])}
    rows = rows_with_shares(labels, parties=parties, shares=shares, rng=rng)
    drawn = labels[rows[0]]
    # Drawn evenly: up to one for each, and what ten rounds leave.
    for place, wanted in shares.items():
        assert np.abs(np.bincount(drawn[:, place]) / n - wanted).max() < 0.005
    assert (drawn[:, 2] != clusters).sum() <= 3
    # A party of whom no share is known keeps its rows, each once.
    assert np.array_equal(rows[1], np.arange(n))
    # Most persons of the other one keep theirs too: which places went together is not lost.
    assert (rows[0] == np.arange(n)).mean() > 0.8


def test_labels_that_no_table_counts_stay() -> None:
    rng = np.random.default_rng(1)
    labels = np.zeros((1000, 3), dtype=np.int64)
    labels[:, 0] = np.arange(1000) % 3
    shares = {0: np.array([0.5, 0.5])}
    rows = rows_with_shares(labels, parties=np.array([0, 0, 1]), shares=shares, rng=rng)
    assert np.bincount(labels[rows[0], 0]).argmin() == 2
