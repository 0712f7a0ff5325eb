"""Replicates: the same for every reader, cells that keep their users, intervals that hold."""

import dataclasses

import numpy as np
import pytest

from splitmeans.errors import ParameterError
from splitmeans.estimator import VerticalKMeans
from splitmeans.privacy.noise import InsecureSeededNoise
from splitmeans.synopsis.column_places import column_places, find_column
from splitmeans.synopsis.precision import Precision
from splitmeans.synopsis.replicates.replicates import half_width, width_95
from splitmeans.synopsis.replicates.within_cells import _centred, _ranks, _unevenness
from splitmeans.synopsis.synopsis import Synopsis


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(3)
    group = rng.integers(3, size=4_000)
    places = rng.uniform(-0.6, 0.6, (3, 4))
    return np.clip(places[group] + rng.normal(0, 0.15, (4_000, 4)), -1, 1)


@pytest.fixture(scope="module")
def synopsis(rows):
    model = VerticalKMeans(
        3,
        epsilon=2,
        delta=1e-6,
        bounds=(-1, 1),
        n_local_clusters=6,
        noise=InsecureSeededNoise(1),
        random_state=1,
    )
    return model.fit([rows[:, :2], rows[:, 2:]]).synopsis_


def names(synopsis):
    return [place.name for place in column_places(synopsis)]


def test_rows_are_the_published_ones_then_cells_that_were_cut(synopsis):
    found = synopsis.replicates
    n = len(synopsis.weights)
    assert found.published == n
    assert found.n == 50
    np.testing.assert_array_equal(found.synopsis.scaled_nodes[:n], synopsis.scaled_nodes)
    np.testing.assert_array_equal(found.synopsis.weights[:n], synopsis.weights)
    assert found.synopsis.weights[n:].tolist() == [0.0] * (len(found.synopsis.weights) - n)
    assert found.weights().shape == (len(found.synopsis.weights), 50)


def test_everyone_who_reads_the_file_has_the_same(synopsis, tmp_path):
    synopsis.to_parquet(tmp_path / "synopsis.parquet")
    again = Synopsis.from_parquet(tmp_path / "synopsis.parquet")
    assert again.precision == synopsis.precision
    column = names(synopsis)[0]
    np.testing.assert_array_equal(
        again.replicates.weights([column]), synopsis.replicates.weights([column])
    )
    np.testing.assert_array_equal(
        again.replicates.values(column), synopsis.replicates.values(column)
    )


def test_the_users_of_a_cell_are_those_that_were_drawn_for_it(synopsis):
    found = synopsis.replicates
    whole = found.within.cells
    by_cell = np.zeros((whole.max() + 1, found.n))
    np.add.at(by_cell, whole, found.cell_weights[: found.published])
    with_values = np.zeros_like(by_cell)
    np.add.at(with_values, whole, found.weights()[: found.published])
    np.testing.assert_allclose(with_values, by_cell, atol=1e-2)


def test_values_stay_within_bounds_and_near(synopsis):
    column = find_column(names_places(synopsis), names(synopsis)[0])
    moved = synopsis.replicates.values(column.name)
    assert moved.min() >= column.low
    assert moved.max() <= column.high
    published = synopsis.replicates.synopsis.nodes[:, column.feature]
    # Half a bin and a tenth of a cluster's deviation: far less than the column's range.
    assert np.abs(moved - published[:, np.newaxis]).mean() < 0.15


def names_places(synopsis):
    return column_places(synopsis)


def test_intervals_of_totals_means_and_shares_hold_the_truth(synopsis, rows):
    """One seed: each interval is wrong once in twenty times, so two of nine may be (0.8 %)."""
    wrong = 0
    for at, name in enumerate(names(synopsis)):
        for statistic, truth in (
            (lambda value, w, name=name: w @ value(name) / w.sum(), rows[:, at].mean()),
            (
                lambda value, w, name=name: w[value(name) <= 0.1].sum() / w.sum(),
                (rows[:, at] <= 0.1).mean(),
            ),
        ):
            found = synopsis.replicates
            half = found.half_width(statistic, columns=[name])
            figure = statistic(found._published_values, found.synopsis.weights)
            assert 0 < half < 0.5
            wrong += not abs(figure - truth) <= half
    half = synopsis.replicates.half_width(lambda _, w: w.sum(), columns=[])
    wrong += not abs(synopsis.total - len(rows)) <= half
    assert wrong <= 2


def test_no_precision_no_replicates(synopsis):
    assert dataclasses.replace(synopsis, precision=None).replicates is None
    assert dataclasses.replace(synopsis, labels=None, centres=None).replicates is None


def test_a_precision_of_another_grid_is_refused(synopsis):
    other = dataclasses.replace(synopsis.precision, shape=(6, 7))
    with pytest.raises(ParameterError, match=r"local clusters.*, got shape \(6, 7\) and 4"):
        dataclasses.replace(synopsis, precision=other)
    with pytest.raises(ParameterError, match="precision must have"):
        Precision(shape=(2, 2), groups=((0, 1),), deviations=(0.0,), resolutions=())


def test_ranks_by_hand():
    """Two clusters; equal values share the middle of their ranks, weights count."""
    ranks = _ranks(
        np.array([5.0, 1.0, 1.0, 7.0, 9.0]),
        np.array([0, 0, 0, 1, 1]),
        np.array([1.0, 1.0, 2.0, 1.0, 3.0]),
    )
    # Of 4 users in the first cluster 3 share ranks 0 to 3/4, the last has 3/4 to 1.
    np.testing.assert_allclose(ranks, [0.75, -0.25, -0.25, -0.75, 0.25])


def test_factors_leave_every_cell_its_users():
    found = _centred(
        np.array([[1.0], [3.0], [5.0]], dtype=np.float32),
        np.array([1.0, 3.0, 2.0]),
        np.array([1, 1, 0]),
    )
    np.testing.assert_allclose(found[:, 0], [-1.5, 0.5, 0.0])


def test_half_widths_by_hand():
    assert width_95(50) == pytest.approx(2.009, abs=0.002)  # Student's t, 50 degrees
    assert width_95(20) == pytest.approx(2.086, abs=0.005)
    assert half_width(np.array([3.0, -3.0])) == pytest.approx(width_95(2) * 3)


@pytest.mark.parametrize(
    ("asked", "message"),
    [("nothing", "there is no column 'nothing'; the synopsis has"), ("x", "could be any of")],
)
def test_columns_that_are_not_there_are_named(synopsis, asked, message):
    places = [dataclasses.replace(place, column="x") for place in column_places(synopsis)]
    with pytest.raises(ParameterError, match=message):
        find_column(places, asked)


def test_bins_are_uneven_where_columns_have_atoms():
    # Bins of 0, 8, 0: 8 away from the mean of its neighbours, which are 8 away from theirs.
    assert _unevenness(np.array([0.0, 8.0, 0.0])) == 1.0
    assert _unevenness(np.full(6, 5.0)) == 0.0
    assert _unevenness(np.zeros(4)) == 0.0
    # 4, 6, 6, 4: two of 20 at the outer bins, one at each inner one: 0.3, a third of the way.
    assert _unevenness(np.array([4.0, 6.0, 6.0, 4.0])) == pytest.approx(1 / 3)


def test_bounds_beside_whole_numbers_have_intervals_that_hold(monkeypatch):
    """Grades of 0 to 6, asked just beside a grade: points of a grade lie on both sides.

    Seeded: 120 intervals of five runs, of which 110 at least must be right; without the allowance
    for atoms fewer than 100 are.
    """
    rng = np.random.default_rng(8)
    kind = rng.integers(4, size=6_000)
    grades = rng.binomial(6, rng.uniform(0.1, 0.9, (4, 6))[kind]) / 3 - 1
    synopses = [
        VerticalKMeans(
            3, epsilon=0.5, bounds=(-1, 1), noise=InsecureSeededNoise(seed), random_state=seed
        )
        .fit([grades[:, :3], grades[:, 3:]])
        .synopsis_
        for seed in range(5, 10)
    ]

    def right() -> int:
        found = 0
        for synopsis in map(dataclasses.replace, synopses):
            for at, name in enumerate(synopsis.feature_names):
                for bound in (-0.35, -0.3, 0.02, 0.36):
                    table = synopsis.table(name, bins=[bound])
                    found += table.low[1] <= (grades[:, at] > bound).sum() <= table.high[1]
        return found

    assert right() >= 110
    monkeypatch.setattr("splitmeans.synopsis.replicates.within_cells._MOVED_ATOMS", 0.0)
    assert right() < 100
