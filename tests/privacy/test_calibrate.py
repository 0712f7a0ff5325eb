"""One number that scales all noise: it fits the budget, wastes little, and moves the right way."""

import dp_accounting
import pytest

from splitmeans.errors import PrivacyError
from splitmeans.privacy.calibrate import calibrate
from splitmeans.privacy.events import (
    CellSketchEvent,
    CountGaussianEvent,
    Event,
    GaussianEvent,
    RandomisedResponseEvent,
    ShiftEvent,
)
from splitmeans.privacy.pld import delta_for, epsilon_for
from splitmeans.study import Budget

GRID = [(epsilon, delta) for epsilon in (0.1, 1.0, 10.0) for delta in (1e-8, 1e-5, 1e-2)]


def gaussian(precision: float) -> tuple[Event, ...]:
    return (GaussianEvent(noise_multiplier=1 / precision),)


def several(precision: float) -> tuple[Event, ...]:
    """A run with three kinds of releases, one of them in whole numbers."""
    return (
        GaussianEvent(noise_multiplier=2 / precision, slack=1e-12),
        RandomisedResponseEvent(epsilon=precision / 4),
        CellSketchEvent(repetitions=64, gamma=0.5, phantoms=max(1, round(40 / precision)), floor=4),
    )


@pytest.mark.parametrize(("epsilon", "delta"), GRID)
def test_a_gaussian_gets_the_noise_of_the_closed_form(epsilon, delta):
    sigma = 1 / calibrate(gaussian, Budget(epsilon=epsilon, delta=delta))
    exact = dp_accounting.get_sigma_gaussian(epsilon, delta)
    # Never less noise than the exact curve asks for, and less than one per cent more.
    assert exact * (1 - 1e-6) <= sigma <= 1.01 * exact


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-6), (2.0, 1e-4)])
def test_the_result_fits_and_is_close_to_the_budget(epsilon, delta):
    precision = calibrate(several, Budget(epsilon=epsilon, delta=delta))
    assert delta_for(several(precision), epsilon) <= delta
    assert 0.95 * epsilon <= epsilon_for(several(precision), delta) <= epsilon


def test_what_is_spent_gives_the_precision_back():
    for precision in (0.05, 0.2, 1.0):
        epsilon = epsilon_for(gaussian(precision), 1e-5)
        again = calibrate(gaussian, Budget(epsilon=epsilon, delta=1e-5))
        assert again == pytest.approx(precision, rel=0.01)


def test_more_budget_never_means_more_noise():
    precisions = [
        [calibrate(several, Budget(epsilon=epsilon, delta=delta)) for epsilon in (0.3, 0.6, 1.2)]
        for delta in (1e-7, 1e-4)
    ]
    for row in precisions:
        assert row == sorted(row)
    for low, high in zip(*precisions, strict=True):
        assert low <= high


def test_a_pure_release_can_spend_all_of_epsilon():
    budget = Budget(epsilon=2.0, delta=1e-9)
    precision = calibrate(lambda at: (RandomisedResponseEvent(epsilon=at),), budget)
    assert precision == pytest.approx(2.0, rel=0.01)


def test_noise_that_costs_nothing_stops_somewhere():
    assert calibrate(lambda at: (), Budget(epsilon=1.0, delta=1e-5)) >= 2**20


@pytest.mark.parametrize(
    "event",
    [
        RandomisedResponseEvent(epsilon=3.0),
        GaussianEvent(noise_multiplier=1.0, slack=1.01),  # no noise takes the slack away
        ShiftEvent(weights=(1, 1)),  # delta 1/2, whatever the rest does
    ],
    ids=["a fixed cost", "slack", "short table"],
)
def test_a_budget_that_no_noise_fits_is_refused(event):
    with pytest.raises(PrivacyError, match=r"no amount of noise fits epsilon=1, delta=1e-05"):
        calibrate(lambda at: (event, *gaussian(at)), Budget(epsilon=1, delta=1e-5))


def test_a_release_without_a_proof_is_refused():
    class NewEvent:
        pass

    with pytest.raises(PrivacyError, match="NewEvent has no proved privacy loss"):
        calibrate(lambda at: (NewEvent(),), Budget(epsilon=1, delta=1e-5))


def test_a_search_that_does_not_settle_is_refused():
    calls = []

    def fickle(precision: float) -> tuple[Event, ...]:
        calls.append(precision)
        # Fits while the range is found, and never again.
        return gaussian(1e-3) if len(calls) < 3 else (RandomisedResponseEvent(epsilon=3.0),)

    with pytest.raises(PrivacyError, match="calibration to epsilon=1, delta=1e-05 did not settle"):
        calibrate(fickle, Budget(epsilon=1, delta=1e-5))


@pytest.mark.parametrize("epsilon", [0.01, 0.02, 0.05])
def test_a_small_epsilon_is_used_up_as_well(epsilon):
    """Steps of 0.002 in privacy loss are too wide to find it: they left a tenth unused."""

    def counts(precision: float) -> tuple[Event, ...]:
        return (CountGaussianEvent(scale=2 / precision),) * 6 + gaussian(precision)

    precision = calibrate(counts, Budget(epsilon=epsilon, delta=1e-9))
    assert 0.98 * epsilon <= epsilon_for(counts(precision), 1e-9) <= epsilon
