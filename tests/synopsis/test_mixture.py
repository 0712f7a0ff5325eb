"""Gaussian mixtures on a synopsis: steps against plain formulas, odd synopses, labels."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from splitmeans._types import NO_VALUE
from splitmeans.errors import ParameterError
from splitmeans.study import Column
from splitmeans.study.features import GRID_UNITS
from splitmeans.synopsis.models.mixture import fit_mixture
from splitmeans.synopsis.models.mixture_steps import (
    LEAST_DEVIATION,
    Components,
    best_components,
    responsibilities,
)
from tests.synopsis.model_scene import mixed_synopsis, numbers_synopsis


def components(rng, *, k=3, d=4, diagonal=False):
    roots = rng.normal(size=(k, d, d)) / 3
    full = roots @ roots.transpose(0, 2, 1) + 0.05 * np.eye(d)
    return Components(
        shares=rng.dirichlet(np.ones(k)),
        means=rng.uniform(-1, 1, (k, d)),
        covariances=np.diagonal(full, axis1=1, axis2=2).copy() if diagonal else full,
        probabilities=(rng.dirichlet(np.ones(3), size=k),),
    )


@pytest.mark.parametrize("diagonal", [False, True])
def test_densities_are_those_of_scipy(diagonal):
    rng = np.random.default_rng(1)
    model = components(rng, diagonal=diagonal)
    numbers, level = rng.uniform(-1, 1, (500, 4)), rng.integers(3, size=500)
    found = model.log_densities(numbers, [np.eye(3)[level]])
    for at in range(3):
        covariance = np.diag(model.covariances[at]) if diagonal else model.covariances[at]
        plain = multivariate_normal(model.means[at], covariance).logpdf(numbers)
        plain += np.log(model.shares[at]) + np.log(model.probabilities[0][at, level])
        np.testing.assert_allclose(found[:, at], plain, rtol=1e-10)


@pytest.mark.parametrize("diagonal", [False, True])
def test_a_weight_is_as_many_rows(diagonal):
    rng = np.random.default_rng(2)
    numbers, weights = rng.uniform(-1, 1, (40, 3)), rng.integers(1, 4, size=40)
    shares, given = np.eye(2)[rng.integers(2, size=40)], rng.dirichlet(np.ones(2), size=40)
    one = best_components(numbers, [shares], weights.astype(float), given, diagonal=diagonal)
    many = best_components(
        np.repeat(numbers, weights, axis=0),
        [np.repeat(shares, weights, axis=0)],
        np.ones(weights.sum()),
        np.repeat(given, weights, axis=0),
        diagonal=diagonal,
    )
    np.testing.assert_allclose(one.shares, many.shares)
    np.testing.assert_allclose(one.means, many.means)
    np.testing.assert_allclose(one.probabilities[0], many.probabilities[0])
    # A full covariance is drawn to its diagonal a little more where fewer rows speak for it.
    own, all_rows = one.covariances, many.covariances
    np.testing.assert_allclose(own, all_rows, rtol=1e-9 if diagonal else 1, atol=0.02)


def test_a_step_by_hand():
    """Two users at 0 and one at 0.6 of category b: mean 0.2, variance 0.08 and the least one."""
    found = best_components(
        np.array([[0.0], [0.6]]),
        [np.array([[1.0, 0.0], [0.0, 1.0]])],
        np.array([2.0, 1.0]),
        np.ones((2, 1)),
        diagonal=True,
    )
    assert found.means[0, 0] == pytest.approx(0.2)
    assert found.covariances[0, 0] == pytest.approx(0.08 + LEAST_DEVIATION**2)
    # One user of the average kind is added: 2 + 2/3 and 1 + 1/3 of 4.
    np.testing.assert_allclose(found.probabilities[0], [[2 / 3, 1 / 3]])


def test_it_finds_what_the_nodes_were_drawn_from():
    rng = np.random.default_rng(3)
    centres = np.array([[-0.5, -0.5, 0.0], [0.5, 0.0, -0.5], [0.0, 0.6, 0.5]])
    group = rng.choice(3, size=3000, p=[0.5, 0.3, 0.2])
    synopsis = numbers_synopsis(centres[group] + rng.normal(0, 0.08, (3000, 3)))
    found = synopsis.mixture(3, random_state=0)
    np.testing.assert_allclose(found.centres, centres, atol=0.02)
    np.testing.assert_allclose(found.shares, [0.5, 0.3, 0.2], atol=0.03)
    np.testing.assert_allclose(found.deviations, 0.08, atol=0.01)
    assert found.covariance == "diagonal"  # nothing depends on anything, so fewer numbers do
    assert (found.of_node == group).mean() > 0.99
    again = synopsis.mixture(3, random_state=0)
    assert again.log_likelihood == found.log_likelihood
    assert synopsis.mixture(2, random_state=0).bic > found.bic


def test_dependence_within_a_component_wants_full_covariances():
    rng = np.random.default_rng(4)
    rows = np.clip(rng.normal(0, 0.3, (2000, 1)) + rng.normal(0, 0.03, (2000, 2)), -1, 1)
    found = numbers_synopsis(rows).mixture(1, random_state=0)
    assert found.covariance == "full"
    assert found.score(rows) > numbers_synopsis(rows).mixture(1, covariance="diagonal").score(rows)


def test_steps_do_not_lose_likelihood():
    rng = np.random.default_rng(5)
    rows, weights = rng.uniform(-1, 1, (300, 2)), rng.uniform(0.5, 2, 300)
    given = rng.dirichlet(np.ones(4), size=300)
    scores = []
    for _ in range(30):
        model = best_components(rows, [], weights, given, diagonal=True)
        given, own = responsibilities(model.log_densities(rows, []))
        scores.append(weights @ own / weights.sum())
    # The least variance that is added may cost a little near the end.
    assert np.diff(scores).min() > -1e-4


@pytest.mark.parametrize("covariance", ["auto", "full", "diagonal"])
def test_odd_synopses_have_finite_mixtures(covariance):
    rng = np.random.default_rng(6)
    wide = np.clip(rng.normal(0, 0.4, (400, 60)), -1, 1)
    one_place = np.zeros((5, 3))
    few = np.repeat([[0.0], [0.5]], 10, axis=0)
    n_wide = 50 if covariance == "full" else 5
    for rows, k, most in ((wide, n_wide, n_wide), (one_place, 4, 1), (few, 7, 2)):
        found = numbers_synopsis(rows).mixture(k, covariance=covariance, random_state=0)
        assert 1 <= found.k <= most
        assert np.isfinite(found.log_likelihood)
        assert np.isfinite(found.centres).all()
        assert found.shares.sum() == pytest.approx(1)
        np.testing.assert_allclose(found.probabilities(rows[:5]).sum(axis=1), 1)


def test_nobody_and_unknown_kinds_are_refused():
    with pytest.raises(ParameterError, match="hold no user"):
        numbers_synopsis(np.zeros((3, 1)), weights=np.zeros(3)).mixture(2)
    with pytest.raises(ParameterError, match="covariance must be one of 'auto', 'full'"):
        numbers_synopsis(np.zeros((3, 1))).mixture(2, covariance="round")
    with pytest.raises(ParameterError, match="k must be"):
        numbers_synopsis(np.zeros((3, 1))).mixture(0)


def test_categories_are_probabilities():
    synopsis = mixed_synopsis(np.random.default_rng(7))
    found = synopsis.mixture(2, random_state=0)
    plan = found.centres[:, 1:4]
    np.testing.assert_allclose(plan.sum(axis=1), 1)
    # Half of the users, at low incomes, have plan a or b; the others have c.
    low = int(np.argmin(found.centres[:, 0]))
    np.testing.assert_allclose(plan[low], [0.5, 0.5, 0], atol=0.06)
    np.testing.assert_allclose(plan[1 - low], [0, 0, 1], atol=0.02)


def test_rows_of_one_party_have_the_probabilities_of_its_margin():
    synopsis = mixed_synopsis(np.random.default_rng(8))
    found = fit_mixture(synopsis, 3, covariance="full", rng=np.random.default_rng(0))
    own = synopsis.columns_of("shop")
    scale = GRID_UNITS * np.ones(own.stop - own.start)
    rows = np.rint(synopsis.scaled_nodes[:50, own] * scale).astype(np.int64)
    shares = found.own_shares(rows, party="shop")
    margin = found.components.of_columns(np.array([False, True]), np.array([True]))
    numbers = synopsis.scaled_nodes[:50, 4:5]
    level = np.eye(3)[synopsis.scaled_nodes[:50, 1:4].argmax(axis=1)]
    plain = responsibilities(margin.log_densities(numbers, [level]))[0]
    np.testing.assert_allclose(shares, plain, atol=1e-5)
    # Without the number the category alone decides; without anything the shares do.
    rows[:, 3] = NO_VALUE
    by_plan = found.components.of_columns(np.array([False, False]), np.array([True]))
    plain = responsibilities(by_plan.log_densities(np.zeros((50, 0)), [level]))[0]
    np.testing.assert_allclose(found.own_shares(rows, party="shop"), plain, atol=1e-5)
    rows[:] = NO_VALUE
    everyone = np.tile(found.shares, (50, 1))
    np.testing.assert_allclose(found.own_shares(rows, party="shop"), everyone)


def test_a_huge_range_and_a_tiny_one():
    columns = (Column(name="x", low=-1e307, high=1e307), Column(name="y", low=0, high=1e-9))
    rng = np.random.default_rng(9)
    rows = np.clip(rng.normal(0, 0.3, (200, 2)), -1, 1)
    synopsis = numbers_synopsis(rows, columns=columns)
    found = synopsis.mixture(3, random_state=0)
    assert np.isfinite(found.deviations).all()
    assert np.isfinite(found.centres).all()
