"""What parties confirm to each other is bound to key, study, run, plan, users and speaker."""

import dataclasses
import hashlib
import hmac
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from splitmeans.errors import ParameterError
from splitmeans.kernels.siphash import hash_ids
from splitmeans.party import node as party_node
from splitmeans.party.confirm import confirmation, plan_confirmation, user_set_digest
from splitmeans.party.id_folds import FOLDS
from splitmeans.party.table import prepare_table
from splitmeans.plan import make_plan
from splitmeans.study import Budget, IdRules, Study
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


# ---- why user sets differ ----


WRITTEN = {
    "trimmed": (lambda i: f"u{i}", lambda i: f"u{i}\u00a0", 'set ids.type = "text"'),
    "number": (lambda i: f"{i}", lambda i: f"{i:06d}", 'set ids.type = "integer"'),
    "uuid": (
        lambda i: f"{i:08x}-0000-4000-8000-00000000000A",
        lambda i: f"{i:08x}00004000800000000000000a",
        'set ids.type = "uuid"',
    ),
    "case": (lambda i: f"u-{i}", lambda i: f"U-{i}", "write them in one case"),
    "look": (lambda i: f"u{i}x", lambda i: f"u{i}\u200bx", "characters that look alike"),
    "punctuation": (lambda i: f"u-{i}", lambda i: f"U/{i}", "only letters and digits count"),
    "other users": (lambda i: f"u{i}", lambda i: f"u{i + 1}", "more than the way ids are written"),
}


@pytest.mark.parametrize(("bank", "shop", "advice"), WRITTEN.values(), ids=WRITTEN)
def test_parties_are_told_how_their_ids_would_agree(bank, shop, advice, small_study, stage):
    study = small_study("decoy", 2, ids=IdRules(explain_mismatch=True))
    rows = np.random.default_rng(1).uniform(0, 100, (40, 2))
    tables = [
        prepare_table(party, rows, ids=[write(number) for number in range(40)])
        for party, write in zip(study.parties, (bank, shop), strict=True)
    ]
    played = stage(study, tables=tables).play()
    assert_both_refuse(played, "hold different users")
    assert all(advice in error for error in played.errors.values())


def test_without_the_setting_the_error_says_how_to_find_out(decoy, stage):
    rows = np.random.default_rng(1).uniform(0, 100, (40, 2))
    tables = [
        prepare_table(party, rows, ids=[f"{number:0{width}d}" for number in range(40)])
        for party, width in zip(decoy.parties, (1, 4), strict=True)
    ]
    played = stage(decoy, tables=tables).play()
    assert_both_refuse(played, "ids.explain_mismatch = true")
    words = [envelope.message for envelope in played.sent]
    assert all(not word.folded_checks for word in words if isinstance(word, Confirmation))


def test_with_the_setting_equal_users_agree(small_study, stage):
    study = small_study("decoy", 2, ids=IdRules(explain_mismatch=True))
    played = stage(study).play()
    assert played.errors == {}
    assert {type(state) for state in played.states.values()} == {party_node.Finished}


def test_folded_checks_are_keyed_digests_of_all_users_in_each_form(small_study):
    """Computed here once more from the description alone."""
    study = small_study("decoy", 2, ids=IdRules(explain_mismatch=True))
    rows = np.zeros((3, 2))
    table = prepare_table(study.parties[0], rows, ids=["007", " 8", "X"])
    users = user_set_digest(study, table, run_key=KEY)
    assert len(users) == 32 * (1 + len(FOLDS))
    assert users[:32] == user_set_digest(small_study("decoy", 2), table, run_key=KEY)
    for at, (name, ids) in enumerate(
        [
            ("trimmed", ["007", "8", "X"]),
            ("number", ["7", "8", "X"]),
            ("case", ["007", "8", "x"]),
            ("uuid", ["007", "8", "x"]),
            ("look", ["007", "8", "X"]),
            ("letters-and-digits", ["7", "8", "x"]),
        ]
    ):
        tags = hash_ids(keys.subkey(KEY, keys.FOLDED_ORDER), pa.array(ids, pa.large_string()))
        order = np.lexsort((tags[:, 1], tags[:, 0]))
        text = name.encode() + b"\n" + tags[order].tobytes()
        expected = hmac.digest(keys.subkey(KEY, keys.FOLDED_SET), text, "sha256")
        assert users[32 * (at + 1) : 32 * (at + 2)] == expected, name
    session = Session(study=study, run="1", party="org0")
    plan = make_plan(study)
    word = confirmation(session, "org1", users, run_key=KEY, plan=plan)
    key = keys.subkey(KEY, keys.CONFIRM)
    bound = session.transcript(plan) + b"org1"
    assert word.folded_checks == b"".join(
        hmac.digest(key, b"folded users\n" + users[at : at + 32] + bound, "sha256")
        for at in range(32, len(users), 32)
    )


def test_partial_user_sets_send_no_digest_in_any_form(small_study, stage):
    """Fellow parties hold the key, and could test guesses with one."""
    study = small_study("decoy", 2, user_sets="partial", ids=IdRules(type="text"))
    played = stage(study).play(until=party_node.Prepared)
    words = [envelope.message for envelope in played.sent]
    plan = make_plan(study)
    for word in words:
        if isinstance(word, Confirmation):
            assert word.folded_checks == b""
    session = Session(study=study, run="1", party="org0")
    run_key = played.states["org0"].run_key
    # What was sent is the digest of no users at all.
    assert confirmation(session, "org0", b"", run_key=run_key, plan=plan) in words
