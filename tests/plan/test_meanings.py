"""What figures mean in words: true for every observer, against closed forms and brute force."""

import math
import re
from pathlib import Path

import numpy as np
import pytest

from splitmeans.evidence.sections import onlookers
from splitmeans.plan.facts import PrivacyFacts
from splitmeans.plan.observers import NO_BOUND, best_guess, likelier
from splitmeans.plan.settle import make_plan
from splitmeans.privacy.accountant import Cost
from splitmeans.privacy.events import (
    CountGaussianEvent,
    GaussianEvent,
    RandomisedResponseEvent,
    ShiftEvent,
)
from splitmeans.privacy.gaussian import gaussian_multiplier
from splitmeans.privacy.pld import epsilon_for
from tests.plan.test_pooled_parties import study_of

FINE = 1e-4
OFFICER = Path(__file__).parents[2] / "docs/guides/privacy-officer.md"


def stated(events, delta=1e-6):
    """The share of right guesses that is stated of events, with the cost that is stated of them."""
    cost = Cost(epsilon=epsilon_for(events, delta), delta=delta)
    return best_guess(cost, (tuple(events),), interval=FINE)


def of_laws(upper, lower):
    """How often the best guess between two laws on a finite set is right: the larger one wins."""
    return np.maximum(upper, lower).sum() / 2


# ---- the best guess ----


@pytest.mark.parametrize("mu", [0.01, 0.2, 1.0, 3.0])
def test_a_gaussian_release_by_its_closed_form(mu):
    """The guess is which mean is nearer: right with probability Phi(mu / 2)."""
    exact = math.erfc(-mu / 2 / math.sqrt(2)) / 2
    found = stated([GaussianEvent(noise_multiplier=1 / mu)])
    assert exact <= found <= exact + 1e-4


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_randomised_response_by_its_closed_form(epsilon):
    exact = 1 / (1 + math.exp(-epsilon))
    found = stated([RandomisedResponseEvent(epsilon=epsilon)])
    assert exact - 1e-12 <= found <= exact + 1e-4


def test_compositions_by_all_outcomes():
    weights = (1, 4, 6, 4, 1)
    law = np.array(weights) / sum(weights)
    moved, here = np.append(0.0, law), np.append(law, 0.0)
    report = 1 / (1 + math.exp(-0.5))
    upper = np.multiply.outer(np.multiply.outer(moved, moved), [report, 1 - report]).ravel()
    lower = np.multiply.outer(np.multiply.outer(here, here), [1 - report, report]).ravel()
    events = [ShiftEvent(weights=weights)] * 2 + [RandomisedResponseEvent(epsilon=0.5)]
    cost = Cost(epsilon=50.0, delta=1e-6)
    found = best_guess(cost, (tuple(events),), interval=FINE)
    assert of_laws(upper, lower) - 1e-12 <= found <= of_laws(upper, lower) + 1e-3


def test_without_exact_losses_the_bound_follows_from_epsilon_and_delta():
    """Tight for the worst law of an (epsilon, delta), which shows the case with delta."""
    epsilon, delta = 1.0, 0.01
    likely = (1 - delta) / (1 + math.exp(-epsilon))
    upper = np.array([delta, likely, 1 - delta - likely, 0.0])
    lower = upper[::-1]
    found = best_guess(Cost(epsilon=epsilon, delta=delta), (), interval=FINE)
    assert found == pytest.approx(of_laws(upper, lower), rel=1e-12)
    assert best_guess(Cost(epsilon=800.0, delta=delta), (), interval=FINE) == 1.0


def test_the_worst_of_several_views_counts():
    views = [(CountGaussianEvent(scale=scale),) for scale in (9.0, 2.0, 5.0)]
    cost = Cost(epsilon=50.0, delta=1e-6)
    together = best_guess(cost, tuple(views), interval=FINE)
    assert together == max(best_guess(cost, (view,), interval=FINE) for view in views)


def test_a_guess_passes_the_old_limit_more_often_than_delta():
    """Why no posterior is promised: P(loss > epsilon) of a Gaussian release is many times delta."""

    def exceeded(epsilon, delta=1e-5):
        mu = 1 / gaussian_multiplier(epsilon, delta)
        return math.erfc((epsilon - mu**2 / 2) / mu / math.sqrt(2)) / 2 / delta

    said = re.search(r"about (\d+) times delta at epsilon 1 and delta 1e-5", OFFICER.read_text())
    assert exceeded(1.0) == pytest.approx(float(said[1]), rel=0.02)
    assert exceeded(0.1) > exceeded(0.5) > exceeded(1.0)


# ---- rounding, and who is named ----


def test_figures_are_rounded_up():
    for epsilon in np.geomspace(1e-3, 20, 200):
        assert float(likelier(epsilon).replace(",", "")) >= math.exp(epsilon)
    assert likelier(1.0) == "2.72"
    assert likelier(30.00001) == "e^30.001"


STUDIES = {
    "equal": study_of(3),
    "partial": study_of(3),
    "collusion": study_of(3, collusion=0.5),
    "sketch": study_of(2, membership="sketch"),
    "counts alone": study_of(3, n_clusters=1, d=(0,) * 3),
}


@pytest.mark.parametrize("name", STUDIES)
def test_every_observer_has_its_own_figure_or_none(name):
    facts = PrivacyFacts.for_study(STUDIES[name])
    bounds = {observer.name: observer.bounds for observer in facts.observers}
    assert bounds["server"] == bounds["reader"]
    assert bounds["server"][0].factor == likelier(facts.epsilon)
    for bound in (bound for own in bounds.values() for bound in own):
        if bound.cost is None:
            assert bound.factor == bound.guess == NO_BOUND
            assert bound.why in bound.text
            continue
        assert float(bound.factor.replace(",", "")) >= math.exp(bound.cost.epsilon)
        assert 50 < float(bound.guess.removesuffix(" %")) <= 100
    assert all((one.cost is None) == (name == "sketch") for one in bounds["party"])
    assert all((one.cost is None) == (name != "collusion") for one in bounds["coalition"])
    text = facts.statement()
    assert "breaks the rules: all releases" in text
    assert "a party if the server breaks the rules" in text
    assert not any(word in text for word in ("anybody", "whatever", "nobody"))


@pytest.mark.parametrize("name", STUDIES)
def test_documents_have_the_same_figures(name):
    facts = PrivacyFacts.for_study(STUDIES[name])
    expected = [
        (bound.case, bound.factor, bound.guess)
        for observer in facts.observers
        for bound in observer.bounds
    ]
    assert [(row[2], *row[4:]) for row in onlookers(facts).rows] == expected


@pytest.mark.parametrize("name", ["equal", "partial"])
def test_guesses_are_no_better_than_those_of_any_epsilon_of_the_run(name):
    """The run's own curve: at every epsilon, delta of its events bounds guesses at even odds."""
    report = PrivacyFacts.for_study(STUDIES[name])
    percent = float(report.observer("server").bounds[0].guess.removesuffix(" %"))
    events = make_plan(STUDIES[name]).lifetime_events
    for delta in (1e-6, 1e-3, 0.02, 0.05):
        epsilon = epsilon_for(events, delta)
        limit = best_guess(Cost(epsilon=epsilon, delta=delta), (), interval=FINE)
        assert percent <= 100 * limit + 0.1
