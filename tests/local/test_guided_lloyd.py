"""Guided-lloyd: what a round costs, how points follow its answers, and odd tables."""

import math
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audits.noise_twins import Silence
from splitmeans.errors import ParameterError
from splitmeans.local.correction import Answer, Cluster, corrected, offset_weights
from splitmeans.local.guided_lloyd import GuidedLloyd, _more_of_far_ones
from splitmeans.local.law import mu_scale
from splitmeans.local.laws.guided_lloyd import (
    FINE_UNITS,
    MOST_SQUARES,
    ROUNDS,
    GuidedLloydLaw,
    sensitivity,
)
from splitmeans.privacy.noise import InsecureSeededNoise
from splitmeans.shrinkage import shrinkage
from splitmeans.study.coding import Coding
from splitmeans.table.walk.memory import as_rows

UNIT = 2**20


@dataclass
class NoNoise(Silence):
    """Adds nothing, and notes what was asked for."""

    asked: list[tuple[float, int]] = field(default_factory=list)

    def gaussian(self, scale: float, size: int):
        self.asked.append((scale, size))
        return np.zeros(size, dtype=np.int64)


def release(rows, *, n_clusters, bounds, mu, noise=None, seed=0):
    algorithm = GuidedLloyd(n_clusters=n_clusters, bounds=bounds, mu=mu)
    source = InsecureSeededNoise(seed) if noise is None else noise
    return algorithm.release(
        np.asarray(rows, dtype=np.int64), noise=source, rng=np.random.default_rng(seed)
    )


# --- the law


@pytest.mark.parametrize("d", [1, 2, 3, 4, 30])
@pytest.mark.parametrize("mu", [1e-4, 0.3, 2.0])
def test_survey_and_rounds_add_up_to_mu(d, mu):
    law = GuidedLloydLaw(n_clusters=5, bounds=(UNIT,) * d, mu=mu)
    assert math.hypot(law.survey.mu, *law.round_mus) == pytest.approx(mu, rel=1e-12)
    spent = math.hypot(*(1 / part.noise_multiplier for part in law.event.parts))
    assert 0.999 * mu <= spent <= mu


def test_the_event_is_the_survey_then_the_rounds():
    law = GuidedLloydLaw(n_clusters=4, bounds=(UNIT,) * 5, mu=0.3)
    survey = law.survey.event.parts
    assert law.event.parts[: len(survey)] == survey
    assert len(law.event.parts) == len(survey) + len(ROUNDS)
    # Rounds cost what their parts say: the last of 1.5 ten times the first of 0.15.
    first, last = (law.event.parts[place].noise_multiplier for place in (-len(ROUNDS), -1))
    assert first / last == pytest.approx(math.sqrt(ROUNDS[-1][1] / ROUNDS[0][1]))


@pytest.mark.parametrize("bounds", [(UNIT,), (UNIT,) * 3, (UNIT, 7, 30 * UNIT // 2)])
def test_what_a_release_costs_does_not_depend_on_the_number_of_clusters(bounds):
    """So the number may follow from what was released before."""
    events = [GuidedLloydLaw(n_clusters=k, bounds=bounds, mu=0.4).event for k in (1, 4, 64, 250)]
    assert all(event == events[0] for event in events)


@pytest.mark.parametrize(
    ("k", "expected"),
    [
        (1, [1, 1, 2, 2, 1]),
        (4, [4, 4, 6, 6, 4]),
        (12, [4, 12, 18, 18, 12]),
        (64, [16, 64, 96, 96, 64]),
    ],
)
def test_rounds_go_from_few_clusters_over_more_than_wanted_to_those_released(k, expected):
    law = GuidedLloydLaw(n_clusters=k, bounds=(UNIT,), mu=1.0)
    assert list(law.round_clusters) == expected


def test_sensitivity_by_hand():
    # r = 8 in 1/256 units is 2048; sqrt(89) / 8 of it is 2415.1.
    assert sensitivity(8) == 2416


@given(radius=st.integers(8, 2**24), mu=st.floats(1e-3, 20))
@settings(max_examples=50, deadline=None)
def test_every_radius_costs_at_most_what_the_event_says(radius, mu):
    law = GuidedLloydLaw(n_clusters=3, bounds=(UNIT,), mu=mu)
    for round_mu, event in zip(law.round_mus, law.event.parts[-len(ROUNDS) :], strict=True):
        scale = mu_scale(sensitivity(radius), mu=round_mu)
        assert scale / sensitivity(radius) >= event.noise_multiplier


# --- what one row moves


@given(
    d=st.one_of(st.integers(1, 6), st.sampled_from([13, 60])),
    k=st.integers(1, 5),
    seed=st.integers(0, 10**6),
)
@settings(max_examples=60, deadline=None)
def test_one_row_moves_a_round_by_its_sensitivity_at_most(d, k, seed):
    rng = np.random.default_rng(seed)
    lloyd = GuidedLloyd(n_clusters=k, bounds=(UNIT,) * d, mu=1.0)
    rows = rng.integers(-UNIT, UNIT + 1, (20, d))
    centres = rng.integers(-UNIT, UNIT + 1, (k, d))
    radii = rng.integers(8, 2 * UNIT, k)
    there, away = (
        lloyd.noisy_sums(as_rows(table), centres, radii, mu=1.0, noise=Silence())
        for table in (rows, rows[:-1])
    )
    changed = np.flatnonzero((there != away).any(axis=1))
    assert len(changed) == 1
    change = [int(x) for x in (there - away)[changed[0]]]
    assert sum(x * x for x in change) <= sensitivity(int(radii[changed[0]])) ** 2


def test_a_row_far_away_reaches_the_sensitivity():
    """The stated sensitivity is not more than a row can do, up to rounding."""
    lloyd = GuidedLloyd(n_clusters=1, bounds=(UNIT, UNIT), mu=1.0)
    radii = np.array([UNIT // 4])
    row, centre = as_rows(np.array([[UNIT, 0]])), np.array([[-UNIT, 0]])
    found = lloyd.noisy_sums(row, centre, radii, mu=1.0, noise=Silence())
    assert math.hypot(*found[0]) == pytest.approx(sensitivity(UNIT // 4), rel=1e-4)


def test_noise_is_in_proportion_to_the_radius():
    lloyd = GuidedLloyd(n_clusters=2, bounds=(UNIT, UNIT), mu=1.0)
    noise = NoNoise()
    rows, centres = as_rows(np.zeros((9, 2), dtype=np.int64)), np.array([[0, 0], [9, 9]])
    lloyd.noisy_sums(rows, centres, np.array([UNIT // 10, UNIT // 2]), mu=0.5, noise=noise)
    (narrow, size), (wide, _) = noise.asked
    assert size == 5  # two columns, the count, the squares of two columns
    assert wide / narrow == pytest.approx(5, rel=1e-4)
    assert narrow == pytest.approx(2 * math.sqrt(89 / 64) * UNIT / 10 * FINE_UNITS, rel=1e-4)


@pytest.mark.parametrize("d", [1, 2, 5, MOST_SQUARES, MOST_SQUARES + 1])
def test_noise_is_asked_for_as_the_event_says(d):
    """One draw for each release of the survey, then numbers for each centre of each round."""
    law = GuidedLloydLaw(n_clusters=6, bounds=(UNIT,) * d, mu=0.3)
    noise = NoNoise()
    rows = np.random.default_rng(0).integers(-UNIT, UNIT, (2000, d))
    release(rows, n_clusters=6, bounds=(UNIT,) * d, mu=0.3, noise=noise)
    survey = len(law.survey.event.parts)
    # Centres of the same radius share a draw; none has less noise than the smallest radius.
    asked = iter(noise.asked[survey:])
    for k, event in zip(law.round_clusters, law.event.parts[survey:], strict=True):
        drawn, expected = 0, k * (2 * d + 1 if d <= MOST_SQUARES else d + 2)
        assert event.realised.coordinates == expected // k
        while drawn < expected:
            scale, size = next(asked)
            assert scale >= event.realised.scale
            drawn += size
        assert drawn == expected
    assert next(asked, None) is None


def test_the_order_of_rows_does_not_matter():
    rng = np.random.default_rng(5)
    rows = rng.integers(-UNIT, UNIT, (3000, 3))
    options = {"n_clusters": 5, "bounds": (UNIT,) * 3, "mu": 0.5}
    first, second = release(rows, **options), release(rng.permutation(rows), **options)
    assert (first.centres == second.centres).all()
    assert (first.points == second.points).all()


# --- correction


def answer_of(*, counts, offsets, squares, deviation):
    k = len(counts)
    return Answer(
        radii=np.full(k, 100.0),
        counts=np.array(counts),
        count_deviations=np.full(k, deviation),
        offsets=np.array(offsets),
        offset_deviations=np.full(k, deviation),
        squares=np.array(squares),
        square_deviations=np.full(k, deviation),
    )


def two_clusters():
    """Points at 0 and 2, and at 20 and 22; a weight of one each."""
    points, weights = np.array([[0.0], [2.0], [20.0], [22.0]]), np.ones(4)
    centres = np.array([[1.0], [21.0]])
    return points, weights, Cluster.of_points(points, weights, centres=centres)


def test_clusters_of_points_by_hand():
    _, _, clusters = two_clusters()
    assert clusters.of_point.tolist() == [0, 0, 1, 1]
    assert clusters.totals.tolist() == [2, 2]
    assert clusters.means.tolist() == [[1], [21]]
    assert clusters.spreads.tolist() == [1, 1]


def test_a_cluster_without_points_stays_and_has_the_usual_spread():
    points, weights, _ = two_clusters()
    centres = np.array([[1.0], [21.0], [500.0]])
    clusters = Cluster.of_points(points, weights, centres=centres)
    assert clusters.totals.tolist() == [2, 2, 0]
    assert clusters.means[2].tolist() == [500]
    assert clusters.spreads.tolist() == [1, 1, 1]


def one_column(bound):
    coding = Coding(bounds=(bound,), levels=(0,))
    return {"coding": coding, "present": np.ones(1), "rng": np.random.default_rng(0)}


def test_a_clear_answer_moves_the_points():
    points, weights, clusters = two_clusters()
    # Rows at 1, 4 and 7, and at 19 and 21: offsets from the centres 1 and 21 are 0, 3, 6; -2, 0.
    answer = answer_of(
        counts=[3.0, 2.0], offsets=[[9.0], [-2.0]], squares=[[45.0], [4.0]], deviation=1e-9
    )
    moved, weighted, means = corrected(
        points, weights, clusters, answer, size=5.0, **one_column(1000)
    )
    assert means.ravel() == pytest.approx([4, 20])
    assert weighted == pytest.approx([1.5, 1.5, 1, 1])
    # Squares of 15 about the centre, 9 of them because the mean is off by 3: a spread of root 6.
    root = math.sqrt(6)
    assert moved.ravel() == pytest.approx([4 - root, 4 + root, 19, 21])


def test_rows_in_one_place_leave_little_spread():
    points, weights, clusters = two_clusters()
    # Three rows at 4, all of whose squares about the centre 1 are what the mean is off by.
    answer = answer_of(
        counts=[3.0, 2.0], offsets=[[9.0], [0.0]], squares=[[27.0], [2.0]], deviation=1e-9
    )
    moved, _, _ = corrected(points, weights, clusters, answer, size=5.0, **one_column(1000))
    assert moved.ravel() == pytest.approx([4 - 1 / 3, 4 + 1 / 3, 20, 22])


def test_squares_of_all_columns_together_stretch_them_alike():
    points = np.array([[0.0, 0.0], [2.0, 4.0]])
    clusters = Cluster.of_points(points, np.ones(2), centres=np.array([[1.0, 2.0]]))
    # Squares of 20 where the points have 1 and 4 in their columns, so 4 times them.
    answer = answer_of(counts=[2.0], offsets=[[0.0, 0.0]], squares=[[40.0]], deviation=1e-9)
    coding = Coding(bounds=(1000, 1000), levels=(0, 0))
    moved, _, _ = corrected(
        points,
        np.ones(2),
        clusters,
        answer,
        size=2.0,
        coding=coding,
        present=np.ones(2),
        rng=np.random.default_rng(0),
    )
    assert moved.tolist() == [pytest.approx([-1, -2]), pytest.approx([3, 6])]


def test_an_answer_that_is_all_noise_moves_nothing():
    points, weights, clusters = two_clusters()
    answer = answer_of(
        counts=[30.0, -5.0], offsets=[[90.0], [-50.0]], squares=[[9.0], [1.0]], deviation=1e6
    )
    moved, weighted, means = corrected(
        points, weights, clusters, answer, size=4.0, **one_column(1000)
    )
    assert moved == pytest.approx(points)
    assert weighted == pytest.approx(weights)
    assert means == pytest.approx(clusters.means)


def test_points_stay_inside_the_bounds():
    points, weights, clusters = two_clusters()
    answer = answer_of(
        counts=[2.0, 2.0], offsets=[[0.0], [180.0]], squares=[[2.0], [9000.0]], deviation=1e-9
    )
    moved, _, _ = corrected(points, weights, clusters, answer, size=4.0, **one_column(22))
    assert np.abs(moved).max() <= 22


# --- whole runs


def test_columns_of_different_weight():
    # The second column is a hundredth as wide; clusters differ in the first one.
    rng = np.random.default_rng(2)
    first = rng.choice([-UNIT // 2, UNIT // 2], 3000)
    rows = np.column_stack([first, rng.integers(-UNIT // 100, UNIT // 100, 3000)])
    found = release(rows, n_clusters=2, bounds=(UNIT, UNIT // 100), mu=0.5)
    assert sorted(found.centres[:, 0] / UNIT) == pytest.approx([-0.5, 0.5], abs=0.02)


def test_points_lie_as_the_rows_do():
    rng = np.random.default_rng(3)
    rows = np.where(rng.random((20_000, 1)) < 0.3, -UNIT // 2, UNIT // 4)
    rows = rows + rng.integers(-UNIT // 20, UNIT // 20, (20_000, 3))
    found = release(rows, n_clusters=4, bounds=(UNIT,) * 3, mu=1.0)
    assert found.points.mean(axis=0) / UNIT == pytest.approx([0.025] * 3, abs=0.02)
    assert (found.points[:, 0] < 0).mean() == pytest.approx(0.3, abs=0.03)


def one_hot(n, levels, *, seed=0):
    level = np.random.default_rng(seed).integers(0, levels, n)
    return np.where(np.eye(levels, dtype=bool)[level], UNIT, -UNIT)


def uniform(n, d, *, bound=UNIT):
    return np.random.default_rng(0).integers(-bound, bound + 1, (n, d))


ODD_TABLES = {
    "no row": (uniform(0, 2), (UNIT,) * 2, 3),
    "one row": (uniform(1, 3), (UNIT,) * 3, 5),
    "one column": (uniform(300, 1), (UNIT,), 4),
    "all rows equal": (np.full((300, 2), UNIT // 3), (UNIT,) * 2, 4),
    "all rows at a bound": (np.full((300, 3), -UNIT), (UNIT,) * 3, 4),
    "constant columns": (uniform(300, 4) * [1, 0, 1, 0], (UNIT,) * 4, 4),
    "70 columns": (uniform(300, 70), (UNIT,) * 70, 3),
    "250 clusters": (uniform(300, 2), (UNIT,) * 2, 250),
    "weight 44": (uniform(300, 1, bound=44 * UNIT), (44 * UNIT,), 4),
    "a box of three values": (uniform(300, 1, bound=1), (1,), 3),
    "very different bounds": (uniform(300, 3, bound=1), (1, UNIT, 15 * UNIT), 3),
    "one-hot categories": (one_hot(300, 5), (UNIT,) * 5, 6),
    "one-hot, cells": (one_hot(300, 3), (UNIT,) * 3, 6),
    "beyond the bounds": (uniform(300, 2, bound=9 * UNIT), (UNIT,) * 2, 3),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("mu", [1e-5, 0.2, 1e4])
@pytest.mark.parametrize("name", ODD_TABLES)
def test_odd_tables_raise_nothing(name, mu):
    """An error after a release would show something of the rows, and lose what was paid for."""
    rows, bounds, n_clusters = ODD_TABLES[name]
    found = release(rows, n_clusters=n_clusters, bounds=bounds, mu=mu)
    limits = np.array(bounds)
    assert found.centres.shape == (n_clusters, len(bounds))
    assert (np.abs(found.centres) <= limits).all()
    assert (np.abs(found.points) <= limits).all()


@pytest.mark.slow
def test_two_hundred_columns():
    found = release(uniform(200, 200), n_clusters=2, bounds=(UNIT,) * 200, mu=0.5)
    assert found.centres.shape == (2, 200)
    assert np.abs(found.points).max() <= UNIT


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mu": 0}, "mu must be > 0"),
        ({"n_clusters": 0}, "n_clusters must be a whole number >= 1"),
        ({"bounds": ()}, "bounds must be a tuple"),
    ],
)
def test_wrong_parameters_are_refused(change, message):
    with pytest.raises(ParameterError, match=message):
        GuidedLloyd(**{"n_clusters": 2, "bounds": (UNIT,), "mu": 1.0} | change)


def test_a_cluster_that_stands_out_moves_by_itself():
    offsets = np.zeros((50, 2))
    offsets[7] = [30.0, 40.0]
    found = offset_weights(offsets, np.ones((50, 2)))
    # Its squared length is 2,500, that of the noise 2, of which it is taken to be three times.
    np.testing.assert_allclose(found[7], 1 - 6 / 2_500)
    together = shrinkage(offsets, np.ones((50, 2)))
    assert (found[7] > together[7]).all()
    np.testing.assert_array_equal(np.delete(found, 7, axis=0), np.delete(together, 7, axis=0))


@pytest.mark.parametrize("shape", [(0, 2), (3, 0)])
def test_no_offsets_have_no_weights(shape):
    assert offset_weights(np.zeros(shape), np.ones(shape)).shape == shape


def thin_tail(n: int, d: int, *, seed: int):
    """Most rows near one corner, few far out, the tails of columns together."""
    rng = np.random.default_rng(seed)
    sums = rng.lognormal(0, 1.2, size=(n, 1)) * rng.lognormal(0, 0.4, size=(n, d))
    return np.rint((np.minimum(sums / 30, 1) * 2 - 1) * UNIT).astype(np.int64)


def test_far_points_are_more_and_stand_for_as_much():
    points = thin_tail(20_000, 3, seed=1).astype(float)
    chosen, shares = _more_of_far_ones(points, 4_000, rng=np.random.default_rng(2))
    assert chosen.shape == (4_000, 3)
    assert shares.sum() == pytest.approx(1)
    far = points[:, 0] > 0
    assert (chosen[:, 0] > 0).mean() > 10 * far.mean()
    assert shares[chosen[:, 0] > 0].sum() == pytest.approx(far.mean(), rel=0.1)
    np.testing.assert_allclose(shares @ chosen, points.mean(axis=0), rtol=0.01)


def test_points_at_one_place_are_all_alike():
    _, shares = _more_of_far_ones(np.ones((40, 2)), 10, rng=np.random.default_rng(0))
    np.testing.assert_allclose(shares, 0.1)


def test_points_keep_most_of_the_variance_within_clusters_of_a_thin_tail():
    kept = []
    for seed in range(4):
        rows = thin_tail(20_000, 3, seed=seed)
        found = release(rows, n_clusters=12, bounds=(UNIT,) * 3, mu=0.15, seed=seed)
        losses = [
            np.square(own[:, np.newaxis] - found.centres.astype(float)).sum(axis=2).min(axis=1)
            for own in (found.points, rows)
        ]
        kept.append(losses[0].mean() / losses[1].mean())
    assert 0.7 < np.mean(kept) < 1.2


def test_clusters_that_noise_hides_are_not_released():
    rows = thin_tail(20_000, 3, seed=0)
    found = release(rows, n_clusters=40, bounds=(UNIT,) * 3, mu=0.15)
    assert found.centres.shape == (40, 3)
    in_use = len(np.unique(found.centres, axis=0))
    assert 10 <= in_use < 40
    assert (found.centres[in_use - 1 :] == found.centres[-1]).all()


def test_without_noise_all_clusters_are_released():
    found = release(uniform(3_000, 2), n_clusters=12, bounds=(UNIT, UNIT), mu=100.0)
    assert len(np.unique(found.centres, axis=0)) == 12


def test_few_clusters_stay_in_any_case():
    found = release(uniform(300, 2), n_clusters=10, bounds=(UNIT, UNIT), mu=0.05)
    assert len(np.unique(found.centres, axis=0)) == 10
