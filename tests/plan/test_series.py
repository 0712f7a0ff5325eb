"""The cost of a series, against calculations of its own."""

import dataclasses
import math

import pytest

from splitmeans.errors import ParameterError
from splitmeans.local.laws.guided_lloyd import GuidedLloydLaw
from splitmeans.membership.decoy.law import DecoyLaw
from splitmeans.plan.costs import attended_runs, towards
from splitmeans.plan.facts import PrivacyFacts, certificate_of
from splitmeans.plan.plan import Plan
from splitmeans.plan.series import SeriesRun, earlier_names, run_number
from splitmeans.plan.settle import make_plan
from splitmeans.plan.views import fellow_party_events
from splitmeans.privacy.events import Relation
from splitmeans.privacy.gaussian import gaussian_multiplier
from splitmeans.privacy.pld import epsilon_for
from splitmeans.study import Budget, DecoyOptions, Renewal, Study
from tests.scene import make_study

BUDGET = Budget(epsilon=1.0, delta=1e-6)


def eight(**changes: object) -> Study:
    facts = {"budget": BUDGET, "expected_users": 20_000, "renewal": Renewal(runs=8)}
    return make_study(**facts | changes)


def precision_of(plan: Plan) -> float:
    """mu^2 of a run, as if decoys were Gaussian: what all of it is worth."""
    local, decoys = plan.local, plan.membership
    assert isinstance(decoys, DecoyLaw)
    assert all(isinstance(law, GuidedLloydLaw) for law in local)
    return sum(law.mu**2 for law in local) + len(plan.groups) / float(decoys.variance)


def test_all_runs_together_just_fit_the_budget() -> None:
    plan = make_plan(eight())
    whole = epsilon_for(plan.events * 8, BUDGET.delta)
    assert 0.99 < whole <= 1.0
    assert PrivacyFacts.of(plan).epsilon == pytest.approx(whole)
    assert certificate_of(plan)["total"]["epsilon"] == pytest.approx(whole)
    assert certificate_of(plan)["series"]["runs"] == 8


def test_a_run_has_an_eighth_of_the_precision_of_a_study_of_one_run() -> None:
    """All releases are Gaussian or nearly so: their squared precisions add up over runs."""
    one = make_plan(dataclasses.replace(eight(), renewal=None))
    assert precision_of(make_plan(eight())) == pytest.approx(precision_of(one) / 8, rel=0.03)


def test_adding_up_epsilons_would_waste_seven_eighths() -> None:
    """Eight studies of an eighth of epsilon and delta each, which the ledger would add up."""
    added = dataclasses.replace(eight(), renewal=None, budget=Budget(epsilon=1 / 8, delta=1e-6 / 8))
    waste = precision_of(make_plan(eight())) / precision_of(make_plan(added))
    by_formula = gaussian_multiplier(1 / 8, 1e-6 / 8) ** 2 / gaussian_multiplier(1.0, 1e-6) ** 2 / 8
    assert waste == pytest.approx(by_formula, rel=0.05)
    assert 6 < waste < 10


def test_what_a_user_has_who_is_there_in_some_runs() -> None:
    plan = make_plan(eight())
    rows = attended_runs(plan)
    assert [row.runs for row in rows] == list(range(1, 9))
    costs = [row.towards_server.epsilon for row in rows]
    assert costs == sorted(costs)
    # Of nearly Gaussian releases: r runs of mu each have the curve of mu sqrt(r).
    for row in rows[:7]:
        mu = math.sqrt(row.runs / 8) / gaussian_multiplier(1.0, 1e-6)
        assert 1 / gaussian_multiplier(row.towards_server.epsilon, 1e-6) == pytest.approx(
            mu, rel=0.01
        )
    assert costs[0] == pytest.approx(0.33, abs=0.01)
    assert "in 4 of 8 runs: epsilon 0.6" in PrivacyFacts.of(plan).statement()
    # A fellow party sees each of them.
    once = fellow_party_events(plan, Relation.REPLACE, runs=1)
    for row in rows:
        assert row.towards_party is not None
        seen = max(epsilon_for(view * row.runs, 1e-6) for view in once)
        assert row.towards_party.epsilon == pytest.approx(seen, rel=1e-3)
    many = attended_runs(make_plan(eight(renewal=Renewal(runs=40))))
    assert [row.runs for row in many] == [*range(1, 9), 16, 32, 40]


def test_figures_towards_participants_are_of_all_runs() -> None:
    budget = Budget(epsilon=1.0, delta=1e-6, party_epsilon=1.0, coalition_epsilon=6.0)
    bound = eight(budget=budget, decoy=DecoyOptions(collusion_epsilon=0.3))
    costs = towards(make_plan(bound))
    assert 0.95 < costs.party_epsilon <= 1.0
    assert costs.coalition_epsilon <= 6.0
    free = make_plan(eight())
    of_one = attended_runs(free)[0].towards_party
    assert of_one is not None
    assert towards(free).party_epsilon > 2.5 * of_one.epsilon


def test_no_noise_depends_on_which_run_it_is() -> None:
    first, last = (
        make_plan(eight(), series_run=SeriesRun(number=number, previous=previous))
        for number, previous in ((1, ""), (8, "ab" * 32))
    )
    assert first.events == last.events
    assert first.local == last.local
    assert first.membership == last.membership
    prints = {
        make_plan(eight(), series_run=SeriesRun(number=number, previous=previous)).fingerprint
        for number, previous in ((1, ""), (2, ""), (2, "ab" * 32), (2, "cd" * 32))
    }
    assert len(prints) == 4


def test_names_of_runs() -> None:
    study = eight()
    assert [run_number(study, name) for name in ("1", "8", "3-2", "3-9")] == [1, 8, 3, 3]
    assert run_number(make_study(), "anything") is None
    for name in ("0", "9", "03", "3-1", "3-10", "x", "3-a", "-1", ""):
        with pytest.raises(ParameterError, match="from 1 to 8"):
            run_number(study, name)
    assert earlier_names("1") == ()
    assert earlier_names("2") == ("1", *(f"1-{attempt}" for attempt in range(2, 10)))
    assert earlier_names("2-3")[9:] == ("2", "2-2")
