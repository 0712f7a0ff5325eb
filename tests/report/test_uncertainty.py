"""Deviations of sizes: against the noise of the law where cells add up, and unknown elsewhere."""

import dataclasses
import math

import numpy as np
import pytest
from splitmeans.report.uncertainty import size_deviations

from splitmeans.grid.synopsis import build_synopsis
from splitmeans.plan import make_plan

from .small_result import GRID, small_study


def synopsis_of(study, weights):
    centres = [
        np.array([[-GRID // 2, 0, 0], [GRID // 2, 0, 0]]),
        np.array([[-GRID // 2], [GRID // 2]]),
    ]
    return build_synopsis(np.array(weights, dtype=float), centres, study.parties)


@pytest.fixture(scope="module")
def plan():
    return make_plan(small_study())


def test_noise_of_cells_adds_up(plan):
    """Far above the noise nothing is cut, so a segment of m cells varies by sqrt(m) deviations."""
    synopsis = synopsis_of(plan.study, [[40_000, 20_000], [10_000, 30_000]])
    deviation = math.sqrt(plan.membership.variance + plan.membership.server_sigma**2)
    one_and_three = np.array([0, 1, 1, 1])
    halves = np.array([0, 0, 1, 1])
    first, second = size_deviations(
        plan, synopsis, [one_and_three, halves], rng=np.random.default_rng(1)
    )
    # A root mean square of 100 draws is off by 7 % (one standard error); 5 of them are 35 %.
    np.testing.assert_allclose(first, deviation * np.sqrt([1, 3]), rtol=0.35)
    np.testing.assert_allclose(second, deviation * np.sqrt([2, 2]), rtol=0.35)


def test_cells_that_stay_empty_vary_less_than_their_noise(plan):
    synopsis = synopsis_of(plan.study, [[40_000, 0], [0, 30_000]])
    (sizes,) = size_deviations(
        plan, synopsis, [np.array([0, 1, 1, 0])], rng=np.random.default_rng(1)
    )
    deviation = math.sqrt(plan.membership.variance + plan.membership.server_sigma**2)
    assert sizes[1] < deviation * math.sqrt(2)


def test_three_parties_are_redrawn_in_pairs():
    study = small_study()
    third = dataclasses.replace(study.parties[1], name="shop")
    study = dataclasses.replace(study, parties=(*study.parties, third))
    plan = make_plan(study)
    assert plan.grid_method == "pairs"
    centres = [
        np.array([[-GRID // 2, 0, 0], [GRID // 2, 0, 0]]),
        *(np.array([[-GRID // 2], [GRID // 2]]),) * 2,
    ]
    weights = np.zeros((2, 2, 2))
    weights[0, 0, 0], weights[1, 1, 1] = 50_000, 30_000
    synopsis = build_synopsis(weights, centres, study.parties)
    of_node = np.repeat([0, 1], 4)
    (sizes,) = size_deviations(plan, synopsis, [of_node], rng=np.random.default_rng(1))
    assert np.all(sizes > 0)
    assert np.all(sizes < 2_000)


@pytest.mark.parametrize(
    "change", [{"membership": "ldp"}, {"membership": "exact"}, {"membership": "sketch"}], ids=str
)
def test_other_methods_are_unknown(change):
    study = small_study(**change)
    plan = make_plan(study)
    synopsis = synopsis_of(study, [[400, 200], [0, 300]])
    nodes = np.array([0, 0, 1, 1])
    assert size_deviations(plan, synopsis, [nodes], rng=np.random.default_rng(1)) is None


def test_grids_that_are_too_large_are_unknown(plan):
    large = dataclasses.replace(plan, n_local_clusters=(1000, 1000))
    synopsis = synopsis_of(plan.study, [[400, 200], [0, 300]])
    nodes = np.array([0, 0, 1, 1])
    assert size_deviations(large, synopsis, [nodes], rng=np.random.default_rng(1)) is None
