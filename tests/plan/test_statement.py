"""The privacy statement of every method: what it says in words and in JSON."""

import dataclasses
import functools
import json
import math
import re
from collections import Counter
from typing import Any

import numpy as np
import pytest

from splitmeans.errors import PrivacyError
from splitmeans.membership.decoy.law import DecoyLaw
from splitmeans.plan.costs import cost_spelled_apart, total_of
from splitmeans.plan.facts import PrivacyFacts
from splitmeans.plan.plan import Plan
from splitmeans.plan.settle import make_plan, plan_for
from splitmeans.plan.views import _events, fellow_party_cost, replaced
from splitmeans.privacy.accountant import Cost
from splitmeans.privacy.events import (
    CellSketchEvent,
    ComposedEvent,
    CountGaussianEvent,
    Event,
    GaussianEvent,
    RandomisedResponseEvent,
    RareEvent,
    Relation,
)
from splitmeans.privacy.pld import epsilon_for
from splitmeans.study import Budget, Column, DecoyOptions, PartySpec, SketchOptions, Study
from splitmeans.study.id_rules import AS_IS, IdRules
from splitmeans.study.renewal import Renewal
from tests.scene import keyed_study
from tests.table.id_lists import canonical_ids

NAMES = ["server", "reader", "party", "coalition"]


@functools.cache
def plan_of(membership: str, n_parties: int = 2, **facts: Any) -> Plan:
    names = ("bank", "shop", "clinic")[:n_parties]
    study = Study(
        name="customers",
        parties=tuple(
            PartySpec(name=name, columns=(Column(name="c", low=0, high=1),)) for name in names
        ),
        n_clusters=3,
        budget=Budget(epsilon=1, delta=1e-5),
        membership=membership,
        n_local_clusters=3,
        sketch=SketchOptions(repetitions=256),
        ids=AS_IS,
        **facts,
    )
    return make_plan(study)


def report_of(membership: str, **facts: Any) -> PrivacyFacts:
    return PrivacyFacts.of(plan_of(membership, **facts))


# ---- every method ----


@pytest.mark.parametrize("membership", ["decoy", "sketch"])
def test_the_text_has_every_part(membership):
    report = report_of(membership)
    text = report.statement()
    assert "Privacy of study 'customers'" in text
    assert plan_of(membership).study.hash[:16] in text
    assert "one user added or removed, with all columns at all parties" in text
    assert "(budget epsilon 1, delta 1e-05)" in text
    for release in report.releases:
        assert release.what in text
        assert release.party in text
    for observer in report.observers:
        assert f"{observer.who}: {observer.sees}" in text
        for bound in observer.bounds:
            assert f"{bound.case}: {bound.text}" in text
    assert "holds if" in text
    assert "SipHash" in text
    for caveat in report.caveats:
        assert f"NOTE: {caveat}" in text


@pytest.mark.parametrize("membership", ["decoy", "sketch"])
def test_the_mapping_is_json_and_says_the_same(membership):
    report = report_of(membership)
    mapping = json.loads(json.dumps(report.to_mapping(), allow_nan=False))
    assert mapping == report.to_mapping()
    assert PrivacyFacts.from_mapping(mapping, where="facts").to_mapping() == mapping
    assert mapping["study"] == "customers"
    assert mapping["study_hash"] == plan_of(membership).study.hash
    assert mapping["plan"] == plan_of(membership).fingerprint
    assert mapping["unit"] == "one user added or removed, with all columns at all parties"
    assert mapping["budget"] == {"epsilon": 1.0, "delta": 1e-5}
    assert mapping["secure_noise"] is True
    assert [one["name"] for one in mapping["observers"]] == NAMES
    assert mapping.get("caveats", []) == list(report.caveats)
    assert len(mapping["assumptions"]) == 7


@pytest.mark.parametrize("membership", ["decoy", "sketch"])
def test_the_total_is_within_the_budget(membership):
    report = report_of(membership)
    assert 0.9 <= report.epsilon <= 1 + 1e-12
    assert report.delta <= 1e-5 * (1 + 1e-12)
    total = report.to_mapping()["total"]
    assert (total["epsilon"], total["delta"]) == (report.total.epsilon, report.total.delta)
    # Each release alone costs less than all of them.
    costs = [release.cost.epsilon for release in report.releases]
    assert all(0 < cost < report.epsilon for cost in costs)
    assert math.fsum(costs) > report.epsilon


def test_repr_shows_the_total():
    text = repr(report_of("decoy"))
    assert text.startswith("<PrivacyFacts epsilon ")
    assert text.endswith("delta 1e-05>")


# ---- figures name their observers ----


def figures_without_observer(statement: str) -> list[str]:
    """Return the lines with an epsilon that name no observer and stand below no heading that does.

    Assumptions compare figures of the unit itself, and notes are about the study's budget.
    """
    found, heading = [], ""
    body = statement.partition("  holds if")[0]
    for line in body.splitlines():
        if re.fullmatch(r"  \S.*|    \S[^:]*: .*", line) and "epsilon" not in line:
            heading = line
        names = ("towards the server", "to a party", "the server", "readers", "another party")
        if "epsilon " in line and not any(name in line + heading for name in names):
            found.append(line)
    return found


SHAPES: dict[str, dict[str, Any]] = {
    "decoy": {},
    "partial": {"user_sets": "partial"},
    "sketch": {"membership": "sketch"},
    "series": {"renewal": Renewal(runs=3)},
    "bounded": {"budget": Budget(epsilon=1, delta=1e-5, party_epsilon=0.5)},
    "against collusion": {"decoy": DecoyOptions(collusion_epsilon=0.5)},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_every_figure_names_its_observer(shape):
    statement = PrivacyFacts.for_study(keyed_study(**SHAPES[shape])).statement()
    assert "epsilon " in statement
    assert figures_without_observer(statement) == []


def test_a_figure_without_an_observer_is_found():
    assert figures_without_observer("Privacy of study 'x'\n  total      epsilon 1, delta 1e-05")


# ---- what each method must say ----


def bounds(report: PrivacyFacts) -> dict[str, dict[str, Cost | None]]:
    return {
        observer.name: {bound.case: bound.cost for bound in observer.bounds}
        for observer in report.observers
    }


ADDED = "a user added or removed"


def test_decoy_has_bounds_for_everyone_but_a_coalition():
    report = report_of("decoy")
    views = bounds(report)
    total = Cost(epsilon=report.epsilon, delta=report.delta)
    assert views["server"] == {ADDED: total}
    assert views["reader"] == {ADDED: total}
    # Parties with equal user sets know who is in them: only values are left to protect.
    (changed,) = views["party"].values()
    assert changed is not None
    assert report.epsilon < changed.epsilon
    assert list(views["coalition"].values()) == [None]
    assert "a user's values elsewhere replaced; not presence: no guarantee" in report.statement()
    assert report.caveats == ()


def test_presence_is_protected_from_a_fellow_party_where_user_sets_differ():
    report = report_of("decoy", user_sets="partial")
    fellow = bounds(report)["party"]
    added = fellow["a user's columns elsewhere added or removed"]
    changed = fellow["a user's values elsewhere replaced"]
    assert added is not None
    assert changed is not None
    assert 0 < added.epsilon < report.epsilon < changed.epsilon


def test_collusion_epsilon_bounds_the_coalition():
    report = report_of("decoy", decoy=DecoyOptions(collusion_epsilon=2.5))
    (coalition,) = bounds(report)["coalition"].values()
    assert coalition is not None
    # The randomiser on the label, and the other party's centres under replacement on top.
    assert 2.5 < coalition.epsilon < 2.5 + 2 * report.epsilon
    three = report_of("decoy", n_parties=3, decoy=DecoyOptions(collusion_epsilon=2.5))
    (wider,) = bounds(three)["coalition"].values()
    assert wider is not None
    assert wider.epsilon > 2 * 2.5 * 0.9
    # Other methods have no such layer, whatever the study says.
    other = report_of("sketch", decoy=DecoyOptions(collusion_epsilon=2.5))
    assert list(bounds(other)["coalition"].values()) == [None]


def test_sketch_holds_towards_the_server_only():
    report = report_of("sketch")
    assert bounds(report)["server"][ADDED].epsilon == report.epsilon
    assert set(bounds(report)["party"].values()) == {None}
    assert "Registers must never be shown to a party" in report.statement()


@pytest.mark.parametrize("membership", ["decoy", "sketch"])
def test_what_a_machine_has_checked_is_said_of_decoys_alone_and_not_stretched(membership):
    text = report_of(membership).statement()
    assert ("checked by a machine: that memberships" in text) == (membership == "decoy")
    assert "not the program, and not the total" in text or membership != "decoy"
    assert "verified" not in text


@pytest.mark.parametrize("membership", ["decoy", "sketch"])
def test_insecure_noise_shows(membership):
    report = PrivacyFacts.of(plan_of(membership), secure_noise=False)
    title, first = report.statement().splitlines()[:2]
    assert title.startswith("Privacy of study")
    assert first.strip().startswith("INSECURE TEST NOISE")
    assert report.statement().count("INSECURE") == 1
    assert report.to_mapping()["secure_noise"] is False
    assert any("INSECURE" in caveat for caveat in report.to_mapping()["caveats"])
    assert "INSECURE" not in report_of(membership).statement()


# ---- a fellow party's view ----


@dataclasses.dataclass(frozen=True)
class OneGaussian:
    """A local mechanism that is one Gaussian release."""

    noise_multiplier: float

    @property
    def event(self) -> Event:
        return GaussianEvent(noise_multiplier=self.noise_multiplier)

    def release(self, raw_rows: Any, *, noise: Any, rng: Any) -> np.ndarray:
        raise NotImplementedError


def designed_plan(*, n_parties: int = 2, multiplier: float = 5.3, sigma: float = 7.6) -> Plan:
    """A plan of total (1, 5e-5)."""
    plan = plan_of("decoy", n_parties=n_parties, user_sets="partial")
    study = dataclasses.replace(plan.study, budget=Budget(epsilon=1, delta=5e-5))
    law = DecoyLaw(sigma=sigma, truncation=36, server_sigma=sigma)
    return dataclasses.replace(
        plan, study=study, membership=law, local=(OneGaussian(multiplier),) * n_parties
    )


def test_the_figures_of_the_design():
    plan = designed_plan()
    total = total_of(plan)
    assert total.epsilon == pytest.approx(0.9994, abs=5e-4)
    added = fellow_party_cost(plan, Relation.ADD_OR_REMOVE)
    changed = fellow_party_cost(plan, Relation.REPLACE)
    assert added is not None
    assert changed is not None
    assert added.epsilon == pytest.approx(0.877, abs=2e-3)
    assert changed.epsilon == pytest.approx(1.47, abs=5e-3)
    assert added.delta == changed.delta == 5e-5


def test_the_view_is_the_other_parties_centres_and_two_cells():
    plan = designed_plan()
    local, cell = GaussianEvent(noise_multiplier=5.3), CountGaussianEvent(scale=7.6)
    for observer in (0, 1):
        assert _events(plan, observer, Relation.ADD_OR_REMOVE) == (local, cell, cell)
        replaced_local = GaussianEvent(noise_multiplier=2.65)
        assert _events(plan, observer, Relation.REPLACE) == (replaced_local, cell, cell)


def test_in_pairs_of_three_parties_the_observer_sees_one_pair_from_outside():
    pairs = ((0, 1), (0, 2), (1, 2))
    plan = dataclasses.replace(designed_plan(n_parties=3), groups=pairs, presence=None)
    added = _events(plan, 0, Relation.ADD_OR_REMOVE)
    # Two cells move in each of the observer's two pairs, one in the pair of the others.
    assert [type(event) for event in added] == [GaussianEvent] * 2 + [CountGaussianEvent] * 5
    changed = _events(plan, 0, Relation.REPLACE)
    assert [type(event) for event in changed] == [GaussianEvent] * 2 + [CountGaussianEvent] * 6


def test_in_a_presence_table_a_user_moves_who_comes_not_one_who_changes():
    plan = designed_plan(n_parties=3)
    assert plan.presence is not None
    cell, there = (
        CountGaussianEvent(scale=law.server_sigma) for law in (plan.membership, plan.presence)
    )
    assert _events(plan, 0, Relation.ADD_OR_REMOVE)[2:] == (*(cell,) * 5, *(there,) * 2)
    assert _events(plan, 0, Relation.REPLACE)[2:] == (cell,) * 6


def test_the_worst_observer_counts():
    plan = designed_plan()
    uneven = dataclasses.replace(plan, local=(OneGaussian(5.3), OneGaussian(3.0)))
    cost = fellow_party_cost(uneven, Relation.ADD_OR_REMOVE)
    assert cost is not None
    # The first party sees the second's centres, which have less noise.
    events = (GaussianEvent(noise_multiplier=3.0), *(CountGaussianEvent(scale=7.6),) * 2)
    assert cost.epsilon == epsilon_for(events, 5e-5)


def test_more_server_noise_protects_better():
    quiet, loud = designed_plan(), designed_plan()
    loud = dataclasses.replace(
        loud, membership=dataclasses.replace(loud.membership, server_sigma=20.0)
    )
    for relation in Relation:
        low, high = fellow_party_cost(loud, relation), fellow_party_cost(quiet, relation)
        assert low is not None
        assert high is not None
        assert low.epsilon < high.epsilon


def test_the_sketch_claims_nothing_towards_a_party():
    assert fellow_party_cost(plan_of("sketch"), Relation.ADD_OR_REMOVE) is None
    assert fellow_party_cost(plan_of("sketch"), Relation.REPLACE) is None


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (RandomisedResponseEvent(epsilon=0.5), RandomisedResponseEvent(epsilon=0.5)),
        (RareEvent(probability=1e-7), RareEvent(probability=2e-7)),
        (
            ComposedEvent(parts=(RareEvent(probability=1e-7), RareEvent(probability=2e-7))),
            ComposedEvent(parts=(RareEvent(probability=2e-7), RareEvent(probability=4e-7))),
        ),
    ],
    ids=["report", "rare", "composed"],
)
def test_a_replacement_is_a_removal_and_an_addition(event, expected):
    assert replaced(event) == expected


def test_a_replacement_halves_a_gaussian_s_multiplier():
    found = replaced(GaussianEvent(noise_multiplier=6.0, slack=1e-9))
    assert isinstance(found, GaussianEvent)
    assert found.noise_multiplier == 3.0
    assert found.slack >= 1e-9


def test_an_event_without_a_replacement_bound_is_refused():
    event = CellSketchEvent(repetitions=16, gamma=1.0, phantoms=4, floor=1)
    with pytest.raises(PrivacyError, match="no replacement bound is known for CellSketchEvent"):
        replaced(event)


def test_local_clustering_has_a_replacement_bound():
    cost = fellow_party_cost(plan_of("decoy"), Relation.REPLACE)
    assert cost is not None
    assert math.isfinite(cost.epsilon)


def test_a_study_has_its_statement_before_any_data_is_touched():
    plan = plan_of("decoy")
    report = PrivacyFacts.for_study(plan.study)
    assert report == PrivacyFacts.of(plan)
    assert report.plan == plan.fingerprint
    assert report.secure_noise
    assert report.epsilon <= plan.study.budget.epsilon


@pytest.mark.parametrize(("users", "is_said"), [(100_000, True), (99_999, False)])
def test_a_delta_of_one_over_the_counted_users_is_called_what_it_is(users, is_said):
    study = dataclasses.replace(plan_of("decoy").study, n_local_clusters="auto")
    report = PrivacyFacts.of(plan_for(study, users=users))
    assert any("publish one user's row" in caveat for caveat in report.caveats) == is_said


@pytest.mark.parametrize("epsilon", [11.0, 18.0, 50.0])
@pytest.mark.parametrize("n_parties", [2, 3])
def test_a_large_collusion_epsilon_has_a_cost_that_is_a_number(epsilon, n_parties):
    """At most the other parties' labels and local centres, added up."""
    report = report_of("decoy", n_parties=n_parties, decoy=DecoyOptions(collusion_epsilon=epsilon))
    (cost,) = bounds(report)["coalition"].values()
    labels = (n_parties - 1) * epsilon
    assert labels < cost.epsilon < labels + 4
    assert "no privacy" not in report.statement()


# ---- one person is one id ----


@pytest.mark.parametrize(("membership", "n_parties"), [("decoy", 2), ("decoy", 3), ("sketch", 2)])
def test_another_spelling_at_every_party_has_its_figure(membership, n_parties):
    """The person is then a user of its own at each party, and moves a cell for each."""
    plan = plan_of(membership, n_parties=n_parties, user_sets="partial")
    report = PrivacyFacts.of(plan)
    local = tuple(mechanism.event for mechanism in plan.local)
    # Of three parties each has two pairs, and a cell of its own in the presence table.
    there = () if plan.presence is None else (plan.presence.event,) * n_parties
    cells = (plan.membership.event,) * (n_parties * (n_parties - 1))
    expected = epsilon_for((*local, *cells, *there), 1e-5)
    apart = cost_spelled_apart(plan)
    assert apart is not None
    assert apart.epsilon == pytest.approx(expected, rel=1e-6)
    assert apart.epsilon > 1.05 * report.epsilon
    (said,) = [text for text in report.assumptions if "one person is one id" in text]
    assert f"epsilon {expected:.4g}" in said
    assert f"each of the {n_parties} parties" in said
    assert said in report.statement()


@pytest.mark.parametrize(
    ("changes", "server"), [({}, True), ({"membership": "sketch"}, False), (None, False)]
)
def test_where_noise_comes_from_is_said_as_it_is(changes, server):
    """Between organisations the server's own noise follows from its key (rule R17)."""
    study = plan_of("decoy").study if changes is None else keyed_study(**changes)
    (said,) = [text for text in PrivacyFacts.for_study(study).assumptions if "noise" in text]
    assert "the operating system's secure source" in said
    assert ("the server's own follows from its private key" in said) == server


@pytest.mark.parametrize("user_sets", ["equal", "partial"])
def test_that_parties_compare_their_users_is_said_where_they_do(user_sets):
    view = PrivacyFacts.for_study(keyed_study(user_sets=user_sets)).observer("party")
    assert view.who.startswith("another party")
    assert ("whether all have the same users" in view.sees) == (user_sets == "equal")


def test_with_equal_sets_another_spelling_ends_the_run_so_it_has_no_figure():
    report = report_of("decoy")
    assert cost_spelled_apart(plan_of("decoy")) is None
    assert "one person is one id, spelled alike at every party" in report.assumptions


@pytest.mark.parametrize(("kind", "cells"), [("as-is", 3), ("text", 3), ("integer", 1)])
def test_a_person_moves_a_cell_for_each_spelling(kind, cells):
    """What the figure is about, and what a rule for ids mends: the join, by hand."""
    spellings = ["007", "7", "07"]
    rules = IdRules(type=kind)

    def joined(*, with_person: bool) -> Counter[tuple[bool, ...]]:
        present = [
            set(canonical_ids(["1", *([own] if with_person else [])], rules=rules).to_pylist())
            for own in spellings
        ]
        users = set().union(*present)
        return Counter(tuple(user in own for own in present) for user in users)

    change = joined(with_person=True)
    change.subtract(joined(with_person=False))
    assert sum(abs(moved) for moved in change.values()) == cells
