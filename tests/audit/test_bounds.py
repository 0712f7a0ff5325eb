"""Claims, confidence bounds on their parameters, and the lower bound on composed privacy loss."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from audits.bounds import at_least, at_most, bound_of_event, bound_of_scores
from audits.claims import BudgetClaim, Claim, CurveClaim, GaussianClaim
from audits.loss import compose_rows
from splitmeans.errors import ParameterError
from splitmeans.privacy.events import GaussianEvent, RandomisedResponseEvent, ShiftEvent


def test_clopper_pearson_by_hand() -> None:
    # No success in n trials: (1 - p)^n = failure; n of n: p^n = failure.
    assert at_most(0, 10, failure=0.05) == pytest.approx(1 - 0.05**0.1)
    assert at_least(10, 10, failure=0.05) == pytest.approx(0.05**0.1)
    assert at_least(0, 10, failure=0.05) == 0.0
    assert at_most(10, 10, failure=0.05) == 1.0
    # The textbook interval for 5 of 10 at 95 %.
    assert at_least(5, 10, failure=0.025) == pytest.approx(0.1871, abs=1e-4)
    assert at_most(5, 10, failure=0.025) == pytest.approx(0.8129, abs=1e-4)


def test_gaussian_bound_is_the_formula() -> None:
    bound = bound_of_event(GaussianClaim(mu=0.5), (80, 30), (100, 200), confidence=0.9)
    low = at_least(80, 100, failure=0.05)
    high = at_most(30, 200, failure=0.05)
    assert bound.shown == pytest.approx(stats.norm.ppf(low) - stats.norm.ppf(high))
    assert (bound.allowed, bound.hits, bound.trials) == (0.5, (80, 30), (100, 200))
    assert bound.exceeds


def test_budget_bound_is_the_formula_in_both_directions() -> None:
    claim = BudgetClaim(epsilon=1.0, delta=0.01)
    low, high = at_least(50, 100, failure=0.05), at_most(10, 200, failure=0.05)
    seen = bound_of_event(claim, (50, 10), (100, 200), confidence=0.9)
    assert seen.shown == pytest.approx(math.log((low - 0.01) / high))
    # The user's presence makes the rare event "not seen" rarer still: the opposite tells more.
    low, high = at_least(199, 200, failure=0.05), at_most(50, 100, failure=0.05)
    opposite = bound_of_event(claim, (199, 50), (200, 100), confidence=0.9)
    assert opposite.shown == pytest.approx(math.log((1 - high - 0.01) / (1 - low)))
    assert opposite.shown > math.log(low / high)


def test_an_event_as_rare_as_delta_shows_nothing() -> None:
    claim = BudgetClaim(epsilon=1.0, delta=0.01)
    assert bound_of_event(claim, (3, 0), (1000, 1000), confidence=0.9).shown == 0.0
    nothing = bound_of_event(GaussianClaim(mu=1.0), (0, 10), (10, 10), confidence=0.9)
    assert (nothing.shown, nothing.exceeds) == (0.0, False)


@pytest.mark.parametrize("mu", [0.3, 1.0, 2.0])
def test_the_curve_of_gaussian_noise_allows_its_mu(mu: float) -> None:
    """A normal law's curve, read by its (epsilon, delta), is the one of its mu at every test."""
    claim = CurveClaim(events=(GaussianEvent(noise_multiplier=1 / mu),))
    false = np.array([0.01, 0.1, 0.3, 0.5, 0.8, 0.95])
    np.testing.assert_allclose(claim.allowed(false), mu, rtol=2e-3)
    assert (claim.allowed(false) >= mu - 1e-9).all()  # never below: a sound part must not fail
    best = stats.norm.cdf(mu + stats.norm.ppf(false))
    np.testing.assert_allclose(claim.shown(best, false), mu)


def test_the_curve_of_a_pure_epsilon_has_its_corner() -> None:
    claim = CurveClaim(events=(RandomisedResponseEvent(epsilon=1.0),))
    corner = np.array([1 / (1 + math.e)])
    expected = stats.norm.ppf(math.e / (1 + math.e)) - stats.norm.ppf(corner)
    np.testing.assert_allclose(claim.allowed(corner), expected, rtol=1e-3)
    # An outcome that only the user makes has an infinite loss: nothing is shown by it alone.
    ends = CurveClaim(events=(ShiftEvent(weights=(1, 2, 1)),))
    assert ends.allowed(np.array([0.9]))[0] == math.inf


@settings(max_examples=50, deadline=None)
@given(
    trials=st.integers(1, 500),
    share=st.floats(0, 1),
    other_share=st.floats(0, 1),
    confidence=st.floats(0.5, 0.9999),
    claim=st.sampled_from([GaussianClaim(mu=1.0), BudgetClaim(epsilon=1.0)]),
)
def test_bound_never_exceeds_what_was_seen(
    trials: int, share: float, other_share: float, confidence: float, claim: Claim
) -> None:
    hits, others = round(share * trials), round(other_share * trials)
    bound = bound_of_event(claim, (hits, others), (trials, trials), confidence=confidence)
    if 0 < hits < trials and 0 < others < trials:
        seen = claim.shown(np.array(hits / trials), np.array(others / trials))
        assert bound.shown <= max(0.0, float(seen)) + 1e-9
    stricter = (1 + confidence) / 2
    again = bound_of_event(claim, (hits, others), (trials, trials), confidence=stricter)
    assert again.shown <= bound.shown + 1e-9


@pytest.mark.parametrize(
    ("claim", "found"),
    [
        (BudgetClaim(epsilon=1.0), math.e / (1 + math.e)),
        (GaussianClaim(mu=1.0), float(stats.norm.cdf(0.5))),
    ],
    ids=["epsilon", "mu"],
)
def test_coverage(claim: Claim, found: float) -> None:
    """The bound exceeds the true parameter in at most 10 % of audits at confidence 0.9."""
    rng = np.random.default_rng(5)
    n, repeats = 400, 2000
    failures = 0
    for hits, others in zip(
        rng.binomial(n, found, repeats), rng.binomial(n, 1 - found, repeats), strict=True
    ):
        failures += bound_of_event(claim, (int(hits), int(others)), (n, n), confidence=0.9).exceeds
    # 5 standard errors above the promised share: false failure below 1e-6 even if it were reached.
    assert failures / repeats <= 0.1 + 5 * math.sqrt(0.1 * 0.9 / repeats)


def test_scores_find_a_threshold_on_one_half_and_test_it_on_the_other() -> None:
    rng = np.random.default_rng(1)
    low, high = rng.normal(0, 1, 4000), rng.normal(2, 1, 4000)
    found = bound_of_scores(GaussianClaim(mu=1.0), high, low, confidence=0.999)
    assert 1.7 < found.shown < 2.0
    assert found.trials == (2000, 2000)
    # What only the choosing half shows is not believed.
    planted = np.concatenate([high[:2000], low[2000:]])
    assert bound_of_scores(GaussianClaim(mu=1.0), planted, low, confidence=0.999).shown < 0.2


def test_equal_laws_show_nothing() -> None:
    """Choosing among hundreds of events must not make a parameter of its own."""
    rng = np.random.default_rng(2)
    found = [
        bound_of_scores(
            GaussianClaim(mu=1.0), rng.normal(size=200), rng.normal(size=200), confidence=0.99
        )
        for _ in range(200)
    ]
    # Expected at most 2 of 200; more than 12 has probability below 1e-6.
    assert sum(bound.shown > 0 for bound in found) <= 12


def test_bad_arguments_are_refused() -> None:
    claim = GaussianClaim(mu=1.0)
    with pytest.raises(ParameterError, match="hits must be between 0 and 10, got 11"):
        bound_of_event(claim, (11, 0), (10, 10), confidence=0.9)
    with pytest.raises(ParameterError, match="confidence must be between 0 and 1"):
        bound_of_event(claim, (1, 0), (10, 10), confidence=1.0)
    with pytest.raises(ParameterError, match="trials must be a whole number >= 1"):
        bound_of_event(claim, (0, 0), (0, 10), confidence=0.9)
    with pytest.raises(ParameterError, match="at least 4"):
        bound_of_scores(claim, np.zeros(3), np.zeros(9), confidence=0.9)
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
