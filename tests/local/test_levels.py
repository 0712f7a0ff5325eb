"""Columns of levels in guided-lloyd: one column each, and points that have one level of each."""

import math

import numpy as np
import pytest

from audits.noise_twins import Silence
from splitmeans.errors import ParameterError
from splitmeans.local.column_splits import level_cuts, split_columns
from splitmeans.local.guided_lloyd import GuidedLloyd
from splitmeans.local.law import COUNT_UNITS
from splitmeans.local.laws.guided_lloyd import GuidedLloydLaw
from splitmeans.local.laws.survey import SurveyLaw
from splitmeans.local.level_moves import moved_levels
from splitmeans.local.survey import ColumnSurvey
from splitmeans.local.synthetic import draw_points
from splitmeans.privacy.noise import InsecureSeededNoise
from splitmeans.study.coding import Coding
from splitmeans.table.walk.memory import as_rows

UNIT = 2**20
LEVELS = (0, 3, 0, 40)
BOUNDS = (UNIT,) + (700_000,) * 3 + (UNIT,) + (700_000,) * 40
CODING = Coding(bounds=BOUNDS, levels=LEVELS)


def rows_of(n: int, seed: int = 0) -> np.ndarray:
    """Two groups that differ in both numbers and both columns of levels."""
    rng = np.random.default_rng(seed)
    group = rng.random(n) < 0.3
    low = rng.normal(-UNIT / 2, UNIT / 10, (n, 2)).astype(np.int64)
    high = rng.normal(UNIT / 2, UNIT / 10, (n, 2)).astype(np.int64)
    numbers = np.where(group[:, np.newaxis], high, low)
    few = np.where(group, 2, rng.integers(0, 2, n))
    many = np.where(group, rng.integers(30, 40, n), rng.integers(0, 5, n))
    return np.stack([numbers[:, 0], few, numbers[:, 1], many], axis=1)


# --- the law


def test_a_column_of_levels_is_one_column():
    mixed = SurveyLaw(bounds=BOUNDS, mu=0.3, levels=LEVELS)
    four = SurveyLaw(bounds=(UNIT,) * 4, mu=0.3)
    assert mixed.event == four.event
    # As 44 columns of numbers the histograms had the sensitivity sqrt(44) instead of sqrt(4).
    plain = SurveyLaw(bounds=BOUNDS[:44], mu=0.3)
    assert plain.column_scale / mixed.column_scale == pytest.approx(math.sqrt(11), rel=1e-5)


def test_the_parts_of_mixed_columns_add_up_to_mu():
    law = GuidedLloydLaw(n_clusters=8, bounds=BOUNDS, mu=0.4, levels=LEVELS)
    spent = math.hypot(*(1 / part.noise_multiplier for part in law.event.parts))
    assert 0.999 * 0.4 <= spent <= 0.4
    # Offsets of 45 features, one count, squares of two columns of numbers.
    assert law.event.parts[-1].realised.coordinates == 45 + 1 + 2


def test_levels_that_do_not_make_the_features_are_refused():
    with pytest.raises(ParameterError, match="levels must make 3 features"):
        SurveyLaw(bounds=(UNIT,) * 3, mu=1.0, levels=(0, 3))


# --- what one row moves


@pytest.mark.parametrize("seed", range(8))
def test_one_row_moves_one_bin_of_each_column(seed):
    survey = ColumnSurvey(bounds=BOUNDS, mu=1.0, levels=LEVELS)
    rows, bins = rows_of(30, seed), survey.bins(16)
    there, away = (
        survey.noisy_histograms(as_rows(part), bins, noise=Silence()) for part in (rows, rows[:-1])
    )
    change = np.split(there - away, np.cumsum(bins)[:-1])
    assert bins.tolist() == [16, 3, 16, 40]
    assert [own.sum() for own in change] == [1, 1, 1, 1]
    assert np.linalg.norm((there - away) * COUNT_UNITS) <= survey.column_sensitivity
    assert change[1][rows[-1, 1]] == 1


def test_noise_is_asked_for_bins_not_for_features():
    asked = []

    class Noted(Silence):
        def gaussian(self, scale, size):
            asked.append((scale, size))
            return np.zeros(size, dtype=np.int64)

    survey = ColumnSurvey(bounds=BOUNDS, mu=0.5, levels=LEVELS)
    survey.release(rows_of(2000), noise=Noted())
    assert [scale for scale, _ in asked] == [part.realised.scale for part in survey.event.parts]
    # 2,000 rows leave nine deviations of noise to each of 32 bins; levels have one each.
    assert asked[1][1] == 2 * 32 + 3 + 40
    assert asked[2][1] == 6


# --- what is made of it


def test_frequent_levels_are_cut_off_one_by_one():
    # 60, 30 and 10 rows: alone 100 - (3600 + 900 + 100) / 100 = 54; the last two 40 - 1000 / 40.
    found = level_cuts(np.array([60.0, 30.0, 10.0]), 2.0, most=8)
    assert [cost for cost, _ in found] == pytest.approx([4 * 54, 4 * 15, 0])
    assert [edges.tolist() for _, edges in found] == [[0, 3], [0, 1, 3], [0, 1, 2, 3]]


def test_levels_and_numbers_share_the_cells():
    numbers, positions = np.ones(8), np.linspace(-1, 1, 8)
    cut = split_columns([numbers, np.array([50.0, 50.0])], [positions, 0.1], max_cells=4)
    # Levels that hardly differ are not cut; numbers are.
    assert [len(column.points) for column in cut] == [4, 1]
    cut = split_columns([numbers, np.array([50.0, 50.0])], [positions, 9.0], max_cells=4)
    assert [len(column.points) for column in cut] == [2, 2]


def test_points_have_one_level_of_each_column_as_often_as_the_rows():
    rows = rows_of(20_000)
    survey = ColumnSurvey(bounds=BOUNDS, mu=5.0, levels=LEVELS).release(rows, noise=Silence())
    rng = np.random.default_rng(1)
    points = draw_points(survey, bounds=BOUNDS, n_points=4000, rng=rng)
    assert points.shape == (4000, 45)
    for place, own in CODING.categorical:
        features = points[:, own]
        assert ((features == 700_000).sum(axis=1) == 1).all()
        assert ((features == -700_000).sum(axis=1) == LEVELS[place] - 1).all()
        shares = (features > 0).mean(axis=0)
        expected = np.bincount(rows[:, place], minlength=LEVELS[place]) / len(rows)
        # Five standard errors of a share are 0.04 at most.
        assert np.abs(shares - expected).max() < 0.04
    # Groups stay together: who has the third level has high numbers.
    third = points[:, 3] > 0
    assert points[third, 0].mean() > UNIT / 4
    assert points[~third, 0].mean() < -UNIT / 4


def test_levels_move_as_few_points_as_needed():
    rng = np.random.default_rng(2)
    level = np.repeat([0, 1, 2], [600, 300, 100])
    points = np.where(level[:, np.newaxis] == np.arange(3), 10.0, -10.0)
    clusters, weights = np.zeros(1000, dtype=np.int64), np.ones(1000)
    # From 60, 30, 10 % to 50, 30, 20 %: a share is a twentieth of a feature's mean.
    shift = np.array([[-0.1, 0.0, 0.1]]) * 20
    moved = moved_levels(points, weights, clusters, shift, bound=10.0, rng=rng)
    found = moved.argmax(axis=1)
    assert (np.sort(moved, axis=1) == [-10, -10, 10]).all()
    # Binomial: five standard errors of 100 that leave.
    assert abs(np.count_nonzero(found != level) - 100) < 50
    assert set(found[found != level].tolist()) == {2}


def test_a_wish_beyond_all_shares_is_met_as_far_as_it_goes():
    points = np.where(np.repeat([0, 1], 50)[:, np.newaxis] == np.arange(2), 1.0, -1.0)
    shift = np.array([[9.0, -9.0]])
    rng = np.random.default_rng(0)
    moved = moved_levels(
        points, np.ones(100), np.zeros(100, dtype=np.int64), shift, bound=1.0, rng=rng
    )
    assert (moved == [1, -1]).all()


def test_whole_runs_find_the_groups():
    rows = rows_of(20_000)
    mechanism = GuidedLloyd(n_clusters=2, bounds=BOUNDS, mu=0.5, levels=LEVELS)
    found = mechanism.release(rows, noise=InsecureSeededNoise(3), rng=np.random.default_rng(3))
    features = CODING.features(rows)
    group = rows[:, 1] == 2
    centres = found.centres[np.argsort(found.centres[:, 0])]
    for own, members in zip(centres, (~group, group), strict=True):
        assert np.abs(own - features[members].mean(axis=0)).max() < 0.1 * UNIT
    for _, own in CODING.categorical:
        assert ((found.points[:, own] > 0).sum(axis=1) == 1).all()


def test_a_party_of_levels_alone():
    rows = rows_of(5000)[:, [1]]
    mechanism = GuidedLloyd(n_clusters=3, bounds=(UNIT,) * 3, mu=1.0, levels=(3,))
    found = mechanism.release(rows, noise=InsecureSeededNoise(1), rng=np.random.default_rng(1))
    # Each of three levels is a cluster.
    assert sorted((found.centres > 0).argmax(axis=1).tolist()) == [0, 1, 2]
