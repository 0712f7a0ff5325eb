"""The survey of a party's columns and the points drawn from it: by hand, and what one row moves."""

import math
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audits.noise_twins import Silence
from splitmeans.local.column_splits import Intervals
from splitmeans.local.law import COUNT_UNITS
from splitmeans.local.laws.survey import SurveyLaw, bins_for
from splitmeans.local.survey import (
    KEPT_SHARE,
    CellCounts,
    ColumnSurvey,
    Survey,
    cells_of,
    coarse_to_fine,
    normal_scores,
    without_noise,
)
from splitmeans.local.synthetic import draw_points
from splitmeans.privacy.gaussian import discrete_slack
from splitmeans.privacy.noise import InsecureSeededNoise
from splitmeans.table.walk.memory import as_rows

UNIT = 2**20


@dataclass
class NoNoise(Silence):
    """Adds nothing, and notes what was asked for."""

    asked: list[tuple[float, int]] = field(default_factory=list)

    def gaussian(self, scale: float, size: int):
        self.asked.append((scale, size))
        return np.zeros(size, dtype=np.int64)


# --- the law


@pytest.mark.parametrize("d", [1, 2, 3, 4, 10, 200])
@pytest.mark.parametrize("mu", [1e-4, 0.3, 2.0])
def test_the_parts_add_up_to_mu(d, mu):
    parts = SurveyLaw(bounds=(UNIT,) * d, mu=mu).event.parts
    spent = math.hypot(*(1 / part.noise_multiplier for part in parts))
    assert 0.999 * mu <= spent <= mu
    assert sum(part.slack for part in parts) < 1e-6
    # Number of rows, columns; products and cells of two or more.
    assert len(parts) == (2 if d == 1 else 4)


def test_scales_by_hand():
    law = SurveyLaw(bounds=(UNIT,) * 4, mu=1.0)
    assert law.size_scale / UNIT == pytest.approx(1 / math.sqrt(0.02), rel=1e-5)
    # A row moves one bin in each of four columns: L2 sensitivity 2.
    assert law.column_scale / UNIT == pytest.approx(2 / math.sqrt(0.98 * 0.3), rel=1e-5)
    # The length is at most sqrt(6) * 256 = 627.07, rounded down; six products of a quarter of its
    # square then.
    products = math.sqrt(6) * 627**2 / 4
    assert law.product_scale == pytest.approx(products / math.sqrt(0.98 * 0.2), rel=1e-5)
    two = SurveyLaw(bounds=(UNIT, UNIT), mu=1.0)
    assert two.cell_scale / UNIT == pytest.approx(1 / math.sqrt(0.98 * 0.5), rel=1e-5)
    assert two.product_scale == pytest.approx(443**2 / 2 / math.sqrt(0.98 * 0.2), rel=1e-5)


@pytest.mark.parametrize("d", [2, 3, 5, 12])
def test_slack_is_of_all_numbers_that_a_row_moves(d):
    """A row moves the number of rows, a bin of each column, a product of each pair, one cell."""
    parts = SurveyLaw(bounds=(UNIT,) * d, mu=0.5).event.parts
    for part, moved in zip(parts, (1, d, math.comb(d, 2), 1), strict=True):
        scale, sensitivity, _ = part.realised
        assert part.realised.coordinates == moved
        slack = discrete_slack(scale, mu=sensitivity / scale, coordinates=moved)
        assert part.slack == pytest.approx(slack)


# --- what one row moves


def norm(change):
    return math.sqrt(float(np.square(change.astype(np.float64)).sum()))


@given(d=st.integers(1, 6), seed=st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_one_row_moves_each_release_by_its_sensitivity_at_most(d, seed):
    rng = np.random.default_rng(seed)
    survey = ColumnSurvey(bounds=(UNIT,) * d, mu=1.0)
    rows = rng.integers(-UNIT, UNIT + 1, (30, d))
    there, away = as_rows(rows), as_rows(rows[:-1])

    change = survey.noisy_histograms(there, survey.bins(16), noise=Silence())
    change = change - survey.noisy_histograms(away, survey.bins(16), noise=Silence())
    assert (change.reshape(d, 16).sum(axis=1) == 1).all()
    assert norm(change * COUNT_UNITS) <= survey.column_sensitivity

    scores = list(rng.integers(-952, 953, (d, 16)))
    change = survey.noisy_products(there, scores, noise=Silence())
    change = change - survey.noisy_products(away, scores, noise=Silence())
    assert norm(change) <= survey.product_sensitivity

    cut = Intervals(edges=np.array([0, 5, 16]), points=np.zeros(2), spreads=np.zeros(2))
    change = survey.noisy_cells(there, [cut] * d, noise=Silence())
    change = change - survey.noisy_cells(away, [cut] * d, noise=Silence())
    assert sorted(change.tolist()) == [0] * (2**d - 1) + [1]


def test_equal_scores_reach_the_sensitivity():
    """The stated sensitivity of products is not more than a row can do, up to rounding."""
    survey = ColumnSurvey(bounds=(UNIT,) * 4, mu=1.0)
    row = as_rows(np.zeros((1, 4), dtype=np.int64))
    found = survey.noisy_products(row, [np.array([900])] * 4, noise=Silence())
    assert norm(found) == pytest.approx(survey.product_sensitivity, rel=0.01)


@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_noise_is_asked_for_as_the_event_says(d):
    survey = ColumnSurvey(bounds=(UNIT,) * d, mu=0.3)
    noise = NoNoise()
    rows = np.random.default_rng(0).integers(-UNIT, UNIT, (2000, d))
    survey.release(rows, noise=noise)
    assert [scale for scale, _ in noise.asked] == [
        part.realised.scale for part in survey.event.parts
    ]
    sizes = [size for _, size in noise.asked]
    assert sizes[0] == 1
    if d > 1:
        assert sizes[2] == d * (d - 1) // 2


def test_a_survey_does_not_depend_on_the_order_of_rows():
    survey = ColumnSurvey(bounds=(UNIT,) * 3, mu=0.5)
    rng = np.random.default_rng(2)
    rows = rng.integers(-UNIT, UNIT, (3000, 3))
    first, second = (
        survey.release(table, noise=InsecureSeededNoise(3))
        for table in (rows, rng.permutation(rows))
    )
    assert first.size == second.size
    assert np.array_equal(first.shares, second.shares)
    assert (first.correlation == second.correlation).all()
    assert (first.cells.noisy_counts == second.cells.noisy_counts).all()


# --- what is made of it


@pytest.mark.parametrize(("size", "bins"), [(1.0, 16), (9.0 * 32, 32), (9.0 * 50, 64), (1e9, 256)])
def test_number_of_bins(size, bins):
    assert bins_for(size, noise_deviation=1.0) == bins


def test_small_counts_are_taken_for_noise_if_most_rows_remain():
    noisy = np.array([90.0, 1.5, -3.0, 7.0])
    assert without_noise(noisy, deviation=1.0, total=100).tolist() == [90, 0, 0, 7]
    assert KEPT_SHARE * 100 <= 97


def test_without_clear_counts_the_sum_is_kept_instead():
    # Nothing is above one deviation of 10: all counts are lowered together to add up to 6.
    assert without_noise(np.array([5.0, 3.0, -2.0]), deviation=10, total=6).tolist() == [4, 2, 0]


def test_halves_share_what_a_range_has_by_hand():
    # Halves were counted 90 and 18 of 100: 86 and 14. Then 60 and 30 of 86; -2 and 20 of 14.
    noisy = np.array([60.0, 30.0, -2.0, 20.0])
    assert coarse_to_fine(noisy, total=100).tolist() == [58.0, 28.0, 0.0, 14.0]


def test_a_thin_tail_keeps_its_rows():
    """Its bins have twice the noise each, so most do not stand out; together they do."""
    rows = np.concatenate([[17_000.0], np.full(15, 200.0), np.zeros(16)])
    kept = []
    for seed in range(50):
        noisy = rows + np.random.default_rng(seed).normal(0, 100, size=32)
        found = coarse_to_fine(noisy, total=20_000)
        assert (found >= 0).all()
        assert found.sum() == pytest.approx(20_000)
        kept.append(found[1:16].sum())
    assert np.mean(kept) == pytest.approx(3_000, rel=0.1)


def test_normal_scores_by_hand():
    found = normal_scores(np.array([[0.0, 0.5], [0.8413447, 1.0]]))
    assert found == pytest.approx(np.array([[-3.719, 0.0], [1.0, 3.719]]), abs=1e-3)


def test_cells_are_numbered_with_the_last_column_fastest():
    two = Intervals(edges=np.array([0, 1, 4]), points=np.zeros(2), spreads=np.zeros(2))
    three = Intervals(edges=np.array([0, 1, 2, 4]), points=np.zeros(3), spreads=np.zeros(3))
    bins = np.array([[0, 0], [0, 3], [1, 0], [3, 1]])
    assert cells_of(bins, [two, three]).tolist() == [0, 2, 3, 4]


def test_a_survey_without_noise_knows_the_correlation():
    rng = np.random.default_rng(1)
    normal = rng.multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], 20_000) * UNIT / 6
    rows = np.clip(np.rint(normal), -UNIT, UNIT).astype(np.int64)
    found = ColumnSurvey(bounds=(UNIT, UNIT), mu=5.0).release(rows, noise=Silence())
    assert found.size == 20_000
    assert [own.sum() for own in found.shares] == pytest.approx([1, 1])
    # Long vectors of scores are shortened, which takes some of it.
    assert 0.5 < found.correlation[0, 1] < 0.85
    assert found.cells.noisy_counts.sum() == 20_000


def flat_survey(*, correlation, deviation=0.0, cells=None):
    d = len(correlation)
    return Survey(
        size=100.0,
        shares=[np.full(4, 0.25)] * d,
        orders=[None] * d,
        present=np.ones(d),
        correlation=np.array(correlation),
        correlation_deviation=np.full((d, d), deviation) * (1 - np.eye(d)),
        cells=cells,
    )


def points_of(survey, *, n_points=4000):
    bounds = (UNIT,) * len(survey.correlation)
    rng = np.random.default_rng(0)
    return draw_points(survey, bounds=bounds, n_points=n_points, rng=rng)


def test_points_follow_histograms_and_correlation():
    points = points_of(flat_survey(correlation=[[1.0, 0.9], [0.9, 1.0]]))
    assert points.shape == (4000, 2)
    assert np.abs(points).max() <= UNIT
    # A quarter in each bin: five standard errors are 0.034. Ranks are correlated by 0.89.
    for column in points.T:
        shares = np.histogram(column, bins=4, range=(-UNIT, UNIT))[0] / 4000
        assert shares == pytest.approx([0.25] * 4, abs=0.035)
    assert np.corrcoef(points.T)[0, 1] == pytest.approx(0.89, abs=0.03)


def test_a_correlation_that_may_be_noise_is_not_believed():
    points = points_of(flat_survey(correlation=[[1.0, 0.9], [0.9, 1.0]], deviation=3.0))
    assert abs(np.corrcoef(points.T)[0, 1]) < 5 / math.sqrt(4000)


def test_an_impossible_correlation_is_mended():
    # Two columns that go with a third one cannot go against each other.
    impossible = [[1.0, 0.9, 0.9], [0.9, 1.0, -0.9], [0.9, -0.9, 1.0]]
    points = points_of(flat_survey(correlation=impossible))
    assert np.isfinite(points).all()
    assert np.abs(points).max() <= UNIT


HALF = Intervals(edges=np.array([0, 2, 4]), points=np.zeros(2), spreads=np.zeros(2))
WHOLE = Intervals(edges=np.array([0, 4]), points=np.zeros(1), spreads=np.zeros(1))


def quarters(points):
    return np.bincount(2 * (points[:, 0] > 0) + (points[:, 1] > 0), minlength=4)


@pytest.mark.parametrize("correlation", [0.0, 0.8])
def test_points_are_where_the_cells_are(correlation):
    counts = np.array([10.0, 40.0, 50.0, 0.0])
    cells = CellCounts(columns=[HALF, HALF], noisy_counts=counts, deviation=1e-9)
    matrix = [[1.0, correlation], [correlation, 1.0]]
    points = points_of(flat_survey(correlation=matrix, cells=cells))
    assert quarters(points) == pytest.approx([400, 1600, 2000, 0], abs=1)


def test_cells_that_may_be_noise_leave_the_rest_to_the_columns():
    # The first cell stands out with 40 of 100 rows; three others share 60 as the columns say.
    cells = CellCounts(
        columns=[HALF, HALF], noisy_counts=np.array([40.0, 20.0, 0.0, -3.0]), deviation=10.0
    )
    points = points_of(flat_survey(correlation=[[1.0, 0.0], [0.0, 1.0]], cells=cells))
    # A quarter of the free draws in each cell, five standard errors of it are 0.034 of all.
    assert quarters(points) == pytest.approx([1600, 800, 800, 800], abs=150)


def test_a_column_that_is_not_cut_follows_those_that_are():
    # All rows are in the upper half of the first column; the second goes with it.
    cells = CellCounts(columns=[HALF, WHOLE], noisy_counts=np.array([0.0, 100.0]), deviation=1e-9)
    points = points_of(flat_survey(correlation=[[1.0, 0.95], [0.95, 1.0]], cells=cells))
    assert points[:, 0].min() >= 0
    # The mean of a normal variable above 0 is 0.8, so the second is at 0.76: the 0.78 quantile.
    assert np.median(points[:, 1]) / UNIT > 0.3
