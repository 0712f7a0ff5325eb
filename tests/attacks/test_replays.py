"""Attacks with true messages in wrong places: replayed, reflected, swapped, reordered (R10)."""

import dataclasses
import itertools
import random

import pytest

from splitmeans.errors import MessageRefused, ProtocolError
from splitmeans.wire.messages import (
    Confirmation,
    Hello,
    KeyContribution,
    PartyRelease,
    PublishedResult,
    Ready,
    RunPlan,
)
from splitmeans.wire.slot import SERVER
from tests.scene import KEYS, keyed_study

PARTY_WORDS = (KeyContribution, Confirmation)


def test_contribution_of_an_older_run(stage):
    """The mailbox answers the second run's request with the shop's contribution to the first.

    Gain: a run key of which a part is old, so that two runs share randomness.
    Fails: a message is sealed and signed for its run. The old one is ignored, and the second run
    has a key of its own once the real one comes.
    """
    world = stage("finished")
    old = world.box.files[world.path("shop", "bank", KeyContribution)]
    target = world.path("shop", "bank", KeyContribution, run="2")
    world.visit("bank", run="2")
    world.box.files[target] = old
    assert not world.visit("bank", run="2")
    assert world.stage_of("bank", run="2") == "Joined"
    assert world.play(run="2") == {}
    first, second = (world.message("shop", "bank", KeyContribution, run=run) for run in "12")
    assert first.secret != second.secret


def test_whole_old_run_under_a_new_name(stage):
    """The mailbox copies every message of the first run to the places of a second one.

    Gain: parties that go through all steps again with the server's old plan and release once more
    under the old key.
    Fails: not one of the copies opens. Each party waits for words that were meant for this run.
    """
    world = stage("finished")
    for path, data in list(world.box.files.items()):
        world.box.files[path.replace("/1/", "/2/")] = data
    world.box.on_put = lambda path, data: None
    assert world.play("bank", "shop", run="2") == {}
    assert {world.stage_of(name, run="2") for name in ("bank", "shop")} == {"Joined"}
    assert all("/1/" in path for name in ("bank", "shop") for path in world.releases(name))
    assert world.charged("bank") == world.charged("shop") == 4


def test_contribution_shown_as_another_partys(stage, trio):
    """The mailbox shows the clinic the bank's contribution as if the shop had sent it.

    Gain: two equal contributions, so that one party's randomness counts twice and another's not.
    Fails: sender and receiver are bound into seal and signature.
    """
    world = stage("approved", trio).join_all()
    for receiver in ("clinic", "shop"):
        stolen = world.box.files[world.path("bank", receiver, KeyContribution)]
        world.box.files[world.path("shop", "clinic", KeyContribution)] = stolen
        assert not world.visit("clinic")
        assert world.stage_of("clinic") == "Joined"
    assert world.releases("clinic") == {}


def test_words_reflected_to_their_sender(stage):
    """The mailbox gives the bank its own contribution and confirmation as the shop's.

    Gain: a party that agrees with itself, and releases without a partner.
    Fails: a message to the shop is sealed to the shop and names the bank as its sender.
    """
    world = stage("joined")
    for kind in PARTY_WORDS:
        back = world.box.files.get(world.path("bank", "shop", kind))
        if back is not None:
            world.box.files[world.path("shop", "bank", kind)] = back
    world.ask_for_releases()
    assert not world.visit("bank")
    assert world.stage_of("bank") == "Joined"


def test_confirmation_made_by_the_server(stage):
    """The server confirms in its own name, with its own key, in the place of the shop.

    Gain: a party that goes on although its partner has another plan.
    Fails: the shop's signature is missing; and without the run key the server cannot compute what a
    confirmation must say.
    """
    world = stage("joined")
    world.box.on_put = lambda path, data: None if "/confirmation." in path else data
    del world.box.files[world.path("shop", "bank", Confirmation)]
    world.ask_for_releases()
    word = Confirmation(key_check=bytes(32), shared_check=bytes(32))
    world.forge("bank", word, sender="shop", key=KEYS[SERVER])
    assert not world.visit("bank")
    assert world.stage_of("bank") == "Keyed"


def test_message_to_the_server_reflected_to_a_party(stage):
    """The server takes what the bank sealed to it and puts it in every slot of the shop.

    Gain: key confusion: a message under the bank's true signature that the shop takes for a word
    between parties.
    Fails: the receiver's key is part of what is signed, and the kind is part of the slot.
    """
    world = stage("prepared")
    theirs = world.box.files[world.path("bank", SERVER, Ready)]
    fresh = stage("joined")
    fresh.box.files = {
        fresh.path(sender, "bank", kind): theirs
        for sender in ("shop", SERVER)
        for kind in (*PARTY_WORDS, RunPlan, PublishedResult, PartyRelease)
    }
    assert not fresh.visit("bank")
    assert fresh.stage_of("bank") == "Joined"


def test_another_studys_bytes(stage):
    """The relay answers with the same parties' messages of another study.

    Gain: agreement on a study that only one of them runs.
    Fails: the study's hash is in the slot, and the slot in seal and signature.
    """
    other = keyed_study(name="other segments", n_clusters=2)
    elsewhere = stage("approved", other)
    assert elsewhere.play("bank", "shop") == {}
    world = stage("joined")
    sources = {path.split("/")[2]: data for path, data in elsewhere.box.files.items()}
    world.box.on_get = lambda path, data: sources.get(path.split("/")[2], data)
    assert not world.visit("bank")
    assert not world.visit("shop")
    assert (world.stage_of("bank"), world.stage_of("shop")) == ("Joined", "Keyed")


def test_reordered_messages(stage):
    """The mailbox hands messages out late, and in every order that it likes.

    Gain: a state in which a step is skipped.
    Fails: a party asks for what its state expects and for nothing else; order changes nothing.
    """
    world = stage("approved")
    chance = random.Random(4)
    world.box.on_get = lambda path, data: data if chance.random() < 0.3 else None
    for _ in range(120):
        errors = world.play(rounds=1)
        assert errors == {}
        if all(world.saved(name) and world.stage_of(name) == "done" for name in ("bank", "shop")):
            break
    assert {world.stage_of(name) for name in ("bank", "shop")} == {"done"}


def test_every_message_in_every_other_slot(stage):
    """The mailbox answers each request with the true messages of all other slots in turn.

    Gain: any mix-up of kind, sender, receiver or direction that some receiver does not notice.
    Fails: exactly one of all messages opens in a slot, the one that belongs there.
    """
    world = stage("finished")
    messages = dict(world.box.files)
    assert len(messages) == 19
    slots = {
        world.path(sender, receiver, kind): (sender, receiver, kind)
        for sender, receiver in itertools.product(("bank", "shop", SERVER), repeat=2)
        for kind in (Hello, *PARTY_WORDS, Ready, RunPlan, PartyRelease, PublishedResult)
    }
    opened = []
    for path, (sender, receiver, kind) in slots.items():
        for origin, data in messages.items():
            try:
                world.read(sender, receiver, kind, data)
            except MessageRefused:
                continue
            assert origin == path
            opened.append(path)
    assert sorted(opened) == sorted(messages)


def test_duplicated_messages(stage):
    """The mailbox hands every message out again at every request, and keeps old ones.

    Gain: a step that is made twice: two charges, two releases, two contributions.
    Fails: a slot is taken once; afterwards nobody asks for it.
    """
    world = stage("approved")
    asked: list[str] = []
    world.box.on_get = lambda path, data: (asked.append(path) if data else None, data)[1]
    assert world.play() == {}
    assert world.play() == {}
    again = {path.split("/")[2].split(".")[0] for path in asked if asked.count(path) > 1}
    assert again == {"ready"}  # the server restarted, and took them again
    assert [entry.kind for entry in world.entries("bank")] == ["charge"]


def test_kind_in_another_kinds_slot(stage):
    """The server seals and signs, for the plan's slot, messages of every other kind.

    Gain: a party that takes a result, a release or a contribution for a plan.
    Fails: what is in a slot must be of the slot's kind; the run ends.
    """
    source = stage("released")
    release = source.message("bank", SERVER, PartyRelease)
    kinds = {
        "Ready": Ready(study_hash=source.study.hash),
        "KeyContribution": KeyContribution(secret=bytes(32)),
        # Without its points: all of it would be too long for a plan, and is not even read.
        "PartyRelease": dataclasses.replace(release, points=release.points[:0]),
    }
    for name, message in kinds.items():
        world = stage("prepared")
        world.forge("bank", message, kind=RunPlan)
        with pytest.raises(ProtocolError, match=f"sent a {name} in the place of a RunPlan"):
            world.visit("bank")
        assert world.stage_of("bank") == "failed"
        assert world.releases("bank") == {}


def test_release_shown_to_the_server_as_anothers(stage):
    """The relay gives the server the bank's release in the place of the shop's.

    Gain: a spoiled result; a relay that is not the server gains nothing else.
    Fails: the server opens only what the shop signed for this slot.
    """
    world = stage("released")
    world.box.files[world.path("shop", SERVER, PartyRelease)] = world.box.files[
        world.path("bank", SERVER, PartyRelease)
    ]
    assert not world.visit(SERVER)
    assert world.sent_by(SERVER) == ["RunPlan", "RunPlan"]
