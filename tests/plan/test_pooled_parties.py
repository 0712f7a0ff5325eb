"""Parties who share what they know, against a twin that enumerates all of them by definition.

The twin knows of a plan which parties share a table, the noise of every table and what each party
releases about its own rows. It puts one user at every choice of parties, lets the user change at
some of those that are not observers, and counts cells that differ.
"""

import functools
import itertools
import math
from collections import Counter

import numpy as np
import pytest

from splitmeans.plan.costs import towards
from splitmeans.plan.facts import PrivacyFacts
from splitmeans.plan.settle import make_plan
from splitmeans.plan.views import (
    coalition_cost,
    coalition_events,
    fellow_party_cost,
    fellow_party_events,
    replaced,
)
from splitmeans.privacy.events import CountGaussianEvent, GaussianEvent, RareEvent, Relation
from splitmeans.privacy.pld import epsilon_for, flatten
from splitmeans.study import Study
from tests.privacy import contour

DELTA = 1e-6
OPEN = "open"
NARROW = (2, 3, 1, 2, 4, 1, 2, 3)


def study_of(n_parties, *, collusion=None, kind=None, d=NARROW, budget=None, **changes):
    column = {
        "number": {"low": 0, "high": 100},
        "learned": {"bounds": "private"},
        OPEN: {"categories": "open"},
    }
    parties = [
        {
            "name": f"p{i}",
            "columns": [
                {
                    "name": f"c{j}",
                    **column[kind if kind and (i % 2 or kind == "open") else "number"],
                }
                for j in range(d[i])
            ],
        }
        for i in range(n_parties)
    ]
    mapping = {
        "name": "x",
        "n_clusters": 3,
        "budget": {"epsilon": 1.0, "delta": DELTA, **(budget or {})},
        "parties": parties,
        "ids": {"type": "as-is"},
        "expected_users": 20_000,
    }
    if collusion is not None:
        mapping["decoy"] = {"collusion_epsilon": collusion}
    mapping |= changes
    return Study.from_mapping({name: own for name, own in mapping.items() if own is not None})


# Local noise that is large beside the server's makes more observers learn more.
SHIELDED = {"collusion": 0.05, "budget": {"coalition_epsilon": 0.4}}
BOUNDED = {"collusion": 0.05, "budget": {"coalition_epsilon": 0.4, "party_epsilon": 0.5}}
STUDIES = {
    **{f"{n} parties": (n, {}) for n in range(2, 7)},
    "shielded, 3 parties": (3, SHIELDED),
    "shielded, 5 parties": (5, SHIELDED),
    "shielded, 6 parties": (6, SHIELDED),
    "bounded, 5 parties": (5, BOUNDED),
    "bounded towards parties": (6, {"budget": {"party_epsilon": 0.5}}),
    "learned bounds": (5, {"kind": "learned", **SHIELDED}),
    "sizes released": (5, {"expected_users": None, **SHIELDED}),
    "one wide party": (5, {"d": (9, 1, 1, 1, 1), **SHIELDED}),
    "columns in tables": (3, {"detail": {}, "expected_users": 500_000}),
    "series": (5, {"renewal": {"runs": 2}, **SHIELDED, "collusion": 0.02}),
    "counts alone": (5, {"n_clusters": 1, "d": (0,) * 5}),
}


@functools.cache
def plan_of(name):
    n_parties, changes = STUDIES[name]
    return make_plan(study_of(n_parties, **changes))


# ---- the twin ----


def subsets(parties, *, least=0):
    parties = tuple(parties)
    return itertools.chain.from_iterable(
        itertools.combinations(parties, size) for size in range(least, len(parties) + 1)
    )


def moved_cells(group, before, after):
    """Return how many counts of a group's table change; `before` and `after` are users' labels."""
    change = Counter()
    for labels, sign in ((before, 1), (after, -1)):
        cell = tuple(labels.get(party) for party in group)
        if any(label is not None for label in cell):
            change[cell] += sign
    return sum(abs(number) for number in change.values())


def releases_of_party(plan, party, relation):
    """Return the events of what a party releases about its own rows."""
    name = plan.study.party_names[party]
    found = [] if plan.study.counts_only else [plan.local_events[party]]
    if relation is Relation.REPLACE:
        found = [replaced(event) for event in found]
    for stage in plan.stages:
        if name in stage.parties:
            law = stage.law_of(name)
            own = law.event if relation is Relation.ADD_OR_REMOVE else law.replaced_event
            found += [] if own is None else [own]
    return found


def twin_views(plan, relation):
    """Yield, for all observers and changes: parties whose releases change, and cells by scale."""
    everyone = range(len(plan.study.parties))
    for observers in subsets(everyone, least=1):
        rest = [party for party in everyone if party not in observers]
        for known, changing in itertools.product(subsets(observers), subsets(rest, least=1)):
            before = dict.fromkeys(known, "a")
            after = before | dict.fromkeys(changing, "b")
            if relation is Relation.REPLACE:
                before = before | dict.fromkeys(changing, "a")
            cells = Counter()
            for group in plan.groups:
                is_presence = plan.presence is not None and len(group) == len(everyone)
                labels = [
                    dict.fromkeys(own, "there") if is_presence else own for own in (before, after)
                ]
                scale = (plan.presence if is_presence else plan.membership).server_sigma
                cells[scale] += moved_cells(group, *labels)
            for table in () if plan.columns is None else plan.columns.tables:
                cells[plan.columns.law.server_sigma] += moved_cells(table.parties, before, after)
            yield changing, tuple(sorted(cells.items()))


def worst_views(plan, relation):
    """Leave out views in which less changes than in another one."""
    found = set(twin_views(plan, relation))
    by_parties = {}
    for changing, cells in found:
        by_parties.setdefault(changing, set()).add(cells)
    for changing, options in by_parties.items():
        for cells in options:
            if not any(
                other != cells and all(dict(other)[scale] >= moved for scale, moved in cells)
                for other in options
            ):
                yield changing, cells


@functools.cache
def twin_epsilon(name, relation):
    """Return the largest epsilon of all views."""
    plan = plan_of(name)
    runs, worst = plan.study.n_runs, 0.0
    for changing, cells in worst_views(plan, relation):
        events = [event for party in changing for event in releases_of_party(plan, party, relation)]
        for scale, moved in cells:
            events += [CountGaussianEvent(scale=scale)] * moved
        worst = max(worst, epsilon_for(events * runs, DELTA, interval=1e-3))
    return worst


# ---- figures that are stated ----


@pytest.mark.parametrize("name", STUDIES)
def test_no_parties_together_learn_more_than_is_stated(name):
    plan = plan_of(name)
    for relation in Relation:
        stated = fellow_party_cost(plan, relation, interval=1e-3).epsilon
        twin = twin_epsilon(name, relation)
        assert twin <= stated * (1 + 1e-9)
        assert stated <= twin * 1.001, "the figure is larger than any parties need"


@pytest.mark.parametrize("name", STUDIES)
def test_the_statement_has_this_figure(name):
    plan = plan_of(name)
    report = PrivacyFacts.of(plan)
    bounds = [bound.cost for bound in report.observer("party").bounds]
    for cost in bounds:
        assert cost is not None
    assert towards(plan).party_epsilon == max(cost.epsilon for cost in bounds)
    limit = plan.study.budget.party_epsilon
    if limit is not None:
        for relation in Relation:
            assert twin_epsilon(name, relation) <= limit * (1 + 1e-3)


def test_two_of_five_parties_by_another_accountant():
    """Three local releases and 15 counts of pairs, where one party sees four and 14."""
    plan = plan_of("shielded, 5 parties")
    x = {}
    for law in (plan.membership, plan.presence):
        at = np.arange(-math.ceil(12 * law.server_sigma), math.ceil(12 * law.server_sigma) + 1)
        weights = np.exp(-((at / law.server_sigma) ** 2) / 2)
        x[law] = weights / weights.sum()

    def delta_of(pool, n_counts, epsilon):
        gaussians = [
            part
            for party, event in enumerate(plan.local_events)
            if party not in pool
            for part in flatten((event,))
        ]
        assert all(isinstance(part, GaussianEvent) for part in gaussians)
        mu = math.sqrt(sum(part.noise_multiplier**-2 for part in gaussians))
        tables = [
            contour.table(np.append(0.0, x[law]), np.append(x[law], 0.0), copies=copies)
            for law, copies in ((plan.membership, n_counts), (plan.presence, 2))
        ]
        return contour.delta([contour.normal(mu), *tables], epsilon)

    stated = fellow_party_cost(plan, Relation.ADD_OR_REMOVE).epsilon
    singles = [delta_of({party}, 14, stated) for party in range(5)]
    pairs = [delta_of(set(pool), 15, stated) for pool in itertools.combinations(range(5), 2)]
    assert max(pairs) <= DELTA
    assert max(pairs) > 1.05 * max(singles)


def test_three_of_nine_parties_learn_more_than_two():
    """Parties are alike, so a view is told by how many share what they know."""
    n_parties = 9
    shielded = {"collusion": 0.01, "budget": {"coalition_epsilon": 0.4}}
    plan = make_plan(study_of(n_parties, d=(1,) * n_parties, **shielded))
    pairs, everyone = (
        CountGaussianEvent(scale=law.server_sigma) for law in (plan.membership, plan.presence)
    )
    costs = {}
    for size in (1, 2, 3, 4):
        rest = n_parties - size
        counts = [pairs] * (2 * size * rest + math.comb(rest, 2)) + [everyone] * 2
        costs[size] = epsilon_for([*plan.local_events[:rest], *counts], DELTA, interval=1e-3)
    stated = fellow_party_cost(plan, Relation.ADD_OR_REMOVE, interval=1e-3).epsilon
    assert max(costs.values()) <= stated * (1 + 1e-9)
    assert stated <= max(costs.values()) * 1.001
    assert costs[3] > 1.005 * max(costs[1], costs[2])


def test_rare_outcomes_are_those_of_the_parties_that_have_most():
    """Two of five parties see what three release, and those may be the costliest of any kind."""
    study = study_of(5, kind=OPEN, d=(1, 3, 1, 2, 1), expected_users=900_000)
    plan = make_plan(study)
    rare = [
        sum(
            part.probability
            for part in flatten(releases_of_party(plan, party, Relation.ADD_OR_REMOVE))
            if isinstance(part, RareEvent)
        )
        for party in range(5)
    ]
    views = fellow_party_events(plan, Relation.ADD_OR_REMOVE)
    pooled = views[5:]
    assert pooled
    for view in pooled:
        seen = sum(part.probability for part in flatten(view) if isinstance(part, RareEvent))
        assert seen >= sum(sorted(rare)[-3:]) * (1 - 1e-9)
    assert len({own for own in rare if own}) > 1


# ---- the server with several parties ----


@pytest.mark.parametrize("name", ["shielded, 3 parties", "shielded, 6 parties", "learned bounds"])
def test_the_server_with_several_parties_is_covered_by_the_server_with_one(name):
    """By definition: the randomised label and the own releases of every party that is not in it."""
    plan = plan_of(name)
    everyone = range(len(plan.study.parties))
    stated = coalition_cost(plan, interval=1e-3).epsilon
    found = []
    for pool in subsets(everyone, least=1):
        events = []
        for party in everyone:
            if party not in pool:
                events += releases_of_party(plan, party, Relation.REPLACE)
                events.append(plan.collusion_laws[party].event)
        found.append(epsilon_for(events, DELTA, interval=1e-3) if events else 0.0)
    assert max(found) == pytest.approx(stated, rel=1e-9)
    assert max(found) <= 0.4 * (1 + 1e-3)
    assert len(coalition_events(plan)) == len(everyone)
