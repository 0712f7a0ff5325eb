"""What whole-numbered Gaussian noise costs more than continuous noise: the lemma, by enumeration.

docs/concepts/guarantee.md, "Discrete Gaussian noise", has the proof. Here every line of it is
computed: the pointwise bounds with 60 digits, the curves of whole products of discrete laws by
enumerating them, and plans at budgets that the earlier, cruder charge ate up.
"""

import itertools
import math
from collections import Counter

import mpmath
import numpy as np
import pytest
from scipy import stats

from splitmeans.local.law import mu_scale
from splitmeans.local.laws.guided_lloyd import ROUNDS, GuidedLloydLaw, sensitivity
from splitmeans.plan.costs import total_of
from splitmeans.plan.settle import make_plan
from splitmeans.privacy.events import GaussianEvent, ShiftEvent
from splitmeans.privacy.gaussian import discrete_slack, gaussian_delta
from splitmeans.privacy.pld import flatten
from splitmeans.study import Study
from tests.privacy import contour


def study_of(epsilon, delta, *, membership="decoy", n_parties=2, d=4):
    columns = [{"name": f"c{j}", "low": 0, "high": 100} for j in range(d)]
    return Study.from_mapping(
        {
            "name": "x",
            "n_clusters": 5,
            "budget": {"epsilon": epsilon, "delta": delta},
            "membership": membership,
            "expected_users": 20_000,
            "parties": [{"name": f"p{i}", "columns": columns} for i in range(n_parties)],
        }
    )


# --- the lemma, coordinate by coordinate


@pytest.mark.parametrize("scale", [1, 2, 4, 64, 2**16])
def test_pointwise_bounds_with_sixty_digits(scale):
    with mpmath.workdps(60):
        s = mpmath.mpf(scale)
        # Poisson summation: the sum of the density over whole numbers.
        normaliser = 1 + 2 * sum(mpmath.exp(-2 * (mpmath.pi * s * j) ** 2) for j in range(1, 6))
        assert normaliser - 1 <= 3 * mpmath.exp(-2 * (mpmath.pi * s) ** 2)
        for deviations in (0, 0.3, 1, 1.7, 3, 6, 12, 15):
            k = mpmath.floor(deviations * s)
            rounded = mpmath.ncdf((k + 0.5) / s) - mpmath.ncdf((k - 0.5) / s)
            if k > 0:  # of the smaller tail, for full precision
                rounded = mpmath.ncdf((0.5 - k) / s) - mpmath.ncdf((-k - 0.5) / s)
            discrete = mpmath.npdf(k / s) / s / normaliser
            ratio = mpmath.log(discrete / rounded)
            assert ratio <= -mpmath.log1p(-1 / (24 * s**2))
            y = k**2 / (8 * s**4)
            allowed = mpmath.expm1(y) / 3 + 3 * mpmath.exp(-2 * (mpmath.pi * s) ** 2)
            assert -ratio <= allowed
            reach = float(deviations)
            if reach <= 13:
                assert abs(ratio) <= discrete_slack(scale, mu=1.0, coordinates=1)


def test_the_bound_is_not_far_above_the_largest_ratio():
    """At 12 deviations the ratio is 144 / 24 s^2: nothing large is hidden in the slack."""
    s = 2**16
    assert discrete_slack(s, mu=0.0, coordinates=1) == pytest.approx(145 / 24 / s**2, rel=1e-6)
    assert discrete_slack(s, mu=1.0, coordinates=7) == pytest.approx(7 * 170 / 24 / s**2, rel=1e-6)


def test_total_variation_is_what_the_page_says():
    """0.0202 / s^2; times e^epsilon it would still be too much for epsilon 12, delta 1e-9."""
    for sigma in (8.0, 32.0, 128.0):
        x = np.arange(-math.ceil(10 * sigma), math.ceil(10 * sigma) + 1)
        rounded = stats.norm.cdf((x + 0.5) / sigma) - stats.norm.cdf((x - 0.5) / sigma)
        weights = np.exp(-(x**2) / (2 * sigma**2))
        distance = 0.5 * np.abs(rounded - weights / weights.sum()).sum()
        assert 0.0195 / sigma**2 < distance <= 0.0202 / sigma**2 + 0.0315 / sigma**3
    assert 0.0202 / 2**32 * math.exp(12) > 1e-9


# --- curves of whole products


def discrete_curve(scale, shift, epsilon):
    """delta at epsilon of discrete noise on a vector, by enumeration; `shift` is whole-numbered."""
    reach = math.ceil(13 * scale) + max(abs(v) for v in shift)
    x = np.arange(-reach, reach + 1)
    weights = np.exp(-(x**2) / (2 * scale**2))
    law = weights / weights.sum()
    losses, masses = np.zeros(1), np.ones(1)
    for v in shift:
        # Outcome x + v under noise x: the loss of this coordinate.
        loss = ((x + v) ** 2 - x**2) / (2 * scale**2)
        losses = np.add.outer(losses, loss).ravel()
        masses = np.multiply.outer(masses, law).ravel()
    return float(masses @ np.maximum(0.0, -np.expm1(epsilon - losses)))


CASES = [
    *itertools.product([3, 6, 20], [(1,), (3,), (7,)]),
    *itertools.product([3, 8], [(1, 1), (2, 3), (5, 0), (4, 7)]),
    *itertools.product([2, 3], [(1, 1, 1), (1, 2, 3)]),
]


@pytest.mark.parametrize(("scale", "shift"), CASES)
def test_enumerated_curves_stay_below_the_charged_one(scale, shift):
    mu = math.hypot(*shift) / scale
    slack = discrete_slack(scale, mu=mu, coordinates=len(shift))
    for epsilon in (0.05, 0.2, 0.5, 1.0, 2.0, 4.0):
        exact = discrete_curve(scale, shift, epsilon)
        charged = math.exp(slack) * gaussian_delta(1 / mu, epsilon - slack)
        assert exact <= charged + 1e-13


def test_without_slack_the_charge_would_be_too_small():
    """The broken twin: the continuous curve is not a bound for discrete noise."""
    over = [
        (scale, shift, epsilon)
        for scale, shift in CASES
        for epsilon in (0.2, 0.5, 1.0, 2.0)
        if discrete_curve(scale, shift, epsilon)
        > gaussian_delta(scale / math.hypot(*shift), epsilon) + 1e-13
    ]
    assert len(over) > 10


def test_rounds_of_all_radii_are_covered():
    """Radii are chosen on the way, from released values: the event bounds each of them."""
    for bounds, mu in itertools.product([(2**20,) * 4, (64,) * 2, (2**30,)], [0.05, 1.0, 8.0]):
        lloyd = GuidedLloydLaw(n_clusters=3, bounds=bounds, mu=mu)
        radii = {lloyd.smallest_radius * 2**j + j for j in range(12)} | {lloyd.smallest_radius}
        events = lloyd.event.parts[-len(ROUNDS) :]
        for round_mu, event in zip(lloyd.round_mus, events, strict=True):
            for radius in radii:
                scale = mu_scale(sensitivity(radius), mu=round_mu)
                realised = sensitivity(radius) / scale
                assert realised <= 1 / event.noise_multiplier
                own = discrete_slack(scale, mu=realised, coordinates=2 * len(bounds) + 1)
                assert own <= event.slack


# --- plans


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(1, 1e-5), (4, 1e-6), (8, 1e-9), (12, 1e-9), (12, 1e-10)]
)
@pytest.mark.parametrize(("n_parties", "d"), [(2, 4), (4, 10)])
def test_plans_use_their_budget(epsilon, delta, n_parties, d):
    """With the cruder charge (8, 1e-9) gave a plan of 2.97, (12, 1e-9) one of 0.33."""
    plan = make_plan(study_of(epsilon, delta, n_parties=n_parties, d=d))
    spent = total_of(plan).epsilon
    assert 0.99 * epsilon <= spent <= epsilon


@pytest.mark.parametrize(
    ("epsilon", "delta", "n_parties"),
    [
        *((e, d, 2) for e in (0.1, 0.5, 1, 2, 4, 8, 12) for d in (1e-5, 1e-9)),
        (1, 1e-6, 3),
        (8, 1e-9, 4),
    ],
)
def test_claimed_epsilon_against_a_contour_integral(epsilon, delta, n_parties):
    """Sixteen studies; the third accountant has no grid and composes by multiplying moments."""
    plan = make_plan(study_of(epsilon, delta, n_parties=n_parties))
    claimed = total_of(plan).epsilon
    directions = independent_losses(plan)
    found = [
        max(contour.delta(losses, at) for losses in directions)
        for at in (claimed, claimed - 3e-4 * max(1, epsilon))
    ]
    assert found[0] <= delta < found[1]


def independent_losses(plan):
    """The losses of a decoy plan in both directions, from its events' parameters alone."""
    parts = list(flatten(plan.events))
    square = sum(part.noise_multiplier**-2 for part in parts if isinstance(part, GaussianEvent))
    tables = Counter(part.weights for part in parts if isinstance(part, ShiftEvent))
    gaussian = contour.normal(math.sqrt(square))
    directions = ([gaussian], [gaussian])
    for weights, copies in tables.items():
        law = np.array(weights, dtype=float) / sum(weights)
        here, moved = np.append(law, 0.0), np.append(0.0, law)
        for losses, pair in zip(directions, ((moved, here), (here, moved)), strict=True):
            losses.append(contour.table(*pair, copies=copies))
    return directions
