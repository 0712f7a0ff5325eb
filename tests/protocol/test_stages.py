"""What a stage releases goes to the server and all others, and all confirm what follows."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from splitmeans.errors import ProtocolError
from splitmeans.local.law import COUNT_UNITS
from splitmeans.party import node as party_node
from splitmeans.party import stages as party_stages
from splitmeans.party import states as party_states
from splitmeans.party.confirm import plan_confirmation
from splitmeans.plan.settle import make_plan, plan_for
from splitmeans.privacy.noise import InsecureSeededNoise
from splitmeans.server import node as server_node
from splitmeans.study import Study
from splitmeans.wire.envelope import Envelope
from splitmeans.wire.messages import PlanConfirmation, RunPlan, StageRelease
from splitmeans.wire.slot import SERVER

OTHER_PLANS = "have different plans for this run"


@pytest.fixture
def counted(small_study: Any) -> Study:
    return small_study("counted", 3)


@pytest.fixture
def by_count(small_study: Any) -> Study:
    """A study whose k' follows from the released number of users."""
    study = small_study("counted", 3)
    few, many = (plan_for(study, users=users) for users in (200, 2_000_000))
    assert few.n_local_clusters != many.n_local_clusters
    return study


def another_count(*receivers: str, add: int) -> Callable[[Envelope], Envelope]:
    """Change the count on its way to some."""

    def change(envelope: Envelope) -> Envelope:
        if isinstance(envelope.message, StageRelease) and envelope.receiver in receivers:
            count = dataclasses.replace(envelope.message, values=envelope.message.values + add)
            return dataclasses.replace(envelope, message=count)
        return envelope

    return change


def step_party(state: Any, sender: str, message: Any) -> Any:
    envelope = Envelope(sender=sender, receiver=state.session.party, message=message)
    return party_node.step(
        state, envelope, noise=InsecureSeededNoise(1), rng=np.random.default_rng(1)
    )


# ---- who gets it ----


def test_one_count_of_each_party_goes_to_the_server_and_to_all_others(counted, stage, monkeypatch):
    calls = []
    release_stage = party_stages.release_stage

    def counting(stage: Any, number: int, table: Any, **options: Any) -> StageRelease:
        calls.append(table.party)
        return release_stage(stage, number, table, **options)

    monkeypatch.setattr(party_node, "release_stage", counting)
    played = stage(counted).play()
    assert played.errors == {}
    names = counted.party_names
    assert sorted(calls) == list(names)
    sent = []
    for name in names:
        counts = [
            envelope
            for envelope in played.sent
            if isinstance(envelope.message, StageRelease) and envelope.sender == name
        ]
        assert {envelope.receiver for envelope in counts} == {SERVER, *names} - {name}
        assert len(counts) == 3
        (own,) = {tuple(envelope.message.values.tolist()) for envelope in counts}
        sent.append(own)
    (released,) = {state.released for state in played.states.values()}
    assert released == (tuple(sent),) == played.server.plan.released


def test_the_count_has_the_plans_noise(counted, small_tables):
    """Mean and variance of 400 counts lie within 5 standard errors; a false alarm has p < 4e-6."""
    table = small_tables(counted)[0]
    plan = make_plan(counted)
    (stage,) = plan.stages
    counts = [
        party_stages.release_stage(stage, 1, table, noise=InsecureSeededNoise(seed)).values[0]
        for seed in range(400)
    ]
    deviation = stage.law.scale / COUNT_UNITS
    assert abs(np.mean(counts) - len(table)) < 5 * deviation / np.sqrt(400)
    # The sd of s^2 is sigma^2 sqrt(2/400); rounding to whole users adds up to 1/12.
    assert abs(np.var(counts) / deviation**2 - 1) < 5 * np.sqrt(2 / 400) + 1 / (12 * deviation**2)


def test_nothing_is_counted_before_all_have_confirmed(counted, stage):
    """A party needs every confirmation, and then counts at once and never again."""
    waiting = stage(counted).play(until=party_states.Keyed)
    assert not any(isinstance(envelope.message, StageRelease) for envelope in waiting.sent)
    state = waiting.states["org0"]
    words = [
        envelope
        for envelope in waiting.sent
        if envelope.receiver == "org0" and type(envelope.message).__name__ == "Confirmation"
    ]
    state, sent = step_party(state, words[0].sender, words[0].message)
    assert sent == []
    state, sent = step_party(state, words[1].sender, words[1].message)
    assert isinstance(state, party_states.Surveying)
    assert [(envelope.receiver, type(envelope.message)) for envelope in sent] == [
        (SERVER, StageRelease),
        ("org1", StageRelease),
        ("org2", StageRelease),
    ]
    count = StageRelease(stage=1, values=np.array([200]))
    state, sent = step_party(state, "org1", count)
    assert sent == []
    state, sent = step_party(state, "org2", count)
    assert isinstance(state, party_states.Agreeing)
    assert [(envelope.receiver, type(envelope.message)) for envelope in sent] == [
        ("org1", PlanConfirmation),
        ("org2", PlanConfirmation),
    ]
    for sender in (SERVER, "org1", "org2"):
        with pytest.raises(ProtocolError, match=f"cannot take StageRelease_1 from '{sender}'"):
            step_party(state, sender, StageRelease(stage=1, values=np.array([200])))


def test_a_study_without_a_count_has_no_count_and_no_second_confirmation(small_study, stage):
    played = stage(small_study("decoy", 3)).play()
    kinds = {type(envelope.message) for envelope in played.sent}
    assert not kinds & {StageRelease, PlanConfirmation}
    assert {state.released for state in played.states.values()} == {()}


def test_the_server_may_not_tell_a_party_the_count(counted, stage):
    waiting = stage(counted).play(until=party_states.Keyed)
    others = [
        envelope
        for envelope in waiting.mail
        if envelope.receiver == "org1" and type(envelope.message).__name__ == "Confirmation"
    ]
    state = waiting.states["org1"]
    for envelope in others:
        state, _ = step_party(state, envelope.sender, envelope.message)
    assert isinstance(state, party_states.Surveying)
    for sender in (SERVER, "org1"):
        with pytest.raises(
            ProtocolError, match=f"in state Surveying cannot take StageRelease_1 from '{sender}'"
        ):
            step_party(state, sender, StageRelease(stage=1, values=np.array([200])))


# ---- a count that is not the same for all ----


@pytest.mark.parametrize(
    ("told_otherwise", "noticed_by"),
    [
        (("org2",), {"org0", "org1", "org2"}),
        (("org1", "org2"), {"org0", "org1", "org2"}),
    ],
)
def test_another_count_at_some_parties_ends_the_run_before_anything_else_is_released(
    told_otherwise, noticed_by, by_count, stage
):
    change = another_count(*told_otherwise, add=3)
    played = stage(by_count, alter=change).play()
    assert set(played.errors) == noticed_by
    assert all(text.endswith(OTHER_PLANS) for text in played.errors.values())
    assert played.kinds_from("org0", to=SERVER) == ["StageRelease"]
    for party in ("org1", "org2"):
        assert played.kinds_from(party, to=SERVER) == ["StageRelease"]
    assert isinstance(played.server, server_node.Gathering)


@pytest.mark.parametrize(("membership", "n_parties"), [("counted", 3), ("counted sketch", 2)])
def test_a_count_that_differs_by_one_is_noticed_just_so(membership, n_parties, small_study, stage):
    change = another_count("org1", add=1)
    study = small_study(membership, n_parties)
    played = stage(study, alter=change).play()
    assert set(played.errors) == set(study.party_names)
    assert all(text.endswith(OTHER_PLANS) for text in played.errors.values())
    for party in study.party_names:
        assert played.kinds_from(party, to=SERVER) == ["StageRelease"]


@pytest.mark.parametrize(
    ("speaker", "listener"), [("org0", "org1"), ("org2", "org0")], ids=["own", "a third's"]
)
def test_a_plan_confirmation_of_another_is_not_taken_for_the_senders(
    speaker, listener, by_count, stage
):
    def swap(envelope: Envelope) -> Envelope:
        route = envelope.sender, envelope.receiver
        if type(envelope.message) is PlanConfirmation and route == ("org1", "org0"):
            words = played.message(speaker, listener, PlanConfirmation)
            return dataclasses.replace(envelope, message=words)
        return envelope

    played = stage(by_count, alter=swap)
    # All of them speak before anyone listens.
    played.play(until=party_states.Agreeing)
    played.play()
    assert played.errors["org0"] == f"parties 'org0' and 'org1' {OTHER_PLANS}"
    assert played.kinds_from("org0", to=SERVER) == ["StageRelease"]


def test_a_plan_confirmation_names_its_party_run_and_plan(by_count, stage):
    state = stage(by_count).play(until=party_states.Prepared).states["org0"]
    session, plan = state.session, make_plan(by_count, released=state.released)
    word = plan_confirmation(session, "org1", run_key=state.run_key, plan=plan)
    other_plan = plan_for(by_count, users=2_000_000)
    other_run = dataclasses.replace(session, run="2")
    others = {
        plan_confirmation(session, "org2", run_key=state.run_key, plan=plan).plan_check,
        plan_confirmation(session, "org1", run_key=state.run_key, plan=other_plan).plan_check,
        plan_confirmation(other_run, "org1", run_key=state.run_key, plan=plan).plan_check,
        plan_confirmation(session, "org1", run_key=bytes(32), plan=plan).plan_check,
    }
    assert len(others) == 4
    assert word.plan_check not in others


# ---- the server's plan ----


def test_a_plan_with_another_count_than_was_released_is_refused_by_all(counted, stage):
    """A server that takes another count than it was sent gets no release from anyone."""
    played = stage(counted, alter=another_count(SERVER, add=1)).play()
    text = "the server's plan has other values than the stages released"
    assert played.errors == {"org0": text, "org1": text, "org2": text}
    for party in counted.party_names:
        assert "PartyRelease" not in played.kinds_from(party, to=SERVER)


@pytest.mark.parametrize("membership", ["decoy", "counted"], ids=["needless", "lacking"])
def test_a_plan_with_a_needless_or_lacking_count_is_refused(membership, small_study, stage):
    study = small_study(membership, 2)
    ready = stage(study).play(until=party_states.Prepared).states["org0"]
    values = [600] if membership == "decoy" else []
    plan = make_plan(study)
    proposal = RunPlan(
        n_local_clusters=np.array(plan.n_local_clusters),
        released=np.array(values, dtype=np.int64),
        fingerprint=plan.fingerprint,
        statement="",
    )
    with pytest.raises(ProtocolError, match="other values than the stages released"):
        step_party(ready, SERVER, proposal)


def test_a_negative_count_does_not_stop_a_run(counted, small_tables, stage, monkeypatch):
    release = StageRelease(stage=1, values=np.array([-40]))
    monkeypatch.setattr(party_node, "release_stage", lambda *_, **__: release)
    played = stage(counted, tables=small_tables(counted, n_users=10)).play()
    assert played.errors == {}
    assert isinstance(played.server, server_node.Done)
    assert played.server.plan.released == (((-40,),) * 3,)
