"""Bounds that a study sets towards parties: every stated figure keeps its bound."""

import dataclasses
import itertools
import math

import numpy as np
import pytest

from splitmeans.errors import PrivacyError, StudyError
from splitmeans.plan.costs import total_of, unused_budget
from splitmeans.plan.facts import PrivacyFacts
from splitmeans.plan.settle import make_plan, plan_at
from splitmeans.plan.views import coalition_cost, fellow_party_cost
from splitmeans.privacy.events import GaussianEvent, Relation
from splitmeans.privacy.gaussian import gaussian_multiplier
from splitmeans.privacy.pld import flatten
from splitmeans.study import Study
from tests.privacy import contour

DELTA = 1e-6


def study_of(epsilon=1.0, *, n_parties=2, d=(2, 3, 1, 2), collusion=None, **changes):
    budget = {"epsilon": epsilon, "delta": changes.pop("delta", DELTA)}
    for name in ("party_epsilon", "coalition_epsilon"):
        if changes.get(name) is not None:
            budget[name] = changes[name]
        changes.pop(name, None)
    parties = [
        {
            "name": f"p{i}",
            "columns": [{"name": f"c{j}", "low": 0, "high": 100} for j in range(d[i])],
        }
        for i in range(n_parties)
    ]
    mapping = {"name": "x", "n_clusters": 5, "budget": budget, "parties": parties}
    mapping["ids"] = {"type": "as-is"}
    if collusion is not None:
        mapping["decoy"] = {"collusion_epsilon": collusion}
    return Study.from_mapping(mapping | {"expected_users": 20_000} | changes)


def figures(study):
    """Every figure of the statement, by who looks."""
    report = PrivacyFacts.for_study(study)
    return {
        observer.name: max(bound.cost.epsilon for bound in observer.bounds if bound.cost)
        for observer in report.observers
        if any(bound.cost for bound in observer.bounds)
    }


GRID = [
    *itertools.product((0.3, 1.0, 4.0), (0.1, 1.0, 3.0), (2,)),
    (1.0, 0.5, 3),
    (1.0, 0.5, 4),
]


@pytest.mark.parametrize(("epsilon", "party", "n_parties"), GRID)
def test_every_figure_keeps_its_bound(epsilon, party, n_parties):
    study = study_of(epsilon, n_parties=n_parties, party_epsilon=party)
    found = figures(study)
    assert found["server"] <= epsilon
    assert found["party"] <= party
    # It is used up, unless the bound towards the server is what limits the noise.
    without = figures(study_of(epsilon, n_parties=n_parties))
    assert found["party"] >= min(0.97 * party, 0.999 * without["party"])


@pytest.mark.parametrize(
    ("epsilon", "coalition", "collusion", "n_parties", "party"),
    [(1, 2, 1, 2, None), (1, 1, 0.5, 2, 0.6), (4, 3, 1, 3, None), (1, 6, 0.5, 2, None)],
)
def test_figures_towards_a_coalition_keep_theirs(epsilon, coalition, collusion, n_parties, party):
    study = study_of(
        epsilon,
        n_parties=n_parties,
        collusion=collusion,
        coalition_epsilon=coalition,
        party_epsilon=party,
    )
    found = figures(study)
    assert found["server"] <= epsilon
    assert found["coalition"] <= coalition
    if party is not None:
        assert found["party"] <= party
    without = figures(study_of(epsilon, n_parties=n_parties, collusion=collusion))
    assert found["party"] <= without["party"]


@pytest.mark.parametrize(("epsilon", "party", "n_parties"), [(1, 1, 2), (4, 0.5, 2)])
def test_the_figure_towards_a_party_by_another_accountant(epsilon, party, n_parties):
    """By hand from the plan: local releases of the others at twice their mu, two counts under E."""
    plan = make_plan(study_of(epsilon, n_parties=n_parties, party_epsilon=party))
    scale = plan.membership.server_sigma
    x = np.arange(-math.ceil(12 * scale), math.ceil(12 * scale) + 1)
    law = np.exp(-((x / scale) ** 2) / 2)
    law /= law.sum()
    counts = contour.table(np.append(0.0, law), np.append(law, 0.0), copies=2 * len(plan.groups))
    worst = 0.0
    for observer in range(n_parties):
        square = sum(
            (2 / part.noise_multiplier) ** 2
            for other, mechanism in enumerate(plan.local)
            if other != observer
            for part in flatten((mechanism.event,))
            if isinstance(part, GaussianEvent)
        )
        losses = [contour.normal(math.sqrt(square)), counts]
        assert contour.delta(losses, party) <= DELTA
        worst = max(worst, contour.delta(losses, 0.98 * party))
    assert worst > DELTA
    stated = fellow_party_cost(plan, Relation.REPLACE).epsilon
    assert contour.delta(losses, stated) <= DELTA


def test_without_more_noise_of_the_server_the_bound_would_not_hold():
    """The broken twin: local noise scaled as planned, but E like the decoys."""
    plan = make_plan(study_of(party_epsilon=0.5))
    law = dataclasses.replace(plan.membership, server_sigma=plan.membership.sigma)
    broken = dataclasses.replace(plan, membership=law)
    assert fellow_party_cost(broken, Relation.REPLACE).epsilon > 0.6


def test_a_smaller_bound_never_means_less_noise():
    plans = [make_plan(study_of(party_epsilon=party)) for party in (3, 1.2, 1, 0.5, 0.2, 0.05)]
    assert [plan.local[0].mu for plan in plans] == sorted(
        (plan.local[0].mu for plan in plans), reverse=True
    )
    scales = [plan.membership.server_sigma for plan in plans]
    assert scales == sorted(scales)
    # Decoys get what local releases leave, and are never noisier than without the bound.
    free = make_plan(study_of()).membership.sigma
    assert all(plan.membership.sigma <= free for plan in plans)


def test_a_bound_that_holds_anyway_changes_nothing():
    free, bounded = make_plan(study_of()), make_plan(study_of(party_epsilon=5))
    assert bounded.local == free.local
    assert bounded.membership == free.membership


def test_a_study_without_bounds_keeps_its_hash():
    study = study_of()
    assert "party_epsilon" not in study.to_toml()
    assert Study.from_toml(study.to_toml()).hash == study.hash
    bounded = study_of(party_epsilon=1)
    assert bounded.hash != study.hash
    assert Study.from_toml(bounded.to_toml()) == bounded


# --- what is refused


def test_a_bound_that_labels_alone_exceed_is_refused_with_what_can_be_reached():
    with pytest.raises(PrivacyError, match=r"labels of the other parties alone cost 1 \("):
        make_plan(study_of(collusion=1.0, coalition_epsilon=0.9))
    reachable = study_of(collusion=1.0, coalition_epsilon=1.05)
    assert coalition_cost(make_plan(reachable)).epsilon <= 1.05


@pytest.mark.parametrize("party", [0.001, 50.0])
def test_a_bound_outside_exact_accounting_is_refused(party):
    with pytest.raises(PrivacyError, match=r"party_epsilon must be between 0\.01 and 12"):
        make_plan(study_of(party_epsilon=party))


def test_bounds_need_the_method_that_has_them():
    with pytest.raises(StudyError, match="party_epsilon needs membership='decoy'"):
        study_of(membership="sketch", party_epsilon=1)
    with pytest.raises(StudyError, match=r"coalition_epsilon needs .*collusion_epsilon"):
        study_of(membership="sketch", coalition_epsilon=1)
    with pytest.raises(StudyError, match=r"coalition_epsilon needs .*collusion_epsilon"):
        study_of(coalition_epsilon=1)


@pytest.mark.parametrize("value", [0, -1, math.inf, "1"])
def test_bounds_are_positive_numbers(value):
    with pytest.raises(StudyError, match="party_epsilon must be"):
        study_of(party_epsilon=value)


# --- what is said


def test_the_figure_towards_parties_comes_first_where_it_is_the_larger_one():
    lines = PrivacyFacts.for_study(study_of()).statement().splitlines()
    assert lines[2].startswith("  to a party epsilon 1.4")
    assert "values elsewhere replaced" in lines[2]
    assert lines[3].startswith("  total ")
    bounded = PrivacyFacts.for_study(study_of(party_epsilon=0.8)).statement()
    assert "to a party" not in bounded
    assert "0.8 towards a party)" in bounded


def test_unused_budget_is_said_in_one_place():
    assert unused_budget(make_plan(study_of())) is None
    limited = study_of(party_epsilon=0.2)
    unused = unused_budget(make_plan(limited))
    assert "towards parties are what limits" in unused
    assert unused in PrivacyFacts.for_study(limited).statement()
    sketch = make_plan(study_of(8, delta=1e-9, membership="sketch"))
    assert total_of(sketch).epsilon < 0.95 * 8
    assert "rounding of the method's tables" in unused_budget(sketch)


def test_forecasts_without_a_search_are_close():
    for changes in ({"party_epsilon": 0.5}, {"party_epsilon": 1.0, "n_parties": 3}):
        study = study_of(**changes)
        exact = make_plan(study)
        rough = plan_at(study, precision=1 / gaussian_multiplier(1.0, DELTA))
        assert rough.local[0].mu == pytest.approx(exact.local[0].mu, rel=0.05)
        for name in ("sigma", "server_sigma"):
            found = getattr(rough.membership, name)
            assert found == pytest.approx(getattr(exact.membership, name), rel=0.05)
