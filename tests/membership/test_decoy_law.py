import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given, settings
from hypothesis import strategies as st

from splitmeans.errors import ParameterError
from splitmeans.membership.decoy.law import (
    MAX_TRUNCATION,
    WORDS,
    DecoyLaw,
    DirectLabels,
    collusion_law,
    decoy_law,
    sample_threshold,
)
from splitmeans.privacy.events import ShiftEvent

ONE = 2**400  # fixed point of the twin below


def law_of(sigma: float, truncation: int) -> DecoyLaw:
    return DecoyLaw(sigma=sigma, truncation=truncation, server_sigma=1.0)


def exp_of_minus(x: Fraction) -> Fraction:
    """e^-x by its series in 400-bit fixed point, after halving x until it is small."""
    halvings = max(0, math.ceil(x).bit_length())
    small = int(x * ONE) >> halvings
    total, term = 0, ONE
    for index in range(1, 120):
        total += term if index % 2 else -term
        term = term * small // (ONE * index)
    for _ in range(halvings):
        total = total * total // ONE
    return Fraction(total, ONE)


def exact_law(sigma: float, truncation: int) -> list[Fraction]:
    densities = [
        exp_of_minus(Fraction(j * j) / (2 * Fraction(sigma) ** 2))
        for j in range(-truncation, truncation + 1)
    ]
    total = sum(densities)
    return [density / total for density in densities]


def delta_at(epsilon: float, upper: np.ndarray, lower: np.ndarray) -> float:
    return float(np.maximum(upper - math.exp(epsilon) * lower, 0).sum())


def neighbours(law: DecoyLaw) -> tuple[np.ndarray, np.ndarray]:
    """Laws of H + D without and with one user, on {0..2t+1}."""
    probabilities = np.array(law.weights, dtype=np.float64) / WORDS
    return np.append(probabilities, 0.0), np.append(0.0, probabilities)


def epsilon_at(delta: float, upper: np.ndarray, lower: np.ndarray) -> float:
    low, high = 0.0, 50.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if delta_at(middle, upper, lower) <= delta else (middle, high)
    return high


# ---- the table ----


@given(st.floats(0.05, 100.0), st.integers(1, 200))
@settings(max_examples=50, deadline=None)
def test_table_is_an_exact_symmetric_law(sigma, truncation):
    weights = law_of(sigma, truncation).weights
    assert len(weights) == 2 * truncation + 1
    assert sum(weights) == 2**64
    assert weights == weights[::-1]
    assert min(weights) >= 1


@pytest.mark.parametrize(("sigma", "truncation"), [(0.3, 4), (1.0, 1), (2.5, 12), (7.6, 36)])
def test_table_is_the_exact_law_rounded(sigma, truncation):
    weights = law_of(sigma, truncation).weights
    for j, (weight, exact) in enumerate(zip(weights, exact_law(sigma, truncation), strict=True)):
        off = abs(weight - exact * WORDS)
        if j == truncation:
            assert off <= 2 * truncation
        elif weight == 1:
            assert exact * WORDS < Fraction(3, 2)
        else:
            assert off <= Fraction(1, 2) + Fraction(1, 10**20)


def test_hand_case():
    # Weights 1, e^(1/2), 1 over their sum: with sigma = 1 and t = 1.
    side = 1 / (2 + math.exp(0.5))
    law = law_of(1.0, 1)
    assert [weight / WORDS for weight in law.weights] == pytest.approx([side, 1 - 2 * side, side])
    assert law.mean == 1
    assert float(law.variance) == pytest.approx(2 * side)
    assert law.end_probability == Fraction(law.weights[0], 2**64)
    assert law.event == ShiftEvent(weights=law.weights)


def test_table_does_not_depend_on_the_machine():
    # Stored value: a change of it changes what parties of different versions draw from one key.
    law = DecoyLaw(sigma=7.6, truncation=36, server_sigma=7.6)
    assert law.table_hash == "ef1d620a481d990b753659b67097d31d2277408b7c3aa2f55046aebfe557520b"
    assert law.table_hash != law_of(7.6, 37).table_hash


def test_moments_come_from_the_table():
    law = law_of(3.0, 14)
    mean = sum(Fraction(w, WORDS) * value for value, w in enumerate(law.weights))
    assert mean == law.mean == 14
    assert float(law.variance) == pytest.approx(9.0, rel=1e-3)
    assert law.variance < 9


def test_look_up_gives_each_count_its_weight():
    law = law_of(2.0, 6)
    table = law.cdf_table
    assert table.dtype == np.uint64
    assert table.shape == (12,)
    assert not table.flags.writeable
    edges = [0, *(int(entry) for entry in table), 2**64]
    assert tuple(np.diff(np.array(edges, dtype=object))) == law.weights
    for count in range(13):
        for word in (edges[count], edges[count + 1] - 1):
            assert np.searchsorted(table, np.uint64(word), side="right") == count


# ---- privacy of the realised table ----


def test_both_directions_cost_the_same():
    without, with_user = neighbours(law_of(7.6, 36))
    for epsilon in (0.01, 0.1, 0.5):
        assert delta_at(epsilon, with_user, without) == pytest.approx(
            delta_at(epsilon, without, with_user), rel=1e-9
        )


def test_no_epsilon_buys_less_delta_than_the_end_of_the_table():
    law = law_of(7.6, 36)
    without, with_user = neighbours(law)
    assert delta_at(50.0, without, with_user) == pytest.approx(float(law.end_probability))


@pytest.mark.parametrize(("sigma", "truncation"), [(7.6, 36), (2.0, 12)])
def test_realised_epsilon_is_that_of_the_discrete_gaussian(sigma, truncation):
    without, with_user = neighbours(law_of(sigma, truncation))
    reference = pld.from_discrete_gaussian_mechanism(sigma, truncation_bound=truncation)
    for delta in (1e-4, 5e-5):
        realised = epsilon_at(delta, with_user, without)
        stated = reference.get_epsilon_for_delta(delta)
        assert realised <= stated + 1e-9  # the reference rounds up, in steps of 1e-4
        assert realised == pytest.approx(stated, abs=2e-4)


def test_two_groups_by_direct_convolution():
    without, with_user = neighbours(law_of(2.0, 12))
    both = np.outer(with_user, with_user).ravel(), np.outer(without, without).ravel()
    one = pld.from_discrete_gaussian_mechanism(2.0, truncation_bound=12)
    for upper, lower in (both, both[::-1]):
        realised = epsilon_at(1e-5, upper, lower)
        assert realised == pytest.approx(one.self_compose(2).get_epsilon_for_delta(1e-5), abs=5e-4)


# ---- calibration ----


@given(st.floats(0.02, 4.0), st.floats(1e-12, 1e-2))
@settings(max_examples=30, deadline=None)
def test_truncation_is_the_smallest_allowed(mu, delta_share):
    law = decoy_law(mu, delta_share=delta_share)
    assert Fraction(law.sigma) * Fraction(mu) >= 1
    assert law.sigma == pytest.approx(1 / mu, rel=1e-15)
    assert law.server_sigma == law.sigma
    assert law.end_probability <= Fraction(delta_share)
    if law.truncation > 1:
        assert law_of(law.sigma, law.truncation - 1).end_probability > Fraction(delta_share)


def test_the_servers_noise_can_be_set_apart():
    assert decoy_law(0.5, delta_share=1e-6, server_sigma=3.5).server_sigma == 3.5


def test_more_budget_never_means_more_decoys():
    laws = [decoy_law(mu, delta_share=1e-7) for mu in np.linspace(0.05, 2, 40)]
    assert all(
        a.truncation >= b.truncation and a.variance >= b.variance
        for a, b in itertools.pairwise(laws)
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mu": 0.0, "delta_share": 1e-6}, "mu must be > 0"),
        ({"mu": 1e-309, "delta_share": 1e-6}, "mu must have a finite 1 / mu"),
        ({"mu": 1e-5, "delta_share": 1e-6}, "mu is too small"),
        ({"mu": 1.0, "delta_share": 0.0}, "delta_share must be between 0 and 1"),
        ({"mu": 1.0, "delta_share": 1e-20}, "delta_share must be >= 2\\^-64"),
    ],
)
def test_bad_calibration_is_refused(arguments, message):
    with pytest.raises(ParameterError, match=message):
        decoy_law(arguments["mu"], delta_share=arguments["delta_share"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sigma": 0.0}, "sigma must be > 0"),
        ({"server_sigma": 0.0}, "server_sigma must be > 0"),
        ({"truncation": 0}, "truncation must be a whole number >= 1"),
        ({"truncation": MAX_TRUNCATION + 1}, "truncation must be <= 65535"),
    ],
)
def test_bad_laws_are_refused(changes, message):
    with pytest.raises(ParameterError, match=message):
        DecoyLaw(**{"sigma": 1.0, "truncation": 3, "server_sigma": 1.0, **changes})


# ---- sampling and collusion ----


def test_sample_thresholds():
    assert sample_threshold(1.0) == 2**64
    assert sample_threshold(0.5) == 2**63
    for rate, message in [
        (0.0, "sample_rate must be > 0"),
        (1.5, "sample_rate must be <= 1"),
        (1e-30, "sample_rate must be >= 2\\^-64"),
    ]:
        with pytest.raises(ParameterError, match=message):
            sample_threshold(rate)


def test_collusion_response_is_on_the_label_itself():
    law = collusion_law(0.1, n_local_clusters=40)
    assert isinstance(law, DirectLabels)
    assert float(law.true_support / law.false_support) == pytest.approx(math.exp(0.1))
    assert law.true_support / law.false_support <= Fraction(math.exp(0.1)) + Fraction(1, 10**12)
    assert law.true_support + 39 * law.false_support == 1
    assert collusion_law(None, n_local_clusters=40) is None
    assert collusion_law(1.0, n_local_clusters=1) is None
