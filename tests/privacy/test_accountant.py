"""What events cost together, and refusals."""

import dp_accounting
import pytest

from splitmeans.errors import PrivacyError
from splitmeans.privacy.accountant import Cost, cost_text, total_cost
from splitmeans.privacy.events import ComposedEvent, GaussianEvent, RandomisedResponseEvent


def test_an_unknown_event_is_refused():
    class NewEvent:
        pass

    with pytest.raises(PrivacyError, match="NewEvent has no proved privacy loss"):
        total_cost((NewEvent(),), delta=1e-5)
    with pytest.raises(PrivacyError, match="NewEvent has no proved privacy loss"):
        total_cost((ComposedEvent(parts=(NewEvent(),)),), delta=1e-5)


def test_epsilon_is_read_at_the_given_delta():
    events = (GaussianEvent(noise_multiplier=10.0),) * 4
    total = total_cost(events, delta=1e-5)
    assert total.delta == 1e-5
    # Four Gaussians of 10 are one of 5.
    expected = dp_accounting.get_epsilon_gaussian(5.0, 1e-5)
    assert expected - 1e-6 <= total.epsilon <= expected + 2e-4
    assert total_cost(events, delta=1e-8).epsilon > total.epsilon


def test_it_is_never_worse_than_adding_up_pure_costs():
    costs = (0.1, 0.2, 0.4, 0.05)
    events = tuple(RandomisedResponseEvent(epsilon=epsilon) for epsilon in costs)
    assert total_cost(events, delta=1e-6).epsilon <= sum(costs) + 4e-4
    many = (RandomisedResponseEvent(epsilon=0.05),) * 200
    assert total_cost(many, delta=1e-6).epsilon < 5  # 10 when added up


def test_nothing_released_costs_nothing():
    assert total_cost((), delta=1e-5).epsilon == 0


def test_another_release_never_costs_less():
    first = (GaussianEvent(noise_multiplier=9.0), RandomisedResponseEvent(epsilon=0.2))
    more = (*first, RandomisedResponseEvent(epsilon=0.01))
    assert total_cost(first, delta=1e-5).epsilon < total_cost(more, delta=1e-5).epsilon


def test_costs_as_people_read_them():
    cost = Cost(epsilon=0.98765, delta=1e-6)
    assert cost_text(cost) == "epsilon 0.9877, delta 1e-06"
    for nothing in (None, Cost(epsilon=float("inf"), delta=1e-6)):
        assert cost_text(nothing) == "no guarantee"
