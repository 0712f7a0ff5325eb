"""Rows without a value in some columns: what they move, and that no cluster is made of them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audits.noise_twins import Silence
from splitmeans._types import NO_VALUE
from splitmeans.local.column_splits import Intervals
from splitmeans.local.guided_lloyd import GuidedLloyd
from splitmeans.local.survey import ColumnSurvey, present_share
from splitmeans.privacy.noise import InsecureSeededNoise
from splitmeans.table.walk.memory import as_rows

UNIT = 2**20


def three_groups(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows of four columns in three groups, and the group of each."""
    rng = np.random.default_rng(seed)
    group = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    places = np.array([[-6, -6, -2, 4], [6, 0, 5, -5], [0, 6, -7, 0]]) * UNIT // 10
    rows = places[group] + rng.normal(0, UNIT / 20, (n, 4))
    return np.clip(np.rint(rows), -UNIT, UNIT).astype(np.int64), group


# --- what one row moves


@given(seed=st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_one_row_moves_each_release_by_its_sensitivity_at_most(seed):
    rng = np.random.default_rng(seed)
    survey = ColumnSurvey(bounds=(UNIT,) * 6, mu=1.0, levels=(0, 0, 4))
    rows = np.stack(
        [*rng.integers(-UNIT, UNIT + 1, (2, 30)), rng.integers(0, 5, 30)],
        axis=1,
    )
    rows[rng.random(rows.shape) < 0.4] = NO_VALUE
    there, away = as_rows(rows), as_rows(rows[:-1])
    lacking = int((rows[-1] == NO_VALUE).sum()) + int(rows[-1, 2] == 4)

    bins = survey.bins(16)
    change = survey.noisy_histograms(there, bins, noise=Silence())
    change = change - survey.noisy_histograms(away, bins, noise=Silence())
    # A bin of each column that the row has; a code that is no level is none.
    assert sorted(change.tolist()) == [0] * (36 - 3 + lacking) + [1] * (3 - lacking)

    scores = [rng.integers(-952, 953, size) for size in bins]
    change = survey.noisy_products(there, scores, noise=Silence())
    change = change - survey.noisy_products(away, scores, noise=Silence())
    assert np.square(change.astype(float)).sum() <= survey.product_sensitivity**2

    cut = Intervals(edges=np.array([0, 5, 16]), points=np.zeros(2), spreads=np.zeros(2))
    whole = Intervals(edges=np.array([0, 16]), points=np.zeros(1), spreads=np.zeros(1))
    levels = Intervals(
        edges=np.array([0, 1, 4]),
        points=np.zeros(2),
        spreads=np.zeros(2),
        order=np.array([2, 0, 1, 3]),
    )
    change = survey.noisy_cells(there, [cut, whole, levels], noise=Silence())
    change = change - survey.noisy_cells(away, [cut, whole, levels], noise=Silence())
    in_a_cell = rows[-1, 0] != NO_VALUE and 0 <= rows[-1, 2] < 4
    assert sorted(change.tolist()) == [0, 0, 0, int(in_a_cell)]


# --- what is made of it


def test_present_shares():
    # 70 of 100 rows in four bins with deviation 1: the sum is off by 2, and 30 is more than that.
    assert present_share(np.array([20.0, 30, 10, 10]), deviation=1, size=100) == 0.7
    assert present_share(np.array([20.0, 30, 10, 37]), deviation=1, size=100) == 1
    assert present_share(np.array([-20.0, 0, 1]), deviation=1, size=100) == 0.05


@pytest.mark.parametrize("how", ["at random", "by group"])
def test_no_cluster_is_made_of_rows_with_gaps(how):
    rows, group = three_groups(20_000)
    rng = np.random.default_rng(1)
    gaps = rows.copy()
    for column in (0, 2):
        lacking = rng.random(len(rows)) < 0.3
        if how == "by group":
            lacking = (group == column // 2) & (rng.random(len(rows)) < 0.7)
        gaps[lacking, column] = NO_VALUE
    mechanism = GuidedLloyd(n_clusters=3, bounds=(UNIT,) * 4, mu=0.5, levels=(0,) * 4)
    found = mechanism.release(gaps, noise=InsecureSeededNoise(2), rng=np.random.default_rng(2))
    expected = np.array([rows[group == number].mean(axis=0) for number in range(3)])
    for centre in expected:
        assert np.abs(found.centres - centre).max(axis=1).min() < UNIT / 8
    # Points lie where complete rows do, also in columns that others lack.
    distances = np.linalg.norm(found.points[:, np.newaxis] - expected, axis=2)
    assert np.quantile(distances.min(axis=1), 0.95) < UNIT / 3
    shares = np.bincount(distances.argmin(axis=1), minlength=3) / len(found.points)
    assert shares == pytest.approx([0.5, 0.3, 0.2], abs=0.04)


def test_the_middle_of_the_bounds_makes_one():
    """The rule that takes the middle is what the other one is for: its twin must be caught."""
    rows, group = three_groups(20_000)
    filled = rows.copy()
    for column in (0, 2):
        filled[np.random.default_rng(column).random(len(rows)) < 0.3, column] = 0
    mechanism = GuidedLloyd(n_clusters=3, bounds=(UNIT,) * 4, mu=0.5)
    found = mechanism.release(filled, noise=InsecureSeededNoise(2), rng=np.random.default_rng(2))
    expected = np.array([rows[group == number].mean(axis=0) for number in range(3)])
    nearest = [np.abs(found.centres - centre).max(axis=1).min() for centre in expected]
    assert max(nearest) > UNIT / 8


def test_without_gaps_nothing_changes():
    rows, _ = three_groups(3000)
    releases = [
        GuidedLloyd(n_clusters=3, bounds=(UNIT,) * 4, mu=0.5, levels=levels).release(
            rows, noise=InsecureSeededNoise(4), rng=np.random.default_rng(4)
        )
        for levels in ((), (0,) * 4)
    ]
    assert (releases[0].centres == releases[1].centres).all()
    assert (releases[0].points == releases[1].points).all()
