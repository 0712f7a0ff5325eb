"""Intervals of sizes: by hand where cells add up, withheld where nothing honest can be said."""

import dataclasses
import math

import numpy as np
import pytest

from splitmeans.intervals.cell_shares import cell_shares, one_segment
from splitmeans.intervals.sizes import WIDTH_95, size_intervals
from splitmeans.plan.settle import make_plan
from splitmeans.result.intervals import intervals_of
from splitmeans.result.result import Result
from splitmeans.study import DetailOptions
from splitmeans.synopsis.build import build_synopsis, build_synopsis_from_points
from splitmeans.synopsis.plan_precision import refusal, with_precision
from splitmeans.synopsis.replicates.cell_tables import possible_cells
from splitmeans.synopsis.segments import assign_nodes
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
    wide = dataclasses.replace(plan, n_local_clusters=(8, 8), n_labels=(8, 8))
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


def placed_synopsis(study, *users):
    """Pseudo-users, each with its labels at both parties, income, age and weight."""
    centres = [
        np.array([[-GRID // 2, 0, 0], [GRID // 2, 0, 0]]),
        np.array([[-GRID // 2], [GRID // 2]]),
    ]
    labels = np.array([one[:2] for one in users])
    nodes = np.array([[income, 0, 0, age] for _, _, income, age, _ in users]) * GRID
    weights = np.array([float(one[-1]) for one in users])
    nodes = np.rint(nodes).astype(np.int64)
    return build_synopsis_from_points(labels, weights, centres, study.parties, nodes=nodes)


def test_shares_of_cells_by_hand(plan):
    """Two users of the first cell are on either side of the border, 3 : 1 by weight."""
    synopsis = placed_synopsis(
        plan.study, (0, 0, -0.9, -0.5, 300), (0, 0, -0.1, -0.5, 100), (1, 1, 0.5, 0.5, 80)
    )
    centres = centres_at((-0.8, 0), (0.4, 0))
    shares = cell_shares(synopsis, centres, (2, 2))
    table = np.array([[400.0, 0.0], [0.0, 80.0]])
    assert shares.sizes(table).tolist() == [300, 180]
    assert shares.sizes(table).tolist() == assign_nodes(synopsis, centres)[1].tolist()
    # Empty cells are where their local centres are: (0, 1) at -0.5 is the first's, (1, 0) not.
    assert shares.sizes(np.ones((2, 2))).tolist() == [1.75, 2.25]
    np.testing.assert_allclose(shares.squares(), [0.75**2 + 1, 0.25**2 + 2])
    # A hundred users of the second segment are in a cell of the first.
    assert shares.exchanged(table).tolist() == [100, 100]
    assert one_segment(4).sizes(table).tolist() == [480]
    assert one_segment(4).exchanged(table).tolist() == [0]


def test_shares_of_every_cell_add_up_to_one(plan):
    rng = np.random.default_rng(5)
    users = [
        (*rng.integers(2, size=2), *rng.uniform(-1, 1, 2), rng.exponential()) for _ in range(300)
    ]
    synopsis = placed_synopsis(plan.study, *users)
    centres = centres_at(*rng.uniform(-1, 1, (5, 2)))
    shares = cell_shares(synopsis, centres, (2, 2))
    np.testing.assert_allclose(np.bincount(shares.cells, weights=shares.shares), np.ones(4))
    grid = np.zeros((2, 2))
    np.add.at(grid, tuple(synopsis.labels.T), synopsis.weights)
    np.testing.assert_allclose(shares.sizes(grid), assign_nodes(synopsis, centres)[1])


def test_users_across_a_border_make_the_interval_wider(plan):
    """Half the width that borders add is a quarter of the root of size times exchanged users.

    Twice that here, because region is a column of categories.
    """
    synopsis = placed_synopsis(
        plan.study,
        *((0, 0, -0.9, -0.5, 30_000), (0, 0, -0.1, -0.5, 10_000)),
        *((1, 1, 0.5, 0.5, 40_000), (0, 1, -0.5, 0.5, 0), (1, 0, 0.5, -0.5, 0)),
    )
    through, between = centres_at((-0.8, 0), (0.4, 0)), centres_at((NEAR, NEAR), (FAR, FAR))
    close, clear = size_intervals(plan, synopsis, [through, between], rng=np.random.default_rng(1))
    expected = 2 * 0.25 * np.sqrt(10_000 * np.array([30_000, 50_000]))
    # Noise is far below that, and adds in squares.
    np.testing.assert_allclose((close.high - close.low) / 2, expected, rtol=0.02)
    np.testing.assert_allclose((close.high + close.low) / 2, [30_000, 50_000])
    assert np.all(clear.high - clear.low < (close.high - close.low) / 5)


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


def test_of_the_sketch_they_are_withheld():
    study = small_study(membership="sketch")
    plan = make_plan(study)
    synopsis = synopsis_of(study, [[400, 200], [0, 300]])
    halves = centres_at((NEAR, 0), (FAR, 0))
    assert size_intervals(plan, synopsis, [halves], rng=np.random.default_rng(1)) is None
    assert "'sketch'" in refusal(plan, synopsis)


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


def test_with_detail_sizes_and_replicates_have_none():
    study, plain = (small_study(detail=detail) for detail in (DetailOptions(), None))
    plan = make_plan(study)
    synopsis = synopsis_of(study, [[400, 200], [0, 300]])
    assert "the study has [detail], so points were drawn anew" in refusal(plan, synopsis)
    halves = centres_at((NEAR, 0), (FAR, 0))
    assert size_intervals(plan, synopsis, [halves], rng=np.random.default_rng(1)) is None
    assert with_precision(synopsis, plan).replicates is None
    # The same study without it has both, so the reason is detail and nothing else.
    assert refusal(make_plan(plain), synopsis) is None
    assert with_precision(synopsis, make_plan(plain)).precision is not None


def test_a_result_has_the_same_intervals_everywhere(tmp_path):
    read = Result.read(write_small_result(tmp_path / "r"))
    found = read.size_intervals()
    again = intervals_of(read, [read.segments(3), read.published]).found[1]
    assert np.all(found.low <= read.published.sizes)
    assert np.all(found.high >= read.published.sizes)
    assert found.low.shape == again.low.shape == (2,)
