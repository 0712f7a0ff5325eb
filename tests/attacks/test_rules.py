"""Each rule about messages, plans and retries (docs/concepts/rules.md) has a test of its number.

Where an attack already shows a rule, the test here names that attack, and fails if it is gone. R4,
R5, R7 and R13 to R15 are about noise and labels inside a release; their tests are elsewhere.
"""

import ast
import dataclasses
import inspect
import itertools
import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from splitmeans.errors import DataError, MailboxError, MessageExists, ProtocolError
from splitmeans.membership.decoy.layout import high_bits_of
from splitmeans.membership.decoy.tag_lists import bitmap_size
from splitmeans.party.confirm import transcript
from splitmeans.party.session import Session
from splitmeans.plan.facts import PrivacyFacts
from splitmeans.plan.settle import make_plan
from splitmeans.privacy.keyed_noise import KeyedNoise
from splitmeans.privacy.noise import SecureNoise
from splitmeans.run import party as party_driver
from splitmeans.run import server as server_driver
from splitmeans.run.party_run import PartyRun
from splitmeans.server import node as server_node
from splitmeans.study import Budget, Study
from splitmeans.study.id_rules import IdRules
from splitmeans.table.prepare import prepare_table
from splitmeans.wire import keys
from splitmeans.wire.messages import PartyRelease, PublishedResult
from splitmeans.wire.slot import SERVER
from tests.scene import KEYS, N_USERS, keyed_study, with_key

from .harness import World
from .view import ViewError

HERE = Path(__file__).parent


@cache
def defined_in(file: Path) -> frozenset[str]:
    tree = ast.parse(file.read_text())
    return frozenset(item.name for item in tree.body if isinstance(item, ast.FunctionDef))


def shown_by(*names: str) -> None:
    """Assert that attacks of these names exist."""
    known = frozenset().union(*(defined_in(file) for file in HERE.glob("test_*.py")))
    assert set(names) <= known, set(names) - known


def test_r1_every_use_of_the_run_key_has_a_subkey_of_its_own():
    groups = ((), (0, 1), (0, 2), (1, 2), (0, 1, 2), (0, 12), (1, 0))
    subkeys = {
        keys.subkey(bytes(32), label, group=group)
        for label, group in itertools.product(keys._LABELS, groups)
    }
    assert len(subkeys) == len(keys._LABELS) * len(groups)


def test_r2_the_length_of_records_follows_from_their_number(stage):
    world = stage("approved", keyed_study())
    assert world.play("bank", "shop") == {}
    world.ask_for_releases()
    assert world.play("bank", "shop") == {}
    membership = world.message("bank", SERVER, PartyRelease).membership
    records = int(membership.lengths.sum())
    high_bits = high_bits_of(make_plan(world.study).membership, make_plan(world.study))
    assert membership.lows.shape == (records,)
    assert len(membership.bitmaps) == bitmap_size(records, high_bits=high_bits)
    assert len(membership.labels) == -(-records * 2 // 8)  # 4 clusters: two bits each


def test_r3_the_hash_of_the_noise_table_is_in_the_fingerprint(study, monkeypatch):
    plan = make_plan(study)
    before = plan.fingerprint
    monkeypatch.setattr(type(plan.membership), "table_hash", "another table")
    assert plan.fingerprint != before
    shown_by("test_plan_with_other_noise")


def test_r6_users_need_not_be_the_same_and_nothing_is_compared(stage):
    world = stage("approved")
    ids = [f"user-{number}" for number in range(1, N_USERS + 1)]
    rows = np.random.default_rng(1).uniform(0, 100, (N_USERS, 2))
    world.tables["shop"] = prepare_table(world.study.party("shop"), rows, ids=ids)
    world.ask_for_releases()
    assert world.play("bank", "shop") == {}
    shown_by("test_users_changed_between_two_starts")


def test_r8_every_fact_of_the_study_is_in_the_plan_that_all_confirm(study):
    plan = make_plan(study)
    session = Session(study=study, run="1", party="bank")
    changed: list[Study] = [
        dataclasses.replace(study, name="another"),
        dataclasses.replace(study, n_clusters=2),
        dataclasses.replace(study, parties=study.parties[::-1]),
        with_key(study, "shop", KEYS["mallory"]),
        dataclasses.replace(study, budget=Budget(epsilon=4, delta=2e-4)),
        dataclasses.replace(study, ids=IdRules(type="text")),
        dataclasses.replace(study, expected_users=400),
    ]
    # With the plan of the unchanged study: the study alone must make the difference.
    transcripts = {transcript(dataclasses.replace(session, study=other), plan) for other in changed}
    own = transcript(session, plan)
    assert len(transcripts) == len(changed)
    assert own not in transcripts
    assert transcript(dataclasses.replace(session, run="2"), plan) != own
    # The version of the protocol and how it derives things are in it as well.
    assert session.transcript(plan, derivation=bytes(32)) != own


def test_r8_the_party_computes_plan_and_cost_itself(study):
    report = PrivacyFacts.for_study(study)
    assert report.epsilon <= study.budget.epsilon
    shown_by(
        "test_plan_with_other_local_clusters",
        "test_plan_for_other_parties",
        "test_plan_with_other_noise",
        "test_plan_with_another_count",
        "test_different_plans_to_different_parties",
    )


def test_r9_identities_are_pinned_by_the_study(study):
    """An exact list, in the study's hash; who is not in it has no slot and no key."""
    assert set(study.public_keys) == {"bank", "shop", SERVER}
    for name in ("bank", "shop"):
        assert with_key(study, name, KEYS["mallory"]).hash != study.hash
    shown_by(
        "test_swapped_key_in_one_partys_study",
        "test_swapped_key_that_a_careless_party_approved",
        "test_server_key_as_a_party",
        "test_server_adds_itself_as_a_third_party",
        "test_man_in_the_middle_for_everyone",
        "test_other_key_under_a_partys_name",
        "test_study_changed_after_approval",
    )


def test_r10_everyone_confirms_before_anything_is_released():
    shown_by(
        "test_plan_before_all_have_confirmed",
        "test_one_confirmation_withheld",
        "test_second_confirmation_withheld",
        "test_confirmation_made_by_the_server",
        "test_words_reflected_to_their_sender",
        "test_twin_that_releases_unconfirmed_is_caught",
    )


def test_r10_the_run_key_is_erased_with_the_release():
    shown_by("test_run_key_found_on_disk_after_the_release")


def test_r11_what_is_sent_again_is_what_was_stored():
    shown_by(
        "test_release_lost_and_asked_for_again",
        "test_release_deleted_after_it_was_sent",
        "test_stored_release_changed_on_disk",
        "test_twin_that_recomputes_a_release_is_caught",
    )


def test_r11_lost_state_is_a_dead_run():
    shown_by(
        "test_failed_run_asked_again",
        "test_home_restored_from_a_backup",
        "test_home_restored_from_a_backup_behind_a_relay",
        "test_party_started_from_a_second_home",
    )


def test_r11_an_aborted_run_is_charged_once_anything_was_released(stage):
    world = stage("released")
    world.forge("bank", b"no result", kind=PublishedResult)
    with pytest.raises(ProtocolError, match="does not start with the mark"):
        world.visit("bank")
    assert world.stage_of("bank") == "failed"
    assert world.charged("bank") == world.study.budget.epsilon
    early = stage("prepared")
    early.forge("bank", early.plan_message(fingerprint=""))
    with pytest.raises(ProtocolError, match="noise parameters"):
        early.visit("bank")
    assert early.charged("bank") == 0


def test_r12_data_that_breaks_a_rule_is_refused_before_joining(stage):
    world = stage("approved")

    def broken() -> Any:
        raise DataError("the table has a user twice")

    with pytest.raises(DataError, match="user twice"):
        world.visit("bank", open_table=broken)
    assert world.box.sent == []
    assert world.saved("bank") is None


def test_r12_data_is_checked_again_before_a_restarted_party_is_seen(stage):
    """Nothing is sent and nothing asked for before the table has passed its checks."""
    world = stage("approved")
    world.visit("bank")
    asked: list[str] = []
    before = list(world.box.sent)

    def broken() -> Any:
        raise DataError("the table has a user twice")

    world.box.on_get = lambda path, data: asked.append(path) or data  # type: ignore[func-returns-value]
    with pytest.raises(DataError, match="user twice"):
        world.visit("bank", open_table=broken)
    assert (world.box.sent, asked) == (before, [])


def test_r12_what_may_keep_a_party_away_is_asked_before_joining_only(stage):
    """A look at the data may end in staying away, but a run that was joined goes on."""
    world = stage("approved")

    def stay_away() -> None:
        raise DataError("mostly outside the bounds")

    with pytest.raises(DataError, match="mostly outside"):
        world.visit("bank", before_joining=stay_away)
    assert (world.box.sent, world.saved("bank")) == ([], None)
    world.visit("bank")
    assert not world.visit("bank", before_joining=stay_away)


def test_r12_what_the_server_sees_before_the_release_does_not_depend_on_data(stage):
    """Kinds and sizes are the same for other rows of the same users."""
    shapes = []
    for seed in (1, 2):
        world = stage("approved")
        ids = [f"user-{number}" for number in range(N_USERS)]
        for name in ("bank", "shop"):
            rows = np.random.default_rng(seed).uniform(0, 100, (N_USERS, 2))
            world.tables[name] = prepare_table(world.study.party(name), rows, ids=ids)
        assert world.play("bank", "shop") == {}
        shapes.append([(path, len(data)) for path, data in world.box.sent])
    assert shapes[0] == shapes[1]


def test_r16_runs_between_organisations_use_secure_noise_only(stage, monkeypatch):
    """The drivers have no way to be given another source."""
    for function in (party_driver.run_party, server_driver.run_server):
        assert "noise" not in inspect.signature(function).parameters
    assert "noise" not in {field.name for field in dataclasses.fields(PartyRun)}
    used: list[type] = []
    step = server_node.step

    def watched(*message: Any, noise: Any, **options: Any) -> Any:
        assert noise.secure
        used.append(type(noise))
        return step(*message, noise=noise, **options)

    monkeypatch.setattr(server_driver.node, "step", watched)
    assert stage("released").play() == {}
    assert set(used) == {SecureNoise, KeyedNoise}


def results_of(world: World) -> dict[str, list[bytes]]:
    """All results that the server ever sent, as their contents, by receiver."""
    found: dict[str, list[bytes]] = {}
    for name in ("bank", "shop"):
        path = world.path(SERVER, name, PublishedResult)
        for slot, data in world.box.sent:
            if slot == path:
                result = world.read(SERVER, name, PublishedResult, data)
                found.setdefault(name, []).append(result.weights.tobytes())
    return found


def check_one_result(world: World) -> None:
    """Raise `ViewError` if the server drew its own noise more than once."""
    different = {content for versions in results_of(world).values() for content in versions}
    if len(different) != 1:
        raise ViewError(f"the server published {len(different)} different results")


def stop_at_the_second_result(world: World) -> None:
    """The server is stopped when one party has the result and the other not; then it goes on."""
    stopped: list[str] = []

    def put(path: str, data: bytes) -> bytes | None:
        if path == world.path(SERVER, "shop", PublishedResult) and not stopped:
            stopped.append(path)
            raise MailboxError("the connection broke")
        return data

    world.box.on_put = put
    with pytest.raises(MailboxError, match="the connection broke"):
        world.visit(SERVER)
    world.visit(SERVER)


def test_r17_the_servers_noise_is_drawn_once_and_stored_before_publication(stage):
    world = stage("released")
    stop_at_the_second_result(world)
    assert set(results_of(world)) == {"bank", "shop"}
    check_one_result(world)
    assert world.play() == {}
    shown_by("test_same_results_have_the_same_hash")


def publish_before_storing(what: Any, desk: Any, state: Any, received: Any) -> Any:
    """A broken twin: sends the result first, so that after a stop its noise is drawn again."""
    next_state, envelopes = server_node.step(
        state, received.envelope, noise=SecureNoise(), rng=np.random.default_rng(1)
    )
    if isinstance(next_state, server_node.Done):
        for message in desk.seal(envelopes):
            desk.post.send(message.path, message.data)
    return next_state


def test_r17_twin_that_publishes_before_storing_is_caught(stage, monkeypatch):
    monkeypatch.setattr(server_driver, "_step", publish_before_storing)
    world = stage("released")
    with pytest.raises(MessageExists):  # the party's slot keeps the first result
        stop_at_the_second_result(world)
    with pytest.raises(ViewError, match="2 different results"):
        check_one_result(world)


def test_r18_a_run_key_is_never_used_twice(stage):
    """Another run of the same parties on the same study has another key."""
    found = set()
    world = stage("prepared")
    world.greet(SERVER, run="2")
    assert world.play("bank", "shop", run="2") == {}
    for run in ("1", "2"):
        saved = world.saved("bank", run=run)
        assert saved is not None
        assert saved.state is not None
        found.add(json.loads(saved.state)["run_key"])
    assert len(found) == 2
    shown_by("test_contribution_of_an_older_run", "test_whole_old_run_under_a_new_name")
