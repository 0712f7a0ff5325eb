"""Regions of neighbouring clusters: by hand, and what they take out of a table of noise."""

import numpy as np
import pytest

from splitmeans.synopsis.pairs import clean_pair_tables, max_entropy_weights
from splitmeans.synopsis.regions import regions_of, where_users_are
from tests.synopsis.test_bundled_points import Tables


def test_clusters_that_lie_together_are_a_region():
    places = np.concatenate([np.arange(6), 1000 + np.arange(5)])[:, np.newaxis]
    (own,) = regions_of([places])
    assert len(set(own[:6])) == len(set(own[6:])) == 1
    assert own[0] != own[6]


def test_few_clusters_are_one_region():
    (own,) = regions_of([np.arange(8)[:, np.newaxis] ** 3])
    assert set(own) == {0}


def test_cells_by_hand():
    rows, columns = np.array([0, 0, 1]), np.array([0, 1, 1])
    table = np.array([[3.0, -4.0, 2.4], [2.0, 2.4, 0.2], [0.0, 3.0, 2.0]])
    # Sums 5 of two cells, 1 of four, 0 of one and 5 of two; of one user's noise a cell two
    # deviations are 2.8, 4, 2 and 2.8. No cell of the second and third region is above 2.5.
    expected = [[True, False, False], [True, False, False], [False, True, True]]
    assert where_users_are(table, rows, columns, deviation=1.0).tolist() == expected


@pytest.fixture
def noisy():
    """Users at clusters of one kind at both parties, and one cell elsewhere that stands out."""
    table = np.full((24, 24), -3.0)
    table[:12, :12] = 150.0
    table[12:, 12:] = 150.0
    table[2, 20] = 110.0
    regions = [np.repeat(np.arange(4), 6)] * 2
    return table, regions


def test_noise_far_from_everybody_goes(noisy):
    table, regions = noisy
    estimator = Tables((24, 24), {(0, 1): table})
    before = max_entropy_weights(estimator, deviation=30.0)
    after = max_entropy_weights(estimator, deviation=30.0, regions=regions)
    assert before[2, 20] > 0
    assert after[2, 20] == 0
    assert after.sum() == pytest.approx(before.sum())


@pytest.mark.parametrize("deviations", [6.0, 8.0, 15.0])
def test_a_rare_combination_that_is_beyond_doubt_stays(deviations):
    """Thirty-six cells, of which one has users: their sum hides it, the cell itself does not."""
    rng = np.random.default_rng(2)
    everywhere = np.zeros(6, dtype=np.int64)
    kept = 0
    for _ in range(200):
        table = rng.standard_normal((6, 6))
        table[2, 3] += deviations
        kept += where_users_are(table, everywhere, everywhere, deviation=1.0)[2, 3]
    assert kept > 160


def test_noise_alone_seldom_stays():
    """Where one table in five has a cell that stands out; expected 4 %, here at most 8 % of 500."""
    rng = np.random.default_rng(3)
    everywhere = np.zeros(6, dtype=np.int64)
    kept = sum(
        where_users_are(rng.standard_normal((6, 6)), everywhere, everywhere, deviation=1.0)[0, 0]
        for _ in range(500)
    )
    assert kept <= 40


def test_of_three_parties_too(noisy):
    table, regions = noisy
    pairs = ((0, 1), (0, 2), (1, 2))
    estimator = Tables((24,) * 3, dict.fromkeys(pairs, table))
    with_noise, _ = clean_pair_tables(estimator, deviation=30.0)
    without, _ = clean_pair_tables(estimator, deviation=30.0, regions=[regions[0]] * 3)
    for pair in pairs:
        assert with_noise[pair][2, 20] > 0
        assert without[pair][2, 20] == 0


def test_a_table_of_noise_alone_keeps_its_cells():
    rng = np.random.default_rng(1)
    estimator = Tables((12, 12), {(0, 1): 30.0 * rng.standard_normal((12, 12)) + 1.0})
    regions = [np.zeros(12, dtype=np.int64)] * 2
    plain = max_entropy_weights(estimator, deviation=30.0)
    assert np.array_equal(max_entropy_weights(estimator, deviation=30.0, regions=regions), plain)
