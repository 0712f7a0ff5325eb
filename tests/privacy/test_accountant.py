"""Costs of single events, their sums, and refusals."""

import math

import dp_accounting
import pytest

from splitmeans.errors import PrivacyError
from splitmeans.privacy.accountant import FREE, Cost, basic_composition, cost_of, total_cost
from splitmeans.privacy.events import (
    CellSketchEvent,
    ComposedEvent,
    CountGaussianEvent,
    GaussianEvent,
    LaplaceEvent,
    NonPrivateEvent,
    PublishedSketchEvent,
    PureEvent,
    RandomisedResponseEvent,
    ShiftEvent,
)

SKETCH = PublishedSketchEvent(
    repetitions=4096,
    gamma=1.0,
    phantoms=3401,
    floor=12,
    claimed_epsilon=0.245,
    claimed_delta=2.5e-5,
)


@pytest.mark.parametrize(
    ("event", "cost"),
    [
        (LaplaceEvent(noise_multiplier=4), Cost(epsilon=0.25, delta=0)),
        (LaplaceEvent(noise_multiplier=50, single_count=True), Cost(epsilon=0.02, delta=0)),
        (PureEvent(epsilon=0.3), Cost(epsilon=0.3, delta=0)),
        (RandomisedResponseEvent(epsilon=0.7), Cost(epsilon=0.7, delta=0)),
        (SKETCH, Cost(epsilon=0.245, delta=2.5e-5)),
        (NonPrivateEvent(reason="test"), Cost(epsilon=math.inf, delta=0)),
        (ComposedEvent(parts=()), FREE),
        (
            ComposedEvent(parts=(PureEvent(epsilon=0.5), ComposedEvent(parts=(SKETCH,)))),
            Cost(epsilon=0.745, delta=2.5e-5),
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_one_event_as_the_paper_counts_it(event, cost):
    assert cost_of(event) == cost


def test_a_gaussian_is_read_at_its_own_delta():
    sigma = dp_accounting.get_sigma_gaussian(0.8, 1e-5)
    cost = cost_of(GaussianEvent(noise_multiplier=sigma, delta=1e-5))
    assert cost.delta == 1e-5
    # The discretised loss is rounded up, never down.
    assert 0.8 - 1e-6 <= cost.epsilon <= 0.8 + 2e-4


@pytest.mark.parametrize(
    "event",
    [
        GaussianEvent(noise_multiplier=2.0),  # no delta of its own
        CountGaussianEvent(scale=2.0),
        ShiftEvent(weights=(1, 2, 1)),
        CellSketchEvent(repetitions=16, gamma=1.0, phantoms=10, floor=2),
    ],
    ids=lambda event: type(event).__name__,
)
def test_events_without_a_cost_of_their_own_cannot_be_added_up(event):
    with pytest.raises(PrivacyError, match=f"cost of {type(event).__name__} is unknown"):
        cost_of(event)
    with pytest.raises(PrivacyError, match=f"cost of {type(event).__name__} is unknown"):
        basic_composition((PureEvent(epsilon=1), ComposedEvent(parts=(event,))))


def test_an_unknown_event_is_refused_by_both():
    class NewEvent:
        pass

    with pytest.raises(PrivacyError, match="NewEvent is unknown, so it is refused"):
        total_cost((NewEvent(),), delta=1e-5, accounting="paper")
    with pytest.raises(PrivacyError, match="NewEvent has no proved privacy loss"):
        total_cost((NewEvent(),), delta=1e-5, accounting="tight")


def test_the_published_sketch_has_no_tight_cost():
    with pytest.raises(PrivacyError, match="PublishedSketchEvent has no proved privacy loss"):
        total_cost((SKETCH,), delta=1e-5, accounting="tight")


def test_costs_add_up():
    assert Cost(epsilon=1, delta=0.1) + Cost(epsilon=2, delta=0.2) == Cost(
        epsilon=3, delta=pytest.approx(0.3)
    )
    assert basic_composition(()) == FREE
    events = (PureEvent(epsilon=0.25), SKETCH, SKETCH)
    total = total_cost(events, delta=0.5, accounting="paper")
    assert total.epsilon == pytest.approx(0.74)
    assert total.delta == pytest.approx(5e-5)  # the events' own, not the one given


def test_tight_reads_epsilon_at_the_given_delta():
    events = (GaussianEvent(noise_multiplier=10.0),) * 4
    total = total_cost(events, delta=1e-5, accounting="tight")
    assert total.delta == 1e-5
    # Four Gaussians of 10 are one of 5.
    expected = dp_accounting.get_epsilon_gaussian(5.0, 1e-5)
    assert expected - 1e-6 <= total.epsilon <= expected + 2e-4
    fewer = total_cost(events, delta=1e-8, accounting="tight")
    assert fewer.epsilon > total.epsilon


def test_tight_is_never_worse_than_adding_up_pure_costs():
    events = tuple(PureEvent(epsilon=epsilon) for epsilon in (0.1, 0.2, 0.4, 0.05))
    tight = total_cost(events, delta=1e-6, accounting="tight")
    assert tight.epsilon <= basic_composition(events).epsilon + 4e-4
    many = (PureEvent(epsilon=0.05),) * 200
    assert total_cost(many, delta=1e-6, accounting="tight").epsilon < 5  # 10 when added up


@pytest.mark.parametrize("accounting", ["tight", "paper"])
def test_one_release_without_protection_spoils_all(accounting):
    events = (PureEvent(epsilon=0.1), ComposedEvent(parts=(NonPrivateEvent(reason="plain"),)))
    total = total_cost(events, delta=1e-5, accounting=accounting)
    assert total == Cost(epsilon=math.inf, delta=0.0)


def test_nothing_released_costs_nothing():
    assert total_cost((), delta=1e-5, accounting="paper") == FREE
    assert total_cost((), delta=1e-5, accounting="tight").epsilon == 0


@pytest.mark.parametrize("accounting", ["tight", "paper"])
def test_another_release_never_costs_less(accounting):
    first = (PureEvent(epsilon=0.1), LaplaceEvent(noise_multiplier=5.0, single_count=True))
    more = (*first, RandomisedResponseEvent(epsilon=0.01))
    costs = [total_cost(events, delta=1e-5, accounting=accounting) for events in (first, more)]
    assert costs[0].epsilon < costs[1].epsilon
