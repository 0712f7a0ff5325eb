"""Stages: whatever they release, the noise of every release is that of the first plan."""

import dataclasses
import functools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from splitmeans.errors import ParameterError, PrivacyError, ProtocolError
from splitmeans.local.law import COUNT_UNITS
from splitmeans.plan import settle
from splitmeans.plan.message_sizes import message_sizes
from splitmeans.plan.plan import Plan
from splitmeans.plan.releases import releases_of
from splitmeans.plan.settle import largest_plan, make_plan, plan_for
from splitmeans.plan.size_stage import SizeLaw
from splitmeans.plan.views import coalition_events, fellow_party_events, party_events
from splitmeans.privacy.events import GaussianEvent, Relation
from splitmeans.privacy.pld import epsilon_for
from splitmeans.study import Budget, DecoyOptions, Study
from splitmeans.wire.ways import MAX_LARGE_BYTES
from tests.scene import make_study

# Between them every method whose k' a stage decides, few parties and many, and bounds towards
# fellow parties.
STUDIES: dict[str, dict[str, Any]] = {
    "decoy": {},
    "decoy, many segments": {"n_clusters": 40},
    "decoy, four parties": {"n_parties": 4},
    "decoy, eight parties": {"n_parties": 8},
    "decoy, three parties": {"n_parties": 3},
    "decoy, small budget": {"budget": Budget(epsilon=0.2, delta=1e-6)},
    "decoy, bound towards parties": {
        "budget": Budget(epsilon=1, delta=1e-5, party_epsilon=0.5),
    },
    "decoy, bound towards a coalition": {
        "budget": Budget(epsilon=1, delta=1e-5, coalition_epsilon=3.0),
        "decoy": DecoyOptions(collusion_epsilon=2.0),
    },
    "decoy, sampled": {
        "expected_users": 10**6,
        "decoy": DecoyOptions(max_users=10**5),
        "budget": Budget(epsilon=1, delta=1e-7),
    },
    "sketch": {"membership": "sketch"},
}


@functools.cache
def study_of(name: str) -> Study:
    facts = {"expected_users": 9_000, "budget": Budget(epsilon=1, delta=1e-5)}
    return make_study(n_local_clusters="auto", **facts | STUDIES[name])


def values_for(plan: Plan, numbers: list[int]) -> Any:
    """Any numbers as what the stages of a plan release."""
    taken = iter(numbers)
    return tuple(
        tuple(tuple(next(taken) for _ in range(stage.law.length)) for _ in stage.parties)
        for stage in plan.stages
    )


# Nothing, what noise makes of nothing, usual sizes, and what only a party that lies releases.
SIZES = st.one_of(
    st.integers(-(2**53), 2**53), st.integers(-2_000, 2_000), st.integers(1_000, 10**7)
)


@pytest.mark.parametrize("name", STUDIES)
@settings(max_examples=30, deadline=None)
@given(numbers=st.lists(SIZES, min_size=8, max_size=8))
def test_released_values_change_no_noise_and_no_cost(name: str, numbers: list[int]) -> None:
    first = make_plan(study_of(name))
    released = values_for(first, numbers)
    try:
        later = make_plan(study_of(name), released=released)
    except ParameterError as problem:
        # A number of users that no message holds.
        if max(numbers) > 10**7 and "no participant reads more than" in str(problem):
            return
        raise
    assert later.next_stage is None
    assert later.stages == first.stages
    assert later.events == first.events
    assert party_events(later) == party_events(first)
    assert coalition_events(later) == coalition_events(first)
    assert later.membership == first.membership
    assert later.groups == first.groups
    for own, other in zip(first.local, later.local, strict=True):
        assert dataclasses.replace(own, n_clusters=1) == dataclasses.replace(other, n_clusters=1)
    assert later.fingerprint != first.fingerprint
    assert message_sizes(later, users=9_000).largest <= MAX_LARGE_BYTES


@pytest.mark.parametrize("name", ["decoy", "decoy, four parties"])
def test_more_users_give_no_fewer_local_clusters(name: str) -> None:
    plans = [plan_for(study_of(name), users=users) for users in (-9, 500, 9_000, 10**5, 10**7)]
    widths = [max(plan.n_local_clusters) for plan in plans]
    assert widths == sorted(widths)
    assert widths[0] < widths[-1]


@pytest.mark.parametrize("name", STUDIES)
def test_noise_on_a_number_of_users_stays_within_the_margin(name: str) -> None:
    """The margin that lengths are made with has a tail of exp(-50) at most."""
    for law in make_plan(study_of(name)).stages[0].laws:
        assert isinstance(law, SizeLaw)
        assert (law.most_noise - 1) ** 2 / (2 * (law.scale / COUNT_UNITS) ** 2) >= 50


def test_room_is_kept_for_more_users_than_noise_makes_up() -> None:
    study = study_of("decoy")
    law = make_plan(study).stages[0].law
    assert isinstance(law, SizeLaw)
    deviation = law.scale / COUNT_UNITS
    largest = largest_plan(study, users=9_000)
    assert largest.released_users == pytest.approx(9_000 + 10 * deviation, abs=1)
    assert largest_plan(make_study(), users=5) == make_plan(make_study())


@pytest.mark.parametrize("k", [None, 21])
def test_a_plan_that_cannot_be_run_gets_a_smaller_k_if_nobody_chose_it(
    k: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if a message with more than twenty local clusters were too long for its readers."""
    study = dataclasses.replace(study_of("decoy"), n_local_clusters=k or "auto")
    readable = settle.check_readable

    def check(plan: Plan) -> None:
        if max(plan.n_local_clusters) > 20:
            raise ParameterError("too long")
        readable(plan)

    make_plan.cache_clear()
    settle._precisions_of.cache_clear()
    monkeypatch.setattr(settle, "check_readable", check)
    if k is None:
        assert plan_for(study, users=10**7).n_local_clusters == (20, 20)
    else:
        with pytest.raises(ParameterError, match="too long"):
            make_plan(study)
    make_plan.cache_clear()
    settle._precisions_of.cache_clear()


# ---- twins: a plan whose noise follows what was released ----


@pytest.mark.parametrize("changed", ["local", "membership", "stages", "groups"])
def test_a_plan_whose_noise_follows_released_values_is_refused(
    changed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = study_of("decoy")
    build = settle._plan_at

    def follows(study: Study, precisions: Any, *, released: Any, **rest: Any) -> Plan:
        plan = build(study, precisions, released=released, **rest)
        if not released:
            return plan
        law: Any = plan.membership
        others: dict[str, Any] = {
            "local": (plan.local[0], dataclasses.replace(plan.local[1], mu=1.0)),
            "membership": dataclasses.replace(law, sigma=law.sigma / 2),
            "stages": (),
            "groups": plan.groups * 2,
        }
        return dataclasses.replace(plan, **{changed: others[changed]})

    make_plan.cache_clear()
    settle._precisions_of.cache_clear()
    monkeypatch.setattr(settle, "_plan_at", follows)
    with pytest.raises(PrivacyError, match="has other noise than the first one"):
        make_plan(study, released=(((9_000,), (9_000,)),))
    make_plan.cache_clear()
    settle._precisions_of.cache_clear()


# ---- the number of users ----


def test_the_size_costs_one_event_for_each_party() -> None:
    def sizes(name: str) -> list[tuple[str, str]]:
        found = releases_of(make_plan(study_of(name)))
        return [(one.party, one.message) for one in found if one.what == "number of users"]

    for name, n_parties in (("decoy", 2), ("decoy, three parties", 3)):
        assert sizes(name) == [(f"org{n}", "StageRelease_1") for n in range(n_parties)]


@pytest.mark.parametrize("name", ["decoy", "decoy, three parties", "sketch"])
def test_the_size_has_half_a_percent_of_the_squared_precision(name: str) -> None:
    plan = make_plan(study_of(name))
    (stage,) = plan.stages
    event = stage.law.event
    assert isinstance(event, GaussianEvent)
    mu = sum(1 / one.noise_multiplier**2 for one in stage.events)
    local = sum(law.mu**2 for law in plan.local)
    share = plan.study.membership_facts.share_of(len(plan.study.parties))
    assert mu / local == pytest.approx(0.005 / (0.995 * (1 - share)), rel=1e-6)
    assert epsilon_for(plan.events, plan.study.budget.delta) <= plan.study.budget.epsilon


def test_a_fellow_party_sees_the_sizes_of_the_others_where_presence_can_change() -> None:
    """Its own it knows; and a user whose values change is still there."""
    plan = make_plan(study_of("decoy, three parties"))
    size = plan.stages[0].law.event
    for view in fellow_party_events(plan, Relation.ADD_OR_REMOVE):
        assert view.count(size) == 2
    for view in fellow_party_events(plan, Relation.REPLACE):
        assert view.count(size) == 0


# ---- values that are none ----


@pytest.mark.parametrize(
    "released",
    [((),), (((1,), (2,), (3,)),), (((1, 2), (1,)),), (((1,), (2,)), ((1,),)), (((), (1,)),)],
    ids=["no party", "a party too many", "two numbers", "a stage too many", "no number"],
)
def test_values_that_no_stage_releases_make_no_plan(released: Any) -> None:
    with pytest.raises(ParameterError, match="released must have the values of the study's first"):
        make_plan(study_of("decoy"), released=released)


@pytest.mark.parametrize(
    ("values", "words"),
    [((), "released 0 values as its number of users"), ((2**53 + 1,), "that no table can have")],
)
def test_a_party_s_values_are_checked_by_name(values: tuple[int, ...], words: str) -> None:
    (stage,) = make_plan(study_of("decoy")).stages
    assert stage.checked("org0", [-(2**53)]) == (-(2**53),)
    with pytest.raises(ProtocolError, match=f"party 'org0' .*{words}"):
        stage.checked("org0", values)
