"""A party refuses what does not fit: words that are not another's, and plans that are not its own.

Which message fits which state is in test_expects.py, the user count in test_count.py.
"""

import dataclasses
from typing import Any

import numpy as np
import pytest

from splitmeans.errors import ParameterError, ProtocolError
from splitmeans.party import node as party_node
from splitmeans.party import states as party_states
from splitmeans.plan.settle import make_plan
from splitmeans.privacy.noise import InsecureSeededNoise
from splitmeans.study import Budget, Study
from splitmeans.table.prepare import prepare_table
from splitmeans.wire.envelope import PROTOCOL, Envelope
from splitmeans.wire.messages import (
    Confirmation,
    KeyContribution,
    PublishedResult,
    Ready,
    RunPlan,
)
from splitmeans.wire.slot import SERVER

OWN = bytes([PROTOCOL])


@pytest.fixture
def decoy(small_study: Any) -> Study:
    return small_study("decoy", 2)


def step_party(state: Any, sender: str, message: Any) -> Any:
    envelope = Envelope(sender=sender, receiver=state.session.party, message=message)
    return party_node.step(
        state, envelope, noise=InsecureSeededNoise(1), rng=np.random.default_rng(1)
    )


@pytest.fixture
def joined(small_tables: Any) -> Any:
    def join(study: Study) -> Any:
        table = small_tables(study)[0]
        return party_node.join(study, table, noise=InsecureSeededNoise(1))[0]

    return join


def words_of(state: Any, sender: str) -> Confirmation:
    """What the party waits to hear."""
    return state.awaited[sender]


def keyed(state: Any) -> tuple[Any, list[Envelope]]:
    """Give a party the contributions of all others."""
    sent: list[Envelope] = []
    for other in state.session.others:
        state, sent = step_party(state, other, KeyContribution(secret=bytes(32)))
    assert isinstance(state, party_states.Keyed)
    return state, sent


def proposal_of(study: Study, **changes: Any) -> RunPlan:
    plan = make_plan(study)
    honest = RunPlan(
        n_local_clusters=np.array(plan.n_local_clusters),
        released=np.array([], dtype=np.int64),
        fingerprint=plan.fingerprint,
        statement="",
    )
    return dataclasses.replace(honest, **changes)


# ---- joining ----


def test_joining_sends_one_fresh_contribution_to_each_other_party(small_study, small_tables):
    study = small_study("decoy", 3)
    table = small_tables(study)[1]
    secrets = set()
    for seed in (1, 2):
        state, sent = party_node.join(study, table, noise=InsecureSeededNoise(seed))
        assert isinstance(state, party_states.Joined)
        assert [(envelope.sender, envelope.receiver) for envelope in sent] == [
            ("org1", "org0"),
            ("org1", "org2"),
        ]
        (secret,) = {envelope.message.secret for envelope in sent}
        assert len(secret) == 32
        secrets.add(secret)
    assert len(secrets) == 2


def test_a_table_of_a_stranger_cannot_join(decoy, small_tables):
    table = dataclasses.replace(small_tables(decoy)[0], party="org9")
    with pytest.raises(ParameterError, match="has no party 'org9'"):
        party_node.join(decoy, table, noise=InsecureSeededNoise(1))


@pytest.mark.parametrize("run", ["", "Run 1", "-1", "a" * 41, "one\n"])
def test_a_run_needs_a_name_that_can_be_bound_to(run, decoy, small_tables):
    with pytest.raises(ParameterError, match="run must be 1 to 40 lower-case letters"):
        party_node.join(decoy, small_tables(decoy)[0], run=run, noise=InsecureSeededNoise(1))


# ---- contributions and confirmations ----


def test_a_second_key_contribution_is_refused(small_study, joined):
    state = joined(small_study("decoy", 3))
    state, _ = step_party(state, "org1", KeyContribution(secret=bytes(32)))
    with pytest.raises(
        ProtocolError, match="in state Joined cannot take KeyContribution from 'org1'"
    ):
        step_party(state, "org1", KeyContribution(secret=bytes(range(32))))


def test_a_short_key_contribution_is_refused(decoy, joined):
    with pytest.raises(ProtocolError, match=r"contribution of 'org1' must be 32 bytes, got 8"):
        step_party(joined(decoy), "org1", KeyContribution(secret=bytes(8)))


def test_a_confirmation_before_the_key_and_a_second_one_are_refused(small_study, joined):
    study = small_study("decoy", 3)
    early = joined(study)
    state, _ = keyed(early)
    word = words_of(state, "org1")
    with pytest.raises(ProtocolError, match="in state Joined cannot take Confirmation from 'org1'"):
        step_party(early, "org1", word)
    state, _ = step_party(state, "org1", word)
    assert isinstance(state, party_states.Keyed)
    with pytest.raises(ProtocolError, match="in state Keyed cannot take Confirmation from 'org1'"):
        step_party(state, "org1", word)


def test_own_words_sent_back_are_not_taken_for_anothers(decoy, joined):
    state, sent = keyed(joined(decoy))
    with pytest.raises(ProtocolError, match="different run keys, studies or versions"):
        step_party(state, "org1", sent[0].message)


def test_a_third_partys_words_are_not_taken_for_anothers(small_study, joined):
    study = small_study("decoy", 3)
    state, _ = keyed(joined(study))
    word = words_of(state, "org2")
    with pytest.raises(ProtocolError, match="'org0' and 'org1' hold different run keys"):
        step_party(state, "org1", word)
    state, _ = step_party(state, "org2", word)
    assert set(state.awaited) == {"org1"}


def test_confirmations_say_nothing_about_users(small_study):
    """A fellow party has the key: a digest of the ids would let it test guesses."""
    study = small_study("decoy", 2)
    words = set()
    for n in (50, 51):
        table = prepare_table(study.parties[0], np.zeros((n, 2)), ids=np.arange(n))
        state, _ = party_node.join(study, table, noise=InsecureSeededNoise(1))
        _, sent = keyed(state)
        words.add((sent[0].message.key_check, sent[0].message.shared_check))
    assert len(words) == 1


def test_another_run_key_is_noticed(small_study, joined):
    state, _ = keyed(joined(small_study("decoy", 3)))
    with pytest.raises(ProtocolError, match="someone changed messages on their way"):
        step_party(state, "org1", Confirmation(key_check=b"y", shared_check=b""))


def test_a_changed_contribution_is_noticed_by_both_sides(decoy, stage):
    """Whoever carries messages and changes one: the two parties end with different keys."""

    def change(envelope: Envelope) -> Envelope:
        if isinstance(envelope.message, KeyContribution) and envelope.receiver == "org1":
            changed = dataclasses.replace(envelope.message, secret=b"\x07" * 32)
            return dataclasses.replace(envelope, message=changed)
        return envelope

    played = stage(decoy, alter=change).play()
    assert set(played.errors) == {"org0", "org1"}
    assert all("hold different run keys" in text for text in played.errors.values())
    assert played.kinds_from("org0", to=SERVER) == played.kinds_from("org1", to=SERVER) == []


def test_a_changed_confirmation_is_noticed_in_each_of_its_fields(decoy, stage):
    for field, text in (
        ("key_check", "different run keys"),
        ("shared_check", "different decoys or tags"),
    ):

        def change(envelope: Envelope, field: str = field) -> Envelope:
            if isinstance(envelope.message, Confirmation) and envelope.receiver == "org1":
                changed = dataclasses.replace(envelope.message, **{field: bytes(32)})
                return dataclasses.replace(envelope, message=changed)
            return envelope

        played = stage(decoy, alter=change).play()
        assert text in played.errors["org1"]
        assert played.kinds_from("org1", to=SERVER) == []


# ---- the server's plan ----


@pytest.fixture
def prepared(stage: Any) -> Any:
    def of(study: Study) -> Any:
        return stage(study).play(until=party_states.Prepared)

    return of


@pytest.mark.parametrize("membership", ["decoy", "counted"])
def test_prepared_parties_have_told_the_server_that_they_are_ready(
    membership, small_study, prepared
):
    study = small_study(membership, 3)
    ready = prepared(study)
    for party in study.party_names:
        assert ready.message(party, SERVER, Ready) == Ready(study_hash=study.hash)


def test_a_message_in_the_wrong_state_names_both(decoy, joined, stage):
    played = stage(decoy).play()
    plan, result = (played.message(SERVER, "org0", kind) for kind in (RunPlan, PublishedResult))
    with pytest.raises(
        ProtocolError, match="party 'org0' in state Joined cannot take RunPlan from 'server'"
    ):
        step_party(joined(decoy), SERVER, plan)
    ready = stage(decoy).play(until=party_states.Prepared).states["org0"]
    with pytest.raises(
        ProtocolError, match="in state Prepared cannot take KeyContribution from 'org1'"
    ):
        step_party(ready, "org1", KeyContribution(secret=bytes(32)))
    with pytest.raises(ProtocolError, match="in state Prepared cannot take Ready from 'server'"):
        step_party(ready, SERVER, Ready(study_hash=decoy.hash))
    finished = played.states["org0"]
    with pytest.raises(
        ProtocolError, match="in state Finished cannot take PublishedResult from 'server'"
    ):
        step_party(finished, SERVER, result)


@pytest.mark.parametrize("clusters", [(4, 5), (4,), (2, 2)])
def test_a_plan_with_other_local_clusters_is_refused(clusters, decoy, prepared):
    ready = prepared(decoy).states["org0"]
    with pytest.raises(ProtocolError, match=r"plan has n_local_clusters=.*the study gives \(4, 4"):
        step_party(ready, SERVER, proposal_of(decoy, n_local_clusters=np.array(clusters)))


def test_a_plan_with_another_fingerprint_is_refused(decoy, prepared):
    ready = prepared(decoy).states["org0"]
    cheaper = dataclasses.replace(decoy, budget=Budget(epsilon=8, delta=1e-4))
    other = make_plan(cheaper).fingerprint
    with pytest.raises(ProtocolError, match="do both run the same version of splitmeans"):
        step_party(ready, SERVER, proposal_of(decoy, fingerprint=other))


def test_a_party_releases_once(decoy, prepared):
    ready = prepared(decoy).states["org0"]
    released, sent = step_party(ready, SERVER, proposal_of(decoy))
    assert [(item.receiver, type(item.message).__name__) for item in sent] == [
        (SERVER, "PartyRelease")
    ]
    with pytest.raises(ProtocolError, match="in state Released cannot take RunPlan from 'server'"):
        step_party(released, SERVER, proposal_of(decoy))
