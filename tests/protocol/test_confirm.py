"""What parties confirm to each other is bound to key, study, run, plan, users and speaker."""

import dataclasses
import hashlib
import hmac
from typing import Any

import numpy as np
import pytest

from splitmeans.errors import ParameterError
from splitmeans.party import node as party_node
from splitmeans.party.confirm import confirmation, plan_confirmation, user_set_digest
from splitmeans.party.table import prepare_table
from splitmeans.plan import make_plan
from splitmeans.study import Budget, Study
from splitmeans.wire import keys
from splitmeans.wire.envelope import SERVER, Session
from splitmeans.wire.messages import Confirmation, KeyContribution

KEY, USERS = b"\x05" * 32, b"\x06" * 32


@pytest.fixture
def decoy(small_study: Any) -> Study:
    return small_study("decoy", 2)


@pytest.fixture
def session(decoy: Study) -> Session:
    return Session(study=decoy, run="1", party="org0")


def test_a_transcript_is_the_hash_of_study_run_and_plan(session):
    plan = make_plan(session.study)
    lines = ["splitmeans transcript 1", session.study.hash, "1", plan.fingerprint, ""]
    expected = hashlib.sha256("\n".join(lines).encode()).digest()
    assert session.transcript(plan) == expected
    # Every party has the same one.
    assert dataclasses.replace(session, party="org1").transcript(plan) == expected


def test_a_session_knows_the_others_and_refuses_a_bad_run_name(session):
    assert session.others == ("org1",)
    with pytest.raises(ParameterError, match="run must be 1 to 40 lower-case letters"):
        dataclasses.replace(session, run="Run 1")


def test_a_confirmation_is_two_keyed_digests(session):
    """Computed here once more from the description alone."""
    plan = make_plan(session.study)
    word = confirmation(session, "org1", USERS, run_key=KEY, plan=plan)
    key = keys.subkey(KEY, keys.CONFIRM)
    text = session.transcript(plan) + b"org1"
    assert word.key_check == hmac.digest(key, b"key\n" + text, "sha256")
    assert word.user_check == hmac.digest(key, b"users\n" + USERS + text, "sha256")
    later = plan_confirmation(session, "org1", run_key=KEY, plan=plan)
    assert later.plan_check == hmac.digest(key, b"plan None\n" + text, "sha256")


def test_a_confirmation_changes_with_everything_it_is_bound_to(session):
    plan = make_plan(session.study)
    other_study = dataclasses.replace(session.study, name="other")
    other_plan = dataclasses.replace(plan, n_local_clusters=(4, 5))
    words = [
        confirmation(session, "org1", USERS, run_key=KEY, plan=plan),
        confirmation(session, "org0", USERS, run_key=KEY, plan=plan),
        confirmation(session, "org1", USERS, run_key=bytes(32), plan=plan),
        confirmation(session, "org1", USERS, run_key=KEY, plan=other_plan),
        confirmation(dataclasses.replace(session, run="2"), "org1", USERS, run_key=KEY, plan=plan),
        confirmation(
            dataclasses.replace(session, study=other_study), "org1", USERS, run_key=KEY, plan=plan
        ),
    ]
    assert len({word.key_check for word in words}) == len(words)
    assert len({word.user_check for word in words}) == len(words)
    other_users = confirmation(session, "org1", bytes(32), run_key=KEY, plan=plan)
    assert other_users.key_check == words[0].key_check
    assert other_users.user_check not in {word.user_check for word in words}


def test_user_sets_are_compared_whatever_the_order_of_rows(decoy, small_study):
    party = decoy.parties[0]
    ids = np.array([f"user-{number}" for number in range(20)])
    rows = np.random.default_rng(1).uniform(0, 100, (20, 2))
    order = np.random.default_rng(2).permutation(20)
    table = prepare_table(party, rows, ids=ids)
    digest = user_set_digest(decoy, table, run_key=KEY)
    assert len(digest) == 32
    shuffled = prepare_table(party, rows[order] / 2, ids=ids[order])
    assert user_set_digest(decoy, shuffled, run_key=KEY) == digest
    fewer = prepare_table(party, rows[:19], ids=ids[:19])
    assert user_set_digest(decoy, fewer, run_key=KEY) != digest
    assert user_set_digest(decoy, table, run_key=bytes(32)) != digest
    partial = small_study("decoy", 2, user_sets="partial")
    assert user_set_digest(partial, table, run_key=KEY) == b""


# ---- parties that do not agree ----


def assert_both_refuse(played: Any, text: str) -> None:
    assert set(played.errors) == set(played.study.party_names)
    assert all(text in error for error in played.errors.values())
    assert {type(envelope.message) for envelope in played.sent} == {KeyContribution, Confirmation}
    assert not any(envelope.receiver == SERVER for envelope in played.sent)


@pytest.mark.parametrize("membership", ["decoy", "independent"])
def test_parties_in_different_runs_refuse_each_other(membership, small_study, stage):
    study = small_study(membership, 2)
    played = stage(study, runs={"org0": "2026-a", "org1": "2026-b"}).play()
    assert_both_refuse(played, "hold different run keys, studies or versions of splitmeans")


def test_parties_in_the_same_run_of_any_name_agree(decoy, stage):
    played = stage(decoy, runs={"org0": "2026-a", "org1": "2026-a"}).play()
    assert played.errors == {}
    assert {type(state) for state in played.states.values()} == {party_node.Finished}


@pytest.mark.parametrize("membership", ["decoy", "independent"])
def test_parties_with_different_plans_refuse_each_other(
    membership, small_study, stage, monkeypatch
):
    """As if one party's version computed other noise from the same study."""
    study = small_study(membership, 2)
    played = stage(study)
    speaker = party_node._first_plan

    def first_plan(session: Session) -> Any:
        plan = speaker(session)
        if session.party == "org1":
            return dataclasses.replace(plan, count_scale=123.0)
        return plan

    monkeypatch.setattr(party_node, "_first_plan", first_plan)
    played.play()
    assert_both_refuse(played, "hold different run keys, studies or versions of splitmeans")


def test_parties_with_different_studies_refuse_each_other(decoy, small_tables, stage):
    other = dataclasses.replace(decoy, budget=Budget(epsilon=5, delta=1e-4))
    played, strange = stage(decoy), stage(other)
    # The second party is in the other study; contributions do not show it.
    played.states["org1"] = strange.states["org1"]
    played.play()
    assert_both_refuse(played, "hold different run keys, studies or versions of splitmeans")
