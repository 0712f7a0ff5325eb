"""The plan: what it settles for each method, what it refuses, and that it fits the budget."""

import dataclasses
import functools
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from splitmeans.errors import ParameterError, PrivacyError, StudyError
from splitmeans.local.laws.guided_lloyd import GuidedLloydLaw as GuidedLloyd
from splitmeans.membership.decoy.law import DecoyLaw
from splitmeans.membership.method import enough_clusters
from splitmeans.membership.methods import method_of
from splitmeans.membership.sketch.law import SketchLaw
from splitmeans.plan import settle
from splitmeans.plan.plan import Plan
from splitmeans.plan.settle import make_plan
from splitmeans.plan.size_stage import SizeLaw, sizing_parties
from splitmeans.plan.views import fellow_party_cost
from splitmeans.privacy.events import ComposedEvent, Relation
from splitmeans.privacy.pld import delta_for, epsilon_for
from splitmeans.study import Budget, Column, DecoyOptions, PartySpec, SketchOptions, Study
from splitmeans.study.features import bounds_of, features_of
from tests.scene import make_study, numbers

# What a study leaves open is what a plan settles.
open_study = functools.partial(
    make_study,
    columns=numbers("c0", "c1", low=-1, high=1),
    n_clusters=5,
    budget=Budget(epsilon=1, delta=1e-5),
    n_local_clusters="auto",
    expected_users=10_000,
    sketch=SketchOptions(repetitions=256),
)


@pytest.fixture
def uncalibrated(monkeypatch) -> Iterator[None]:
    """Leave the search for the noise out, for tests of everything else that a plan settles."""
    make_plan.cache_clear()
    settle._precisions_of.cache_clear()
    monkeypatch.setattr(settle, "calibrate", lambda events_at, budget: 1.0)
    yield
    make_plan.cache_clear()
    settle._precisions_of.cache_clear()


# ---- what is settled ----


@pytest.mark.usefixtures("uncalibrated")
@pytest.mark.parametrize(
    ("membership", "law"),
    [("decoy", DecoyLaw), ("sketch", SketchLaw)],
)
def test_a_method_has_its_law(membership, law):
    plan = make_plan(open_study(membership=membership))
    assert isinstance(plan.membership, law)
    assert [type(mechanism) for mechanism in plan.local] == [GuidedLloyd, GuidedLloyd]
    assert plan.released == ()


@pytest.mark.usefixtures("uncalibrated")
def test_local_clusterings_have_their_party_s_bounds():
    parties = (
        PartySpec(name="a", columns=(Column(name="x", low=0, high=9, weight=0.5),)),
        PartySpec(
            name="b",
            columns=(Column(name="y", low=0, high=9), Column(name="z", categories=("u", "v", "w"))),
        ),
    )
    plan = make_plan(open_study(parties=parties, n_local_clusters=3))
    assert plan.local[0].bounds == (2**19,)
    # One-hot columns have weight 1 / sqrt(2): 2^20 / sqrt(2) = 741455.2.
    assert plan.local[1].bounds == (2**20, 741455, 741455, 741455)
    assert [mechanism.n_clusters for mechanism in plan.local] == [3, 3]


@pytest.mark.usefixtures("uncalibrated")
@pytest.mark.parametrize(
    ("membership", "n_parties", "changes", "grid", "groups"),
    [
        ("decoy", 2, {}, "pairs", ((0, 1),)),
        ("decoy", 2, {"grid": "many"}, "many", ((0, 1),)),
        ("decoy", 3, {}, "presence", ((0, 1), (0, 2), (1, 2), (0, 1, 2))),
        ("sketch", 2, {}, "pairs", ((0, 1),)),
    ],
)
def test_grid_and_groups(membership, n_parties, changes, grid, groups):
    study = open_study(
        membership=membership,
        n_parties=n_parties,
        n_local_clusters=3,
        **changes,
    )
    plan = make_plan(study)
    assert plan.grid_method == grid
    assert plan.groups == groups
    assert (plan.presence is not None) == (grid == "presence")


def test_a_presence_table_has_a_fifth_of_the_memberships():
    """Half of mu^2 for memberships: 0.1 for presence and 0.4 for three pairs."""
    study = open_study(n_parties=3, n_local_clusters=5)
    plan = make_plan(study)
    pair, presence = plan.membership, plan.presence
    assert isinstance(pair, DecoyLaw)
    assert presence is not None
    assert (pair.sigma / presence.sigma) ** 2 == pytest.approx(0.1 / (0.4 / 3))
    assert presence.server_sigma == presence.sigma
    local = plan.local[0].event
    (memberships,) = plan.events[3:]
    assert memberships == ComposedEvent(parts=(pair.event,) * 3 + (presence.event,))
    assert plan.events[:3] == (local,) * 3
    assert epsilon_for(plan.events, 1e-5) <= 1.0
    # Whoever calculates another table stops at the comparison of plans.
    other = dataclasses.replace(presence, truncation=presence.truncation + 1)
    assert dataclasses.replace(plan, presence=other).fingerprint != plan.fingerprint
    assert dataclasses.replace(plan, presence=None).fingerprint != plan.fingerprint


def test_a_bound_towards_parties_holds_for_the_presence_table_too():
    budget = Budget(epsilon=1.0, delta=1e-5, party_epsilon=0.5)
    plan = make_plan(open_study(n_parties=3, budget=budget))
    pair, presence = plan.membership, plan.presence
    assert isinstance(pair, DecoyLaw)
    assert presence is not None
    assert presence.server_sigma > presence.sigma
    assert presence.server_sigma / presence.sigma == pytest.approx(pair.server_sigma / pair.sigma)
    for relation in Relation:
        cost = fellow_party_cost(plan, relation)
        assert cost is not None
        assert cost.epsilon <= 0.5


# ---- k' ----


@pytest.mark.usefixtures("uncalibrated")
@pytest.mark.parametrize(("users", "expected"), [(500, 6), (1_000, 8), (10_000, 13), (99_999, 56)])
def test_decoy_takes_more_clusters_the_more_users_stand_above_the_noise(users, expected):
    # (1, 1e-5) is a Gaussian of 3.73; a quarter of its squared precision and two noises make a
    # deviation of sqrt(2 / 0.25) x 3.73 = 10.55: 47, 95, 948 and 9,480 users for each. Two want
    # 10 clusters, or sqrt(47 / 1.5) = 5.6 and sqrt(95 / 1.5) = 8.0; from sqrt(948 / 6) = 12.6 the
    # grid decides, with three users per deviation of a cell where there are plenty.
    assert make_plan(open_study(expected_users=users)).n_local_clusters == (expected, expected)


@pytest.mark.usefixtures("uncalibrated")
def test_sketch_takes_six_clusters():
    assert make_plan(open_study(membership="sketch")).n_local_clusters == (6, 6)


@pytest.mark.parametrize(
    ("n_clusters", "n_parties", "expected"),
    [(4, 2, 2), (5, 2, 3), (9, 2, 3), (100, 2, 10), (101, 2, 11), (8, 3, 2), (9, 3, 3)],
)
def test_enough_clusters_is_the_root_rounded_up(n_clusters, n_parties, expected):
    study = open_study(n_clusters=n_clusters, n_parties=n_parties)
    assert enough_clusters(study) == expected


@pytest.mark.usefixtures("uncalibrated")
@pytest.mark.parametrize("membership", ["decoy", "sketch"])
def test_many_segments_need_more_local_clusters(membership):
    # 21^2 = 441 is the first square of at least 401; decoy has sqrt(948 / 1.5) = 25.
    study = open_study(membership=membership, n_clusters=401)
    expected = {"decoy": (25, 25), "sketch": (21, 21)}[membership]
    assert make_plan(study).n_local_clusters == expected


# ---- counts ----


@pytest.mark.usefixtures("uncalibrated")
@pytest.mark.parametrize("membership", ["decoy", "sketch"])
def test_the_number_of_users_is_released_where_k_is_open(membership):
    plan = make_plan(open_study(membership=membership))
    assert [type(stage.law) for stage in plan.stages] == [SizeLaw]
    assert plan.events[: len(plan.stages)] == tuple(stage.law.event for stage in plan.stages)
    assert plan.next_stage == (plan.stages[0] if plan.stages else None)
    fixed = make_plan(open_study(membership=membership, n_local_clusters=4))
    assert fixed.stages == ()


def test_every_party_tells_its_number_of_users():
    assert sizing_parties(open_study(n_parties=3)) == ("org0", "org1", "org2")
    assert sizing_parties(open_study(n_parties=3, n_local_clusters=5)) == ()


# ---- sampling and collusion ----


@pytest.mark.usefixtures("uncalibrated")
def test_sample_rate_comes_from_the_study_alone():
    options = DecoyOptions(max_users=1000)
    assert make_plan(open_study(decoy=options, expected_users=4000)).sample_rate == 0.25
    assert make_plan(open_study(decoy=options, expected_users=900)).sample_rate == 1.0
    unsaid = open_study(decoy=options, expected_users=None)
    for users in (-5, 5000, 10**8):
        assert make_plan(unsaid, released=(((users,), (5,)),)).sample_rate == 1.0


@pytest.mark.usefixtures("uncalibrated")
def test_collusion_laws_are_for_the_decoy_join_only():
    options = DecoyOptions(collusion_epsilon=2.0)
    laws = make_plan(open_study(decoy=options, n_local_clusters=6)).collusion_laws
    assert [(law.epsilon, law.n_local_clusters) for law in laws] == [(2.0, 6), (2.0, 6)]
    assert make_plan(open_study()).collusion_laws == (None, None)
    assert make_plan(open_study(decoy=options, membership="sketch")).collusion_laws == (None, None)


# ---- refusals ----


def test_too_few_cells_are_refused():
    study = open_study(n_local_clusters=2, n_clusters=5)
    with pytest.raises(ParameterError, match=r"gives 4 grid cells, fewer than n_clusters=5; raise"):
        make_plan(study)


def test_more_than_250_local_clusters_are_refused():
    study = open_study(n_local_clusters=251)
    with pytest.raises(ParameterError, match="n_local_clusters must be <= 250, got 251"):
        make_plan(study)
    make_plan(dataclasses.replace(study, n_local_clusters=250))


def test_weights_that_would_spoil_exact_distances_are_refused():
    # Four columns of weight w: 4 x (2 w 2^20)^2 < 2^53 means w < sqrt(512) = 22.6; the rule, with
    # 2000 for 2^11, says sqrt(500) = 22.36.
    def study(weight: float) -> Study:
        columns = tuple(Column(name=f"c{n}", low=0, high=1, weight=weight) for n in range(4))
        parties = tuple(PartySpec(name=name, columns=columns) for name in ("a", "b"))
        return open_study(parties=parties, n_local_clusters=4)

    make_plan(study(22.3))
    with pytest.raises(
        StudyError, match=r"party 'a': weight of column 'c0' must be at most 22\.36 "
    ):
        study(22.5)


def test_a_decoy_join_with_hardly_any_delta_is_refused():
    study = open_study(budget=Budget(epsilon=1, delta=1e-17))
    with pytest.raises(
        (PrivacyError, ParameterError), match="delta must be >= 1e-10 for exact accounting"
    ):
        make_plan(study)


# ---- fingerprint ----


def test_the_same_study_gives_the_same_plan():
    make_plan.cache_clear()
    settle._precisions_of.cache_clear()
    first = make_plan(open_study())
    make_plan.cache_clear()
    settle._precisions_of.cache_clear()
    second = make_plan(open_study())
    assert first is not second
    assert first == second
    assert first.fingerprint == second.fingerprint


CHANGES: dict[str, dict[str, Any]] = {
    "name": {"name": "other"},
    "parties": {"n_parties": 3},
    "columns": {"columns": numbers("c0", "c1", "c2", low=-1, high=1)},
    "k": {"n_clusters": 6},
    "epsilon": {"budget": Budget(epsilon=1.01, delta=1e-5)},
    "delta": {"budget": Budget(epsilon=1, delta=1.1e-5)},
    "membership": {"membership": "sketch"},
    "k'": {"n_local_clusters": 4},
    "expected_users": {"expected_users": 12_345},
    "grid": {"grid": "many"},
    "gamma": {"sketch": SketchOptions(repetitions=256, gamma=0.2)},
    "repetitions": {"sketch": SketchOptions(repetitions=257)},
    "max_users": {"decoy": DecoyOptions(max_users=5000)},
    "collusion": {"decoy": DecoyOptions(collusion_epsilon=1.0)},
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_every_parameter_of_the_study_is_in_the_fingerprint(change):
    changed = make_plan(open_study(**change))
    assert changed.fingerprint != make_plan(open_study()).fingerprint


def changed_plans(plan: Plan) -> dict[str, Plan]:
    law = plan.membership
    assert isinstance(law, DecoyLaw)
    first, second = plan.local
    return {
        "sigma": dataclasses.replace(
            plan, membership=dataclasses.replace(law, sigma=law.sigma * (1 + 1e-15))
        ),
        "truncation": dataclasses.replace(
            plan, membership=dataclasses.replace(law, truncation=law.truncation + 1)
        ),
        "server noise": dataclasses.replace(
            plan, membership=dataclasses.replace(law, server_sigma=1.0)
        ),
        "one party's noise": dataclasses.replace(
            plan, local=(first, dataclasses.replace(second, mu=second.mu * (1 + 1e-15)))
        ),
        "k'": dataclasses.replace(plan, n_local_clusters=(7, 7)),
        "groups": dataclasses.replace(plan, groups=((1, 0),)),
        "grid": dataclasses.replace(plan, grid_method="many"),
        "stages": dataclasses.replace(plan, stages=()),
        "released values": dataclasses.replace(plan, released=(((1,),),)),
    }


def test_every_noise_parameter_is_in_the_fingerprint():
    plan = make_plan(open_study())
    for name, changed in changed_plans(plan).items():
        assert changed.fingerprint != plan.fingerprint, name


# ---- what a plan costs ----


@pytest.mark.parametrize(
    ("membership", "n_parties", "epsilon", "delta"),
    [
        ("decoy", 2, 0.2, 1e-6),
        ("decoy", 3, 1.0, 1e-8),
        ("decoy", 2, 1.0, 5e-5),
        ("decoy", 2, 4.0, 9e-5),
        ("sketch", 2, 0.2, 9e-5),
        ("sketch", 2, 1.0, 5e-5),
        ("sketch", 2, 2.0, 1e-6),
    ],
)
def test_tight_plans_use_their_budget_and_no_more(membership, n_parties, epsilon, delta):
    budget = Budget(epsilon=epsilon, delta=delta)
    # Few rows or a large epsilon: few phantoms, and whole numbers of them leave wide steps.
    sketch = SketchOptions(repetitions=4096)
    plan = make_plan(
        open_study(membership=membership, n_parties=n_parties, budget=budget, sketch=sketch)
    )
    assert delta_for(plan.events, epsilon) <= delta
    total = epsilon_for(plan.events, delta)
    assert 0.97 * epsilon <= total <= epsilon


@pytest.mark.parametrize("expected_users", [10**7, 10**8])
def test_a_sketch_for_very_many_users_can_be_planned(expected_users):
    # The floor follows the expected users, so hardly any row of a single user rises above it.
    sketch = SketchOptions(repetitions=4096)
    budget = Budget(epsilon=1, delta=1e-9)
    study = open_study(
        membership="sketch", expected_users=expected_users, sketch=sketch, budget=budget
    )
    assert epsilon_for(make_plan(study).events, 1e-9) <= 1


def test_a_coarse_sketch_fits_too():
    # Few phantoms: whole numbers leave steps that no noise can fill.
    budget = Budget(epsilon=8, delta=1e-5)
    plan = make_plan(open_study(membership="sketch", budget=budget))
    assert plan.membership.phantoms < 100
    assert epsilon_for(plan.events, 1e-5) <= 8


def test_more_budget_never_means_more_noise():
    sigmas, mus, phantoms = [], [], []
    for epsilon in (0.5, 1.0, 2.0):
        budget = Budget(epsilon=epsilon, delta=1e-5)
        plan = make_plan(open_study(budget=budget))
        sigmas.append(plan.membership.sigma)
        mus.append(plan.local[0].mu)
        sketch = make_plan(open_study(budget=budget, membership="sketch"))
        phantoms.append(sketch.membership.phantoms)
    assert sigmas == sorted(sigmas, reverse=True)
    assert phantoms == sorted(phantoms, reverse=True)
    assert mus == sorted(mus)


def test_weights_that_could_make_exactness_depend_on_a_row_are_refused():
    """The check takes the widest column for all, as the kernels do with the rows themselves."""
    wide = [Column(name="wide", low=0, high=1, weight=20)]
    narrow = [Column(name=f"c{number}", low=0, high=1) for number in range(6)]
    study = open_study()
    with pytest.raises(StudyError, match="party 'first': weight of column 'wide' must be at most"):
        PartySpec(name="first", columns=(*wide, *narrow))
    first = PartySpec(name="first", columns=(*wide, *narrow[:4]))
    make_plan(dataclasses.replace(study, parties=(first, *study.parties[1:])))


@given(
    numbers=st.integers(0, 60),
    categories=st.lists(st.integers(2, 40), max_size=4),
    weight=st.floats(0.001, 44),
    missing=st.sampled_from(["error", "level", "spread"]),
)
@settings(max_examples=200, deadline=None)
def test_a_study_that_is_taken_has_exact_distances(numbers, categories, weight, missing):
    """The largest weight that the rule allows is below the limit of the kernels, and not far."""
    columns = [Column(name=f"n{n}", low=0, high=1, weight=weight) for n in range(numbers)]
    columns += [
        Column(
            name=f"c{n}",
            categories=[str(i) for i in range(size)],
            weight=weight,
            missing=missing,
        )
        for n, size in enumerate(categories)
    ]
    if not columns:
        return
    try:
        party = PartySpec(name="p", columns=tuple(columns))
    except StudyError as problem:
        said = float(re.search(r"must be at most (\S+) beside", str(problem))[1])
        assert said <= weight
        columns = [dataclasses.replace(column, weight=said) for column in columns]
        party = PartySpec(name="p", columns=tuple(columns))
        assert len(features_of(party)) * said**2 > 1900
    bounds = bounds_of(features_of(party))
    assert len(bounds) * (2 * int(bounds.max())) ** 2 < 2**53


@pytest.mark.parametrize("epsilon", [0.009, 12.1, 100])
def test_an_epsilon_that_exact_accounting_cannot_serve_is_refused_by_name(epsilon):
    study = open_study(budget=Budget(epsilon=epsilon, delta=1e-5))
    with pytest.raises(PrivacyError, match=r"epsilon must be between 0\.01 and 12"):
        make_plan(study)


@pytest.mark.parametrize(("n_parties", "expected"), [(2, 64), (4, 39), (5, 21), (6, 24), (16, 20)])
def test_up_to_five_parties_get_a_grid_that_can_be_fitted_whole(n_parties, expected):
    study = open_study(n_parties=n_parties, budget=Budget(epsilon=2, delta=1e-5))
    assert method_of(study).default_labels(study, 100_000) == expected
