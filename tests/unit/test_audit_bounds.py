"""Confidence bounds on epsilon, and the lower bound on composed privacy loss."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from splitmeans.audit.bounds import (
    at_least,
    at_most,
    epsilon_of_event,
    epsilon_of_scores,
)
from splitmeans.audit.loss import compose_rows
from splitmeans.errors import ParameterError


def test_clopper_pearson_by_hand() -> None:
    # No success in n trials: (1 - p)^n = failure; n of n: p^n = failure.
    assert at_most(0, 10, failure=0.05) == pytest.approx(1 - 0.05**0.1)
    assert at_least(10, 10, failure=0.05) == pytest.approx(0.05**0.1)
    assert at_least(0, 10, failure=0.05) == 0.0
    assert at_most(10, 10, failure=0.05) == 1.0
    # The textbook interval for 5 of 10 at 95 %.
    assert at_least(5, 10, failure=0.025) == pytest.approx(0.1871, abs=1e-4)
    assert at_most(5, 10, failure=0.025) == pytest.approx(0.8129, abs=1e-4)


def test_event_bound_is_the_formula() -> None:
    bound = epsilon_of_event((50, 10), (100, 200), delta=0.01, confidence=0.9)
    low = at_least(50, 100, failure=0.05)
    high = at_most(10, 200, failure=0.05)
    assert bound.epsilon == pytest.approx(math.log((low - 0.01) / high))
    assert (bound.hits, bound.trials) == ((50, 10), (100, 200))


def test_an_event_as_rare_as_delta_shows_nothing() -> None:
    assert epsilon_of_event((3, 0), (1000, 1000), delta=0.01, confidence=0.9).epsilon == 0.0


@settings(max_examples=50, deadline=None)
@given(
    trials=st.integers(1, 500),
    share=st.floats(0, 1),
    other_share=st.floats(0, 1),
    confidence=st.floats(0.5, 0.9999),
)
def test_bound_never_exceeds_what_was_seen(
    trials: int, share: float, other_share: float, confidence: float
) -> None:
    hits, others = round(share * trials), round(other_share * trials)
    bound = epsilon_of_event((hits, others), (trials, trials), delta=0.0, confidence=confidence)
    if hits and others:
        assert bound.epsilon <= max(0.0, math.log(hits / others)) + 1e-9
    stricter = (1 + confidence) / 2
    again = epsilon_of_event((hits, others), (trials, trials), delta=0.0, confidence=stricter)
    assert again.epsilon <= bound.epsilon + 1e-9


def test_coverage_for_randomised_response() -> None:
    """The bound exceeds the true epsilon in at most 10 % of audits at confidence 0.9."""
    rng = np.random.default_rng(5)
    p, n, repeats = math.e / (1 + math.e), 400, 2000
    failures = 0
    for hits, others in zip(
        rng.binomial(n, p, repeats), rng.binomial(n, 1 - p, repeats), strict=True
    ):
        bound = epsilon_of_event((int(hits), int(others)), (n, n), delta=0.0, confidence=0.9)
        failures += bound.epsilon > 1.0
    # 5 standard errors above the promised share: false failure below 1e-6 even if it were reached.
    assert failures / repeats <= 0.1 + 5 * math.sqrt(0.1 * 0.9 / repeats)


def test_scores_find_side_and_direction() -> None:
    rng = np.random.default_rng(1)
    low, high = rng.normal(0, 1, 4000), rng.normal(3, 1, 4000)
    upwards = epsilon_of_scores(high, low, delta=0.0, confidence=0.999)
    downwards = epsilon_of_scores(-high, -low, delta=0.0, confidence=0.999)
    assert min(upwards.epsilon, downwards.epsilon) > 2
    assert upwards.trials == (2000, 2000)
    # A point mass that only the absent user shows is found in the other direction.
    alone = np.where(rng.random(4000) < 0.2, 7.0, 0.0)
    found = epsilon_of_scores(np.zeros(4000), alone, delta=0.0, confidence=0.999)
    assert found.epsilon > 3
    assert "without against with" in found.event


def test_equal_laws_show_nothing() -> None:
    """Choosing among hundreds of events must not make an epsilon of its own."""
    rng = np.random.default_rng(2)
    found = [
        epsilon_of_scores(rng.normal(size=200), rng.normal(size=200), delta=0.0, confidence=0.99)
        for _ in range(200)
    ]
    # Expected at most 2 of 200; more than 12 has probability below 1e-6.
    assert sum(bound.epsilon > 0 for bound in found) <= 12


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(ParameterError, match="hits must be between 0 and 10, got 11"):
        epsilon_of_event((11, 0), (10, 10), delta=0.0, confidence=0.9)
    with pytest.raises(ParameterError, match="confidence must be between 0 and 1"):
        epsilon_of_event((1, 0), (10, 10), delta=0.0, confidence=1.0)
    with pytest.raises(ParameterError, match="trials must be a whole number >= 1"):
        epsilon_of_event((0, 0), (0, 10), delta=0.0, confidence=0.9)
    with pytest.raises(ParameterError, match="at least 4"):
        epsilon_of_scores(np.zeros(3), np.zeros(9), delta=0.0, confidence=0.9)
    with pytest.raises(ParameterError, match="points must be a whole number >= 1600"):
        compose_rows(np.array([0.5, 0.5]), np.array([0.4, 0.6]), rows=100, points=1000)


@pytest.mark.parametrize("rows", [1, 20, 300])
def test_composed_loss_is_below_the_exact_one_and_close(rows: int) -> None:
    """Two outcomes per row: the total loss is a binomial count times log(p/q), known exactly."""
    p = 0.5 + 0.5 / math.sqrt(rows) * 0.6
    one, other = np.array([p, 1 - p]), np.array([1 - p, p])
    count = np.arange(rows + 1)
    there, away = stats.binom.pmf(count, rows, p), stats.binom.pmf(count, rows, 1 - p)
    bound = compose_rows(one, other, rows=rows, points=2**18)
    for epsilon in (0.0, 0.3, 1.0, 2.0):
        exact = float(np.maximum(there - math.exp(epsilon) * away, 0).sum())
        assert bound.delta(epsilon) <= exact
        assert bound.delta(epsilon) >= exact - 2e-3
    if rows > 1:
        delta = 0.01
        epsilon = bound.epsilon(delta)
        assert np.maximum(there - math.exp(epsilon) * away, 0).sum() >= delta


def test_an_outcome_that_only_one_side_has_counts_in_full() -> None:
    bound = compose_rows(np.array([0.99, 0.01]), np.array([1.0, 0.0]), rows=10, points=2**16)
    # Loss is infinite if the outcome ever occurs: 1 - 0.99^10; the bound caps it at its range.
    exact = 1 - 0.99**10
    assert 0.9 * exact < bound.delta(0.0) <= exact
    assert bound.epsilon(0.5) == 0.0
    assert bound.delta(1e6) == 0.0
