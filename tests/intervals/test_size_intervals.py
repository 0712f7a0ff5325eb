"""Intervals of sizes: by hand where cells add up, withheld where nothing honest can be said."""

import dataclasses
import math

import numpy as np
import pytest

from splitmeans.intervals.cell_tables import possible_cells
from splitmeans.intervals.sizes import WIDTH_95, refusal, size_intervals
from splitmeans.intervals.within_cells import draw_users, moved_users
from splitmeans.plan.settle import make_plan
from splitmeans.result.intervals import intervals_of
from splitmeans.result.result import Result
from splitmeans.synopsis.synopsis import build_synopsis
from tests.result.small_result import GRID, small_study, write_small_result

NEAR, FAR = -0.5, 0.5


def synopsis_of(study, weights):
    centres = [
        np.array([[-GRID // 2, 0, 0], [GRID // 2, 0, 0]]),
        np.array([[-GRID // 2], [GRID // 2]]),
    ]
    return build_synopsis(np.array(weights, dtype=float), centres, study.parties)


def centres_at(*places):
    """Centres by income and age, both in distance units; region is the same everywhere."""
    return np.array([[income, 0.0, 0.0, age] for income, age in places])


@pytest.fixture(scope="module")
def plan():
    return make_plan(small_study())


@pytest.fixture(scope="module")
def deviation(plan):
    return math.sqrt(plan.membership.variance + plan.membership.server_sigma**2)


def test_noise_of_cells_adds_up(plan, deviation):
    """Far above the noise nothing is cut, so a segment of m cells varies by sqrt(m) deviations."""
    synopsis = synopsis_of(plan.study, [[40_000, 20_000], [10_000, 30_000]])
    one_and_three = centres_at((-0.6, -0.6), (0.3, 0.3))
    halves = centres_at((NEAR, 0), (FAR, 0))
    first, second = size_intervals(
        plan, synopsis, [one_and_three, halves], rng=np.random.default_rng(1)
    )
    # A root mean square of 50 draws is off by 10 % (one standard error); the larger of two of them
    # by a little more, upwards. Four standard errors are 40 %.
    np.testing.assert_allclose(first.noise, deviation * np.sqrt([1, 3]), rtol=0.45)
    np.testing.assert_allclose(second.noise, deviation * np.sqrt([2, 2]), rtol=0.45)
    low, high = first.total
    assert (high - low) / 2 == pytest.approx(WIDTH_95 * 2 * deviation, rel=0.45)


def test_a_segment_that_may_be_noise_reaches_zero(plan, deviation):
    """A lone cell just above the cut, in a table that is otherwise empty but for one cell."""
    wide = dataclasses.replace(plan, n_local_clusters=(8, 8))
    weights = np.zeros((8, 8))
    weights[0, 0], weights[7, 7] = 20_000, 2.6 * deviation
    places = np.linspace(-1, 1, 8)
    columns = [np.rint(np.stack([places, 0 * places, 0 * places], axis=1) * GRID).astype(int)]
    columns.append(np.rint(places * GRID).astype(int)[:, np.newaxis])
    synopsis = build_synopsis(weights, columns, plan.study.parties)
    (found,) = size_intervals(
        wide, synopsis, [centres_at((-1, -1), (1, 1))], rng=np.random.default_rng(1)
    )
    assert found.low[1] == 0
    assert found.low[0] > 19_000


def test_users_across_a_border_make_the_interval_reach_over_them(plan):
    """The border between the segments is close to a node, so many of its users are beyond it."""
    synopsis = synopsis_of(plan.study, [[40_000, 0], [0, 40_000]])
    through_a_node = centres_at((-0.9, -0.9), (0.0, 0.0))
    between = centres_at((NEAR, NEAR), (FAR, FAR))
    close, clear = size_intervals(
        plan, synopsis, [through_a_node, between], rng=np.random.default_rng(1)
    )
    assert np.all(close.high - close.low > 5 * (clear.high - clear.low))
    # Users go from the one segment to the other: one interval reaches up, the other down.
    sizes = np.array([40_000, 40_000])
    up, down = close.high - sizes, sizes - close.low
    assert (up > down)[1] == (down > up)[0]


def test_users_stay_in_their_local_cluster_and_within_bounds(plan):
    synopsis = synopsis_of(plan.study, [[40_000, 10_000], [10_000, 40_000]])
    nodes, places = draw_users(synopsis, rng=np.random.default_rng(1))
    for column in (0, 3):
        assert np.array_equal(np.sign(places[:, column]), np.sign(nodes[:, column]))
    assert np.abs(places[:, [0, 3]]).max() <= 1
    moved = moved_users(
        nodes, places, scaled_centres=centres_at((NEAR, 0), (FAR, 0)), total=100_000
    )
    assert moved.sum() == 0


def test_cut_cells_may_hold_users_and_the_total_is_kept():
    """Exponential cells of ten deviations: of those below the cut most hold a few users."""
    rng = np.random.default_rng(3)
    true = rng.exponential(10.0, size=(50, 50)) * (rng.random((50, 50)) < 0.7)
    noisy = true + rng.standard_normal(true.shape)
    cut = np.where(noisy > 2.5, noisy, 0.0)
    published = cut * (noisy.sum() / cut.sum())
    law = possible_cells(published, deviation=1.0, cut=2.5)
    drawn = [law.draw(rng) for _ in range(20)]
    in_cut = [table[published == 0].sum() for table in drawn]
    # True users of cut cells: a few hundred; what is drawn must be about as many.
    assert 0.6 < np.mean(in_cut) / true[published == 0].sum() < 1.6
    totals = [table.sum() for table in drawn]
    assert np.mean(totals) == pytest.approx(noisy.sum(), abs=4 * 50 / math.sqrt(20))
    assert all(table.min() >= 0 for table in drawn)


def test_three_parties_are_redrawn_in_pairs():
    study = small_study()
    third = dataclasses.replace(study.parties[1], name="shop")
    study = dataclasses.replace(study, parties=(*study.parties, third))
    plan = make_plan(study)
    assert plan.grid_method == "pairs"
    local = [
        np.array([[-GRID // 2, 0, 0], [GRID // 2, 0, 0]]),
        *(np.array([[-GRID // 2], [GRID // 2]]),) * 2,
    ]
    weights = np.zeros((2, 2, 2))
    weights[0, 0, 0], weights[1, 1, 1] = 50_000, 30_000
    synopsis = build_synopsis(weights, local, study.parties)
    centres = np.array([[-0.5, 0, 0, -0.5, -0.5], [0.5, 0, 0, 0.5, 0.5]])
    (found,) = size_intervals(plan, synopsis, [centres], rng=np.random.default_rng(1))
    assert np.all(found.noise > 0)
    assert np.all(found.noise < 2_000)


@pytest.mark.parametrize("membership", ["ldp", "exact", "sketch"])
def test_other_methods_are_withheld(membership):
    study = small_study(membership=membership)
    plan = make_plan(study)
    synopsis = synopsis_of(study, [[400, 200], [0, 300]])
    halves = centres_at((NEAR, 0), (FAR, 0))
    assert size_intervals(plan, synopsis, [halves], rng=np.random.default_rng(1)) is None
    assert repr(membership) in refusal(plan, synopsis)


def test_what_cannot_be_repeated_is_withheld(plan):
    synopsis = synopsis_of(plan.study, [[400, 200], [0, 300]])
    large = dataclasses.replace(plan, n_local_clusters=(2000, 2000))
    assert "4,000,000 cells is too large" in refusal(large, synopsis)
    many = dataclasses.replace(plan, grid_method="many")
    assert "'many' is a model" in refusal(many, synopsis)
    nobody = synopsis_of(plan.study, [[0, 0], [0, 0]])
    assert refusal(plan, nobody) == "no users were counted"
    for odd, other in ((large, synopsis), (many, synopsis), (plan, nobody)):
        halves = centres_at((NEAR, 0), (FAR, 0))
        assert size_intervals(odd, other, [halves], rng=np.random.default_rng(1)) is None


def test_a_result_has_the_same_intervals_everywhere(tmp_path):
    read = Result.read(write_small_result(tmp_path / "r"))
    found = read.size_intervals()
    again = intervals_of(read, [read.segments(3), read.published]).found[1]
    assert np.all(found.low <= read.published.sizes)
    assert np.all(found.high >= read.published.sizes)
    assert found.low.shape == again.low.shape == (2,)
