"""Our accountant against Google's dp-accounting: two codes, one figure.

Both discretise in the same way (connect the dots), so they agree up to rounding and up to what
each cuts off at the ends, far closer than either is to the exact cost.
"""

import math

import dp_accounting
import numpy as np
import pytest
from dp_accounting.pld import common, pld_pmf
from dp_accounting.pld import privacy_loss_distribution as library

from splitmeans.privacy.events import (
    CellSketchEvent,
    CountGaussianEvent,
    GaussianEvent,
    RandomisedResponseEvent,
    ShiftEvent,
)
from splitmeans.privacy.gaussian import gaussian_delta, gaussian_multiplier
from splitmeans.privacy.pld import delta_for, epsilon_for, gap_of
from splitmeans.privacy.register_law import register_pmfs

INTERVAL = 1e-3
WEIGHTS = tuple(round(2**40 * math.exp(-(x**2) / 90)) for x in range(-30, 31))


def from_laws(one, other):
    """The library's distribution of two laws on a finite set, by its own rounding."""

    def direction(upper, lower):
        loss = np.log(upper[(upper > 0) & (lower > 0)] / lower[(upper > 0) & (lower > 0)])
        steps = np.arange(math.floor(loss.min() / INTERVAL), math.ceil(loss.max() / INTERVAL) + 1)
        deltas = [np.maximum(upper - math.exp(step * INTERVAL) * lower, 0).sum() for step in steps]
        return pld_pmf.create_pmf_pessimistic_connect_dots(INTERVAL, steps, np.array(deltas))

    return library.PrivacyLossDistribution(direction(other, one), direction(one, other))


def pure(epsilon):
    parameters = common.DifferentialPrivacyParameters(epsilon, 0.0)
    return library.from_privacy_parameters(parameters, value_discretization_interval=INTERVAL)


def of_library(event):
    kwargs = {"value_discretization_interval": INTERVAL, "use_connect_dots": True}
    match event:
        case GaussianEvent(noise_multiplier=multiplier):
            return library.from_gaussian_mechanism(multiplier, **kwargs)
        case CountGaussianEvent(scale=scale):
            return library.from_discrete_gaussian_mechanism(scale, **kwargs)
        case RandomisedResponseEvent(epsilon=epsilon):
            return pure(epsilon)
        case ShiftEvent(weights=weights):
            law = np.array(weights) / sum(weights)
            return from_laws(np.append(law, 0.0), np.append(0.0, law))
    raise AssertionError(event)


RUNS = {
    "gaussian": [(GaussianEvent(noise_multiplier=3.3), 1)],
    "strong gaussian": [(GaussianEvent(noise_multiplier=0.4), 1)],
    "counts": [(CountGaussianEvent(scale=5.3), 3)],
    "many counts": [(CountGaussianEvent(scale=40.0), 120)],
    "randomised response": [(RandomisedResponseEvent(epsilon=0.2), 12)],
    "decoys": [(ShiftEvent(weights=WEIGHTS), 2)],
    "a run": [
        (GaussianEvent(noise_multiplier=5.3), 1),
        (ShiftEvent(weights=WEIGHTS), 3),
        (CountGaussianEvent(scale=9.0), 2),
        (RandomisedResponseEvent(epsilon=0.2), 2),
    ],
}


@pytest.mark.parametrize("name", RUNS)
def test_same_figures_as_the_library(name):
    composed, events = None, []
    for event, count in RUNS[name]:
        part = of_library(event).self_compose(count)
        composed = part if composed is None else composed.compose(part)
        events += [event] * count
    own = gap_of(events).delta(1.0)
    for epsilon in (0.05, 0.3, 1.0):
        expected = composed.get_delta_for_epsilon(epsilon)
        found = delta_for(events, epsilon, interval=INTERVAL)
        # The library cuts ends more generously when it composes many: up to 1e-9 of delta.
        assert found == pytest.approx(expected, rel=1e-6, abs=own + 2e-9)
    for delta in (1e-2, 1e-5):
        expected = composed.get_epsilon_for_delta(delta)
        assert epsilon_for(events, delta, interval=INTERVAL) == pytest.approx(expected, rel=1e-4)


def test_sketch_rows_against_the_library():
    event = CellSketchEvent(repetitions=64, gamma=1.0, phantoms=20, floor=6)
    _, without, with_user = register_pmfs(event)
    composed = from_laws(without, with_user).self_compose(64)
    for epsilon in (0.1, 0.4):
        # The library's rows are on the run's grid, ours on a finer one: it is never lower.
        found = delta_for([event], epsilon, interval=INTERVAL)
        expected = composed.get_delta_for_epsilon(epsilon)
        assert 0.98 * expected <= found <= expected * (1 + 1e-6)


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 8.0, 12.0])
@pytest.mark.parametrize("delta", [1e-10, 5e-5, 0.3])
def test_gaussian_noise_against_the_library(epsilon, delta):
    multiplier = gaussian_multiplier(epsilon, delta)
    expected = dp_accounting.get_sigma_gaussian(epsilon, delta)
    assert multiplier == pytest.approx(expected, rel=1e-11)
    assert gaussian_delta(multiplier, epsilon) <= delta
    assert gaussian_delta(multiplier * (1 - 1e-9), epsilon) > delta


def test_a_law_with_less_noise_is_noticed():
    """The broken twin: 1 % less noise than accounted for lies outside every tolerance above."""
    honest = of_library(CountGaussianEvent(scale=5.3)).get_delta_for_epsilon(0.3)
    broken = delta_for([CountGaussianEvent(scale=5.3 * 0.99)], 0.3, interval=INTERVAL)
    assert broken > honest * (1 + 1e-3)
