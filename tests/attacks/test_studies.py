"""Attacks on what was agreed: keys, parties, budgets and approvals (rules R8, R9)."""

import dataclasses
from typing import Any

import pytest
from typer.testing import CliRunner

from splitmeans.cli import app
from splitmeans.errors import ParameterError, StudyError
from splitmeans.study import Budget, Study
from splitmeans.study.id_rules import IdRules
from splitmeans.wire.envelope import PROTOCOL
from splitmeans.wire.identity import spoken
from splitmeans.wire.messages import Confirmation, KeyContribution, Ready
from splitmeans.wire.slot import SERVER
from tests.scene import KEYS, keyed_study, with_key

OWN = bytes([PROTOCOL])

RICHER = Budget(epsilon=8, delta=1e-4)


def test_swapped_key_in_one_partys_study(stage, study):
    """The server hands the bank a study file in which the shop's key is its own.

    Gain: the bank would seal its contribution to the server, which then knows the run key.
    Fails: keys are part of the study's hash, and the bank approved another hash. Nothing is sent.
    """
    world = stage("approved")
    swapped = with_key(study, "shop", KEYS["mallory"])
    with pytest.raises(StudyError, match="is not approved"):
        world.visit("bank", study=swapped)
    assert world.box.sent == []


def test_swapped_key_that_a_careless_party_approved(stage, study):
    """As before, and the bank approves the swapped file without comparing digits.

    Gain: the server plays the shop towards the bank, and the bank towards nobody.
    Fails: the shop's study has another hash, so the two never find each other's messages, and those
    that the server moves over are not for this study. The shop's data is safe whatever the bank
    does. The bank's own is as safe as its owner was careful: it runs with whom it approved.
    """
    world = stage("joined")
    swapped = with_key(study, "shop", KEYS["mallory"])
    world.approve(swapped, by=["bank"])
    contribution = world.box.files[world.path("shop", "bank", KeyContribution)]
    world.visit("bank", study=swapped)
    world.box.files[world.path("shop", "bank", KeyContribution, study=swapped)] = contribution
    assert not world.visit("bank", study=swapped)
    assert world.stage_of("bank", study=swapped) == "Joined"
    assert not world.visit("shop")
    assert world.stage_of("shop") == "Keyed"
    assert world.releases("bank") == world.releases("shop") == {}


def test_server_key_as_a_party():
    """The server writes a study in which its own key stands for a party.

    Gain: a party gets the other parties' contributions, so it would own the run key.
    Fails: a study in which two participants have one key cannot even be loaded.
    """
    with pytest.raises(StudyError, match="must have different keys"):
        with_key(keyed_study(), "shop", KEYS[SERVER])


def test_server_adds_itself_as_a_third_party(stage, trio):
    """The server adds a party of its own, under a fresh key, to a study of two.

    Gain: contributions sealed to the new party make the run key known to the server.
    Fails: the list of parties is part of the hash that both have approved.
    """
    world = stage("approved")
    for name in ("bank", "shop"):
        with pytest.raises(StudyError, match="is not approved"):
            world.visit(name, study=trio)
    assert world.box.sent == []


def test_party_named_like_the_server():
    """The server writes a study with a party that is called "server".

    Gain: messages to the server and to that party would have the same slots.
    Fails: the name is reserved.
    """
    with pytest.raises(StudyError, match="must not be named 'server'"):
        dataclasses.replace(keyed_study().parties[0], name=SERVER)


def test_man_in_the_middle_for_everyone(study, tmp_path):
    """The server gives every party a study of its own, in which all other keys are the server's.

    Gain: it would be every party's only partner and own all run keys.
    Fails: the digits that people read to each other are those of different studies, and approving
    with the digits that the other side reads out is refused (R9).
    """
    for_bank = with_key(study, "shop", KEYS["mallory"])
    for_shop = with_key(study, "bank", KEYS["mallory"])
    assert spoken(for_bank.hash) != spoken(for_shop.hash)
    file = tmp_path / "study.toml"
    file.write_text(for_bank.to_toml())
    options = ["--home", str(tmp_path / "home"), "--digits", spoken(for_shop.hash)]
    result = CliRunner().invoke(app, ["study", "approve", str(file), *options])
    assert isinstance(result.exception, ParameterError)
    assert "which are not those you gave" in str(result.exception)


def test_names_that_hide_what_a_terminal_shows(study):
    """The server writes a study whose names move the cursor, to show other digits than its own.

    Gain: people would compare digits that are not those of the file.
    Fails: names must be printable, so no escape sequence or line break gets to a terminal.
    """
    for name in ("small\x1b[2K\rdigits", "bank\nhash", "shop\u202e"):
        with pytest.raises(StudyError, match="printable"):
            dataclasses.replace(study, name=name)
        with pytest.raises(StudyError, match="printable"):
            dataclasses.replace(study.parties[0], name=name)


def test_higher_budget_told_to_one_party(stage, study):
    """The server gives the bank a study with twice the epsilon; both approve theirs.

    Gain: the bank would add less noise, or parties would split a budget differently.
    Fails: the studies' hashes differ. Messages of one are refused in the other, so neither party
    ever holds a confirmation, and nothing is released.
    """
    world = stage("joined")
    richer = dataclasses.replace(study, budget=RICHER)
    world.approve(richer, by=["bank"])
    world.visit("bank", study=richer)
    for pair in (("bank", "shop"), ("shop", "bank")):
        for kind in (KeyContribution, Confirmation):
            for source, target in ((study, richer), (richer, study)):
                found = world.box.files.get(world.path(*pair, kind, study=source))
                if found is not None:
                    world.box.files.setdefault(world.path(*pair, kind, study=target), found)
    assert not world.visit("bank", study=richer)
    assert world.stage_of("bank", study=richer) == "Joined"
    assert world.releases("bank") == {}


def test_study_changed_after_approval(stage, study, tmp_path):
    """Someone edits the study file after it was approved, one value at a time.

    Gain: more budget, less noise, fewer checks, or a data set joined differently.
    Fails: every change gives another hash, which is not approved; nothing is sent.
    """
    world = stage("approved")
    changes: list[dict[str, Any]] = [
        {"budget": RICHER},
        {"n_local_clusters": 8},
        {"n_clusters": 4},
        {"ids": IdRules(type="text")},
        {"expected_users": 301},
        {"name": "segments 2"},
        {"server_key": KEYS["mallory"].public.to_text()},
    ]
    for change in changes:
        changed = dataclasses.replace(study, **change)
        assert Study.from_toml(changed.to_toml()).hash != study.hash
        with pytest.raises(StudyError, match="is not approved"):
            world.visit("bank", study=changed)
    assert world.box.sent == []


def test_no_approval(stage, study):
    """Someone starts the party with a study that its owner never saw.

    Gain: a release that nobody agreed to.
    Fails: without an approval in the home nothing is read and nothing is sent.
    """
    world = stage("approved")
    (world.root / "bank").rename(world.root / "elsewhere")
    with pytest.raises(StudyError, match="is not approved"):
        world.visit("bank")
    assert (world.box.sent, world.opened) == ([], [])


def test_other_key_under_a_partys_name(stage):
    """The server signs a contribution as "shop" with a key of its own.

    Gain: with a known contribution in place of the shop's it would know half of the run key.
    Fails: only the shop's pinned key counts. What it did not sign is ignored, and the shop's own
    contribution still gets through.
    """
    world = stage("joined")
    real = world.box.files[world.path("shop", "bank", KeyContribution)]
    for key in (KEYS["mallory"], KEYS[SERVER]):
        world.forge(
            "bank",
            KeyContribution(secret=bytes(32)),
            sender="shop",
            key=key,
        )
        assert not world.visit("bank")
        assert world.stage_of("bank") == "Joined"
    world.box.files[world.path("shop", "bank", KeyContribution)] = real
    world.visit("bank")
    assert world.stage_of("bank") == "Prepared"


def test_party_started_with_another_key(stage):
    """Someone starts the bank with a key file that is not the one in the study.

    Gain: messages of the bank under a key that someone else has too.
    Fails: the key is compared with the study before anything else happens.
    """
    world = stage("approved")
    with pytest.raises(ParameterError, match="the key file is not the one"):
        world.visit("bank", identity=KEYS["mallory"])
    with pytest.raises(ParameterError, match="has no participant 'mallory'"):
        world.visit("bank", party="mallory", identity=KEYS["mallory"])
    assert world.box.sent == []


def test_study_without_keys(stage):
    """The server proposes a study without keys, for which nothing could be signed.

    Gain: unsigned messages can be made by anyone.
    Fails: such a study can be simulated only; a party refuses to run it with others.
    """
    world = stage("approved")
    keyless = keyed_study()
    parties = tuple(dataclasses.replace(spec, public_key=None) for spec in keyless.parties)
    keyless = dataclasses.replace(keyless, parties=parties, server_key=None)
    world.approve(keyless, by=["bank"])
    with pytest.raises(ParameterError, match="can only be simulated"):
        world.visit("bank", study=keyless)
    assert Ready.TAG not in world.sent_by("bank")
