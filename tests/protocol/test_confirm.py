"""What parties confirm to each other is bound to key, study, run, plan and speaker."""

import dataclasses
import hashlib
import hmac
from typing import Any

import pytest

from splitmeans.errors import ParameterError
from splitmeans.party import node as party_node
from splitmeans.party import states as party_states
from splitmeans.party.confirm import confirmation, plan_confirmation, transcript
from splitmeans.party.derivation import derivation_digest
from splitmeans.party.session import Session
from splitmeans.plan.settle import make_plan
from splitmeans.study import Budget, Study
from splitmeans.wire import keys
from splitmeans.wire.messages import Confirmation, KeyContribution
from splitmeans.wire.slot import SERVER

KEY, SHARED = b"\x05" * 32, b"\x09" * 32


@pytest.fixture
def decoy(small_study: Any) -> Study:
    return small_study("decoy", 2)


@pytest.fixture
def session(decoy: Study) -> Session:
    return Session(study=decoy, run="1", party="org0")


def test_a_transcript_is_the_hash_of_protocol_study_run_and_plan(session):
    plan = make_plan(session.study)
    lines = ["splitmeans transcript 7", "ab" * 32, session.study.hash, "1", plan.fingerprint, ""]
    expected = hashlib.sha256("\n".join(lines).encode()).digest()
    assert session.transcript(plan, derivation=b"\xab" * 32) == expected
    # Every party has the same one.
    other = dataclasses.replace(session, party="org1")
    assert other.transcript(plan, derivation=b"\xab" * 32) == expected
    assert transcript(session, plan) == session.transcript(plan, derivation=derivation_digest())


def test_a_session_knows_the_others_and_refuses_a_bad_run_name(session):
    assert session.others == ("org1",)
    with pytest.raises(ParameterError, match="run must be 1 to 40 lower-case letters"):
        dataclasses.replace(session, run="Run 1")


def said(session: Session, **changes: Any) -> Confirmation:
    facts: dict[str, Any] = {
        "sender": "org1",
        "run_key": KEY,
        "shared": SHARED,
    }
    facts |= changes
    return confirmation(session, facts.pop("plan", make_plan(session.study)), **facts)


def test_a_confirmation_is_keyed_digests(session):
    """Computed here once more from the description alone."""
    plan = make_plan(session.study)
    word = said(session)
    key = keys.subkey(KEY, keys.CONFIRM)
    text = transcript(session, plan) + b"org1"
    assert word.key_check == hmac.digest(key, b"key\n" + text, "sha256")
    assert word.shared_check == hmac.digest(key, b"shared\n" + SHARED + text, "sha256")
    later = plan_confirmation(session, "org1", run_key=KEY, plan=plan)
    assert later.plan_check == hmac.digest(key, b"plan 0\n" + text, "sha256")


def test_a_confirmation_changes_with_everything_it_is_bound_to(session):
    plan = make_plan(session.study)
    other_study = dataclasses.replace(session.study, name="other")
    other_plan = dataclasses.replace(plan, n_local_clusters=(4, 5))
    words = [
        said(session),
        said(session, sender="org0"),
        said(session, plan=other_plan),
        said(dataclasses.replace(session, run="2")),
        said(dataclasses.replace(session, study=other_study), plan=plan),
    ]
    for name in ("key_check", "shared_check"):
        assert len({getattr(word, name) for word in words}) == len(words)
    first = words[0]
    other_key = said(session, run_key=bytes(32))
    assert other_key.key_check != first.key_check
    assert other_key.shared_check != first.shared_check
    other_decoys = said(session, shared=bytes(32))
    assert other_decoys.key_check == first.key_check
    assert other_decoys.shared_check != first.shared_check


# ---- parties that do not agree ----


def assert_both_refuse(played: Any, text: str) -> None:
    assert set(played.errors) == set(played.study.party_names)
    assert all(text in error for error in played.errors.values())
    assert {type(envelope.message) for envelope in played.sent} == {KeyContribution, Confirmation}
    assert not any(envelope.receiver == SERVER for envelope in played.sent)


@pytest.mark.parametrize("membership", ["decoy", "counted"])
def test_parties_in_different_runs_refuse_each_other(membership, small_study, stage):
    study = small_study(membership, 2)
    played = stage(study, runs={"org0": "2026-a", "org1": "2026-b"}).play()
    assert_both_refuse(played, "hold different run keys, studies or versions of splitmeans")


def test_parties_in_the_same_run_of_any_name_agree(decoy, stage):
    played = stage(decoy, runs={"org0": "2026-a", "org1": "2026-a"}).play()
    assert played.errors == {}
    assert {type(state) for state in played.states.values()} == {party_states.Finished}


@pytest.mark.parametrize("membership", ["decoy", "counted"])
def test_parties_with_different_plans_refuse_each_other(
    membership, small_study, stage, monkeypatch
):
    """As if one party's version computed other noise from the same study."""
    study = small_study(membership, 2)
    played = stage(study)
    speaker = party_node._plan

    def first_plan(session: Session, released: Any = ()) -> Any:
        plan = speaker(session, released)
        if session.party == "org1":
            return dataclasses.replace(plan, grid_method="another")
        return plan

    monkeypatch.setattr(party_node, "_plan", first_plan)
    played.play()
    assert_both_refuse(played, "hold different run keys, studies or versions of splitmeans")


def test_parties_with_different_studies_refuse_each_other(decoy, small_tables, stage):
    other = dataclasses.replace(decoy, budget=Budget(epsilon=5, delta=1e-4))
    played, strange = stage(decoy), stage(other)
    # The second party is in the other study; contributions do not show it.
    played.states["org1"] = strange.states["org1"]
    played.play()
    assert_both_refuse(played, "hold different run keys, studies or versions of splitmeans")
