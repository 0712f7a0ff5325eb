"""Attacks with what a fellow party releases first: numbers of users, bounds and categories."""

import functools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from splitmeans.errors import ProtocolError
from splitmeans.membership.decoy.tag_lists import high_bits_for
from splitmeans.party import node
from splitmeans.plan import message_sizes as sizes_module
from splitmeans.plan.bounds_stage import FOUND, LearnedBounds, encode_bounds
from splitmeans.plan.categories_stage import encode_names
from splitmeans.plan.message_sizes import HEADROOM, message_sizes, release_length
from splitmeans.plan.plan import Plan
from splitmeans.plan.settle import make_plan, plan_of_run
from splitmeans.plan.size_stage import SizeLaw
from splitmeans.study import ASSUMED_USERS, Budget, Column, DecoyOptions, PartySpec, Study
from splitmeans.wire.messages import PartyRelease, StageRelease
from splitmeans.wire.sealed import OVERHEAD_BYTES
from splitmeans.wire.slot import SERVER
from splitmeans.wire.ways import MAX_LARGE_BYTES
from tests.scene import KEYS, keyed_study, make_table, numbers

from .harness import World

# What no noise makes of any table, what looks like one, and all that a message can carry.
LIES = (-(2**63), -(2**53), -1, 0, 1, 2**31, 2**40, 2**53, 2**63 - 1)

SIZED: dict[str, dict[str, Any]] = {
    "two parties": {},
    "expected": {"expected_users": 3000},
    "sampled": {"expected_users": 3000, "decoy": DecoyOptions(max_users=1000)},
    "sketch": {"membership": "sketch"},
}


@functools.cache
def sized_study(kind: str = "two parties", *names: str, **changes: Any) -> Study:
    """Partial sets, an open k': every party releases its number of users first."""
    facts: dict[str, Any] = {"n_local_clusters": "auto"}
    facts |= {"expected_users": None, "budget": Budget(epsilon=4, delta=1e-5)}
    return keyed_study(*names, **facts | SIZED[kind] | changes)


def told(monkeypatch: pytest.MonkeyPatch, values: dict[str, int]) -> None:
    """Let parties release these numbers of users, whatever their tables are."""
    release = node.release_stage

    def lie(stage: Any, number: int, table: Any, *, noise: Any) -> StageRelease:
        if table.party not in values:
            return release(stage, number, table, noise=noise)
        return StageRelease(stage=number, values=np.array([values[table.party]]))

    monkeypatch.setattr(node, "release_stage", lie)


def bank_length(study: Study, root: Path, n_users: int) -> int:
    """Bytes of the bank's release in a run in which it has this many users."""
    world = World(study, root).approve()
    world.tables["bank"] = make_table(study, "bank", n_users=n_users)
    path = world.path("bank", SERVER, PartyRelease)
    for _ in range(12):
        for name in ("bank", "shop", SERVER):
            world.visit(name)
        if path in world.box.files:
            return len(world.box.files[path])
    raise AssertionError("the bank never released")


# The shop's number, the bank's number, and users of the bank for which noise can make it.
RUNS = [
    (-(2**53), 300, (10, 2_000)),
    (5_000_000, 300, (10, 2_000)),
    (-(2**53), 20_000, (19_991, 20_009)),
]


@pytest.mark.parametrize(("lie", "own", "tables"), RUNS)
def test_released_size_that_collapses_padding(tmp_path, monkeypatch, lie, own, tables):
    """A fellow party releases -2^53 users, or millions, and watches the length of a release.

    Gain: padding below the users of another party, whose length then follows its table.
    Fails: padding follows from the study and the party's own released number alone.
    """
    told(monkeypatch, {"shop": lie, "bank": own})
    study = sized_study()
    found = [bank_length(study, tmp_path / str(n), n) for n in tables]
    plan = make_plan(study, released=(((own,), (lie,)),))
    assert set(found) == {release_length(plan, "bank") + OVERHEAD_BYTES}


def by_the_mean(plan: Plan, party: str) -> int:
    """A broken twin: the padding of a party follows from the mean of all released numbers."""
    users = math.ceil(HEADROOM * (plan.released_users or plan.study.assumed_users))
    return sizes_module._longest_release(plan, party, users=users)


def lengths(plan: Plan, users: set[int]) -> set[int]:
    """Bytes of the bank's padded release for several numbers of users."""
    return {message_sizes(plan, users=max(n, 0)).releases["bank"] for n in users}


def margin(study: Study) -> int:
    """The most by which noise changes a released number of users."""
    law = make_plan(study).stages[0].law
    assert isinstance(law, SizeLaw)
    return law.most_noise


def same_length(study: Study, own: int, others: tuple[int, ...]) -> bool:
    """Whether all tables that noise turns into the bank's number have releases of one length."""
    noise, plan = margin(study), make_plan(study, released=(((own,), *((n,) for n in others)),))
    least = math.ceil(HEADROOM * study.assumed_users)
    users = {0, own - noise, own - 1, own, own + 1, own + noise, least}
    return len(lengths(plan, {n for n in users if n <= max(own + noise, least)})) == 1


ANY_SIZE = st.one_of(st.integers(-(2**53), 10**7), st.integers(-2_000, 50_000))


@pytest.mark.parametrize("kind", SIZED)
@settings(max_examples=25, deadline=None)
@given(own=st.integers(-500, 5_000_000), other=ANY_SIZE, third=ANY_SIZE)
def test_released_sizes_and_every_table(kind: str, own: int, other: int, third: int) -> None:
    """Fellow parties release any numbers of users, as attackers who know the run key choose.

    Gain: a plan under which the length of another party's release follows from its rows.
    Fails: whatever they release, the length holds each table that noise can turn into the party's
    own number, and no number of theirs changes it where k' and the length of tags are the same.
    """
    study = sized_study(kind)
    assert same_length(study, own, (other,))
    if kind != "sketch":  # its partial sets are of two parties
        three = sized_study(kind, "bank", "shop", "clinic")
        assert same_length(three, own, (other, third))
    plans = [make_plan(study, released=(((own,), (n,)),)) for n in (other, third)]
    if len({(plan.n_local_clusters, high_bits_for(plan.tagged_users)) for plan in plans}) == 1:
        assert len({release_length(plan, "bank") for plan in plans}) == 1
    assert {plan.sample_rate for plan in plans} == {make_plan(study).sample_rate}


def test_twin_that_pads_by_the_mean_is_caught(monkeypatch):
    """The checks above can fail: with the mean of all numbers one lie shows the table."""
    monkeypatch.setattr(sizes_module, "release_length", by_the_mean)
    assert not same_length(sized_study(), 5_000, (-(2**53),))


@pytest.mark.parametrize("kind", ["two parties", "expected", "sampled"])
def test_padding_holds_any_number_of_decoys(kind):
    """A party watches whether the release of another, as large as the study allows, is padded more.

    Gain: whether users and decoys together are above their mean, from which the users follow.
    Fails: the length holds nine deviations of the decoys above the mean.
    """
    study = sized_study(kind)
    plan = make_plan(study)
    users = math.ceil(HEADROOM * study.assumed_users)
    assert plan.groups == ((0, 1),)
    own, other = plan.n_labels
    cells = own * (other + 1)  # those in which the bank has the user
    deviation = math.sqrt(cells * float(plan.membership.variance))
    mean = message_sizes(plan, users=users).unpadded["bank"] - OVERHEAD_BYTES
    # Of a tag two bytes and a bit.
    assert release_length(plan, "bank") >= mean + 9 * 2 * deviation


def test_padding_is_at_least_what_the_study_fixes():
    """All parties release fewer users than the study expects.

    Gain: a shorter padding than the study promises.
    Fails: 1.5 times the study's users always fit.
    """
    for kind, expected in (("two parties", ASSUMED_USERS), ("expected", 3000)):
        study = sized_study(kind)
        low = make_plan(study, released=(((-(2**53),), (-(2**53),)),))
        assert len(lengths(low, {0, expected, int(HEADROOM * expected)})) == 1


# ---- no value makes a run too large ----


def columns_study() -> Study:
    """The shop learns bounds and categories, the bank has public columns."""
    learned = (Column(name="x", bounds="private"), Column(name="kind", categories="open"))
    columns = {"bank": numbers("x", "y"), "shop": learned}
    parties = tuple(
        PartySpec(name=name, columns=own, public_key=KEYS[name].public.to_text())
        for name, own in columns.items()
    )
    budget = Budget(epsilon=4, delta=1e-6)
    return sized_study("two parties", parties=parties, expected_users=50_000, budget=budget)


def outcome(study: Study, number: int, party: str, values: tuple[int, ...]) -> Plan | None:
    """The plan if a party releases these values in a stage; None where they are refused by name."""
    released: list[Any] = []
    for at, stage in enumerate(make_plan(study).stages[: number + 1]):
        honest = [getattr(law, "assumed", (300,) * law.length) for law in stage.laws]
        given_values = dict(zip(stage.parties, honest, strict=True))
        try:
            if at == number:
                given_values[party] = stage.checked(party, values)
            released.append(tuple(given_values.values()))
            plan = plan_of_run(study, released=tuple(released))
        except ProtocolError as problem:
            if repr(party) not in str(problem):
                raise
            return None
    return plan


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("kind", SIZED)
def test_released_sizes_that_no_table_has(kind, lie):
    """A fellow party releases any number of users that a message can carry.

    Gain: messages or memory of a size that no participant has, at all the others.
    Fails: the run ends with an error that names the party, or its plan is as large as usual.
    """
    plan = outcome(sized_study(kind), 0, "shop", (lie,))
    if plan is None:
        assert lie < -(2**50) or lie > 10**8
        return
    assert max(plan.n_local_clusters) <= 64
    assert message_sizes(plan, users=300).largest <= MAX_LARGE_BYTES
    assert release_length(plan, "bank") < 10**8


def bounds(low: float, high: float) -> tuple[int, ...]:
    return encode_bounds([LearnedBounds(low=low, high=high, state=FOUND)])


BAD_BOUNDS = {
    "as far as floats go": bounds(-8e307, 8e307),
    "a difference that is lost": bounds(1e15, 1e15 + 0.125),
    "nearly zero": bounds(0.0, 5e-324),
    "the wrong way round": bounds(1.0, -1.0),
    **{f"five times {lie}": (lie,) * 5 for lie in LIES},
}


@pytest.mark.parametrize("values", BAD_BOUNDS.values(), ids=BAD_BOUNDS.keys())
def test_learned_bounds_that_no_search_finds(values):
    """A fellow party releases bounds of 1e300, of nothing, or no bounds at all.

    Gain: numbers that overflow where others compute with them.
    Fails: learned bounds are within what a search can find, or the run ends.
    """
    assert outcome(columns_study(), 1, "shop", values) is None


@pytest.mark.parametrize("lie", LIES)
def test_learned_categories_that_are_no_text(lie):
    """A fellow party releases numbers that are no names of categories.

    Gain: as above.
    Fails: a column has at most 24 printable names, or the run ends.
    """
    length = len(encode_names([()]))
    assert (outcome(columns_study(), 2, "shop", (lie,) * length) is None) == (lie != 0)


def test_learned_columns_and_the_length_of_others():
    """A fellow party learns any bounds and any number of categories.

    Gain: another k', grid or length of the release of a party whose columns are public.
    Fails: all of them follow from the study and the numbers of users alone.
    """
    study = columns_study()
    found = set()
    for low, high in ((0.0, 1.0), (-(2.0**50), 2.0**50)):
        plan = outcome(study, 1, "shop", bounds(low, high))
        assert plan is not None
        for names in ((), ("a",), tuple(f"name {n}" for n in range(24))):
            released = (*plan.released, (encode_names([names]),))
            later = plan_of_run(study, released=released)
            facts = (later.n_local_clusters, later.n_labels, later.grid_method)
            found.add((*facts, release_length(later, "bank")))
    assert len(found) == 1
