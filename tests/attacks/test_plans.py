"""Attacks with plans and with asking again: what is released, when, and how often (R8 to R11)."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from splitmeans.errors import (
    JournalError,
    MailboxError,
    MessageExists,
    ProtocolError,
    WaitingError,
)
from splitmeans.party import node
from splitmeans.plan.settle import make_plan
from splitmeans.privacy.noise import SecureNoise
from splitmeans.run import party as driver
from splitmeans.run.post import Post
from splitmeans.study import Budget
from splitmeans.wire.messages import Confirmation, PartyRelease, PlanConfirmation, StageRelease
from splitmeans.wire.slot import SERVER
from tests.scene import KEYS, N_USERS, keyed_study

from .harness import World
from .view import ViewError


def refuses(world: World, plan: Any, *, match: str, party: str = "bank") -> None:
    """The party ends the run because of this plan, before anything is released or charged."""
    world.forge(party, plan)
    with pytest.raises(ProtocolError, match=match):
        world.visit(party)
    assert world.stage_of(party) == "failed"
    assert world.releases(party, kind=PartyRelease) == {}


# ---- other plans ----


@pytest.mark.parametrize("clusters", [[4, 5], [2, 2], [250, 250], [4, 0], [-1, 4]])
def test_plan_with_other_local_clusters(stage, clusters):
    """The server asks for another number of local clusters than the study gives.

    Gain: more clusters mean smaller ones, down to single users.
    Fails: the party computes the plan itself and compares.
    """
    world = stage("prepared")
    plan = world.plan_message(n_local_clusters=np.array(clusters))
    refuses(world, plan, match="the study gives")
    assert world.charged("bank") == 0


@pytest.mark.parametrize("clusters", [[4], [4, 4, 4], [], [[4, 4]]])
def test_plan_for_other_parties(stage, clusters):
    """The server sends a plan for one party less, or for one more.

    Gain: cells over other parties than those who confirmed.
    Fails: the number of parties is the study's, and the plan is compared with it.
    """
    world = stage("prepared")
    plan = world.plan_message(n_local_clusters=np.array(clusters, dtype=np.int64))
    refuses(world, plan, match="the study gives")


def test_plan_with_other_noise(stage):
    """The server's plan is that of a study with a larger budget, so with less noise.

    Gain: a release with less noise than was agreed, or decoys from another table.
    Fails: the fingerprint covers every parameter of every release; the party compares it with its
    own and takes nothing from the message.
    """
    world = stage("prepared")
    looser = make_plan(keyed_study(budget=Budget(epsilon=8, delta=1e-4)))
    refuses(world, world.plan_message(fingerprint=looser.fingerprint), match="noise parameters")
    assert world.charged("bank") == 0


@pytest.mark.parametrize("fingerprint", ["", "0" * 64, "\x1b[2J", "x" * 60_000])
def test_plan_with_a_made_up_fingerprint(stage, fingerprint):
    """The server sends any text as the fingerprint of cells, groups and noise.

    Gain: a party that compares loosely, or an error that carries the text to a terminal.
    Fails: it is compared as a whole and never shown.
    """
    world = stage("prepared")
    refuses(world, world.plan_message(fingerprint=fingerprint), match=r"^server and party computed")


def test_plan_with_a_count_that_nobody_released(stage):
    """The server names a number of users in a study that releases none.

    Gain: the party would choose its clusters by the server's number.
    Fails: the party knows which values were released: none.
    """
    world = stage("prepared")
    plan = world.plan_message(released=np.array([10**6]))
    refuses(world, plan, match="other values than the stages released")


@pytest.mark.parametrize("change", [-1, 1, 10**7])
def test_plan_with_another_count(stage, counted, change):
    """The server changes the number of users that the counting party released.

    Gain: k' follows from the count, so parties could be made to use other clusters.
    Fails: parties have the number from the counting party itself, sealed and signed.
    """
    world = stage("prepared", counted)
    plan = world.plan_message()
    plan = dataclasses.replace(plan, released=plan.released + change)
    refuses(world, plan, match="other values than the stages released", party="shop")


def test_count_made_by_the_server(stage, counted):
    """The server puts a count of its own in the place of the bank's word to the shop.

    Gain: bank and shop would plan with different numbers.
    Fails: the shop takes the number from the bank only. If it held another one, the second
    confirmation would not fit.
    """
    world = stage("joined", counted)
    world.visit("bank")
    path = world.path("bank", "shop", StageRelease)
    real = world.box.files[path]
    for key in (KEYS[SERVER], KEYS["mallory"]):
        forged = StageRelease(stage=1, values=np.array([5]))
        world.forge("shop", forged, sender="bank", key=key)
        assert not world.visit("shop")
        assert world.stage_of("shop") == "Surveying"
    world.box.files[path] = real
    assert world.play() == {}


def test_party_that_tells_others_different_numbers(stage, trio):
    """The bank, whose key the attacker has, tells the clinic another number of users than the shop.

    Gain: shop and clinic would release under different plans.
    Fails: a plan names the released numbers, and they confirm it to each other before they release.
    """
    world = stage("joined", trio)
    path = world.path("bank", "clinic", StageRelease)
    # As far off as noise explains: another number would be refused at once.
    (stage_of_size,) = make_plan(trio).stages
    most = stage_of_size.law.most_noise
    lie = StageRelease(stage=1, values=np.array([N_USERS + most]))
    told = world.sealed("clinic", lie, sender="bank", key=KEYS["bank"])[1]
    world.box.on_put = lambda place, data: told if place == path else data
    errors = world.play(*trio.party_names)
    for name in ("shop", "clinic"):
        assert "have different plans for this run" in str(errors[name])
    assert not any(world.releases(name, kind=PartyRelease) for name in trio.party_names)


def test_different_plans_to_different_parties(stage):
    """The server tells the bank the true plan and the shop another one.

    Gain: releases under different plans compose to more than the budget (1.33 in place of 1.0).
    Fails: each party runs the plan that all have confirmed, or none: the shop ends the run, and the
    bank's one release is the one that was accounted for.
    """
    world = stage("prepared")
    world.forge("bank", world.plan_message())
    refuses(
        world, world.plan_message(n_local_clusters=np.array([4, 8])), match="gives", party="shop"
    )
    assert not world.visit("bank")
    assert len(world.releases("bank")) == 1
    assert world.charged("bank") == 4


# ---- a release before everyone has confirmed ----


def plan_comes_first(world: World) -> None:
    """The server asks for releases from the first moment on."""
    world.ask_for_releases()
    world.box.on_put = lambda path, data: None if "/confirmation." in path else data
    world.play(*world.study.party_names)


def test_plan_before_all_have_confirmed(stage):
    """The server sends its plan before the parties have compared key, study, run and plan.

    Gain: a release of a party whose partner has another plan or another key.
    Fails: a party does not look at plans before it has everyone's confirmation (R10).
    """
    world = stage("approved")
    plan_comes_first(world)
    assert {world.stage_of(name) for name in ("bank", "shop")} == {"Keyed"}
    assert world.releases("bank") == world.releases("shop") == {}


def release_without_confirmation(*message: Any, **options: Any) -> Any:
    """A broken twin: holds the key, so goes on at once."""
    keyed, sent = _TAKE_CONTRIBUTION(*message, **options)
    prepared, ready = node._next_stage(keyed, released=(), noise=SecureNoise())
    return prepared, sent + ready


_TAKE_CONTRIBUTION = node._take_contribution


def test_twin_that_releases_unconfirmed_is_caught(stage, monkeypatch):
    """The check of the attack above can fail: a party that skips confirmation is noticed."""
    monkeypatch.setattr(node, "_take_contribution", release_without_confirmation)
    world = stage("approved")
    world.is_twin = True
    plan_comes_first(world)
    assert world.releases("bank")
    with pytest.raises(ViewError, match="released before shop had confirmed"):
        world.check_view()


def test_one_confirmation_withheld(stage, trio):
    """The mailbox loses what the clinic confirms to the bank, and nothing else.

    Gain: the bank goes on with a majority, while the clinic has been told something else.
    Fails: all pinned parties must confirm. The bank waits and names the clinic; it has released
    nothing.
    """
    world = stage("joined", trio)
    lost = world.path("clinic", "bank", Confirmation)
    world.box.on_get = lambda path, data: None if path == lost else data
    world.ask_for_releases()
    world.play(*trio.party_names)
    assert world.stage_of("bank") == "Keyed"
    assert world.releases("bank") == {}
    assert "nothing came from clinic for" in world.waiting["bank"]


def test_second_confirmation_withheld(stage, counted):
    """In a study with a stage the mailbox withholds the confirmation of the plan that follows.

    Gain: a release of one party under a k' that the other does not use.
    Fails: the second transcript is confirmed by all like the first (R10).
    """
    world = stage("joined", counted)
    lost = world.path("bank", "shop", PlanConfirmation)
    world.box.on_get = lambda path, data: None if path == lost else data
    world.play("bank", "shop")
    world.forge("shop", world.plan_message())
    assert not world.visit("shop")
    assert world.stage_of("shop") == "Agreeing"
    assert world.releases("shop", kind=PartyRelease) == {}


# ---- asking twice ----


def test_plan_again_after_the_release(stage):
    """The server sends its plan again, newly sealed, to a party that has released.

    Gain: a second release under the same key reveals differences exactly.
    Fails: a party that has released asks for nothing but the result; its key is gone.
    """
    world = stage("released")
    for _ in range(3):
        world.ask_for_releases()
        assert not world.visit("bank")
    assert [len(versions) for versions in world.releases("bank").values()] == [1]
    assert world.charged("bank") == 4


def test_plan_again_within_one_start(stage):
    """The server swaps its plan at every request while the party runs without a break.

    Gain: as above, without a restart in between.
    Fails: the state moves on with the first plan that is taken.
    """
    world = stage("prepared")
    asked = []

    def answer(path: str, data: bytes | None) -> bytes | None:
        if "/runplan." in path:
            asked.append(path)
            return world.sealed("bank", world.plan_message())[1]
        return data

    world.box.on_get = answer
    assert not world.visit("bank", timeout=0.05)
    assert len(asked) == 1


def test_other_plan_after_the_release(stage):
    """After the release the server sends another plan, with more clusters.

    Gain: a finer release on top of the first.
    Fails: the party does not look at plans any more, and could not follow one: rows and key are
    gone from its state.
    """
    world = stage("released")
    world.forge("bank", world.plan_message(n_local_clusters=np.array([8, 8])))
    world.opened.clear()
    assert not world.visit("bank")
    assert world.opened == []  # not even the table is opened
    assert world.stage_of("bank") == "Released"


def fail_first_time(world: World, kind: type) -> None:
    """The mailbox reports an error for the first message of a kind, after it has seen the bytes."""
    failed: list[str] = []

    def put(path: str, data: bytes) -> bytes | None:
        if f"/{kind.TAG.lower()}." in path and path not in failed:
            failed.append(path)
            raise MailboxError("the mailbox lost the connection")
        return data

    world.box.on_put = put


def test_release_lost_and_asked_for_again(stage):
    """The mailbox takes the release, says that it failed, and asks the restarted party again.

    Gain: a recomputed release under the same key.
    Fails: a release is stored before it is sent, and what is sent again is read from disk (R11):
    the same bytes, charged once.
    """
    world = stage("prepared")
    world.ask_for_releases()
    fail_first_time(world, PartyRelease)
    with pytest.raises(MailboxError, match="lost the connection"):
        world.visit("bank")
    assert not world.visit("bank")
    sent = [data for path, data in world.box.sent if path in world.releases("bank")]
    assert len(sent) == 2
    assert sent[0] == sent[1]
    assert [entry.kind for entry in world.entries("bank")] == ["charge"]


def send_before_storing(self: Any, state: Any, received: Any) -> Any:
    """A broken twin: sends first, stores afterwards, so a crash in between forgets the release."""
    _, envelopes = node.step(
        state, received.envelope, noise=SecureNoise(), rng=np.random.default_rng(1)
    )
    for message in self.desk.seal(envelopes):
        self.desk.post.send(message.path, message.data)
    raise WaitingError("stopped before anything was stored")


def test_twin_that_recomputes_a_release_is_caught(stage, monkeypatch):
    """The check of the attack above can fail: a release made anew at a retry is noticed (R11)."""
    monkeypatch.setattr(driver._Driver, "_step", send_before_storing)
    monkeypatch.setattr(Post, "own_message", lambda self, receiver, kind: None)
    world = stage("prepared")
    world.is_twin = True
    world.ask_for_releases()
    world.visit("bank")
    with pytest.raises(MessageExists):
        world.visit("bank")
    with pytest.raises(ViewError, match="two different partyrelease"):
        world.check_view()


def test_finished_run_asked_again(stage):
    """The server asks for a release in a run that the party has finished.

    Gain: a second release after the books are closed.
    Fails: the party says that the run is finished and does nothing.
    """
    world = stage("finished")
    before = len(world.box.sent)
    world.ask_for_releases()
    assert world.visit("bank")
    assert "is finished" in world.said["bank"][-1]
    assert len(world.box.sent) == before


def test_failed_run_asked_again(stage):
    """After a bad plan ended the run the server sends the good one and asks to start again.

    Gain: to try plans until one passes.
    Fails: a run that failed is over; its key is erased. A new run has a new name and a new key.
    """
    world = stage("prepared")
    refuses(world, world.plan_message(fingerprint="0" * 64), match="noise parameters")
    world.ask_for_releases()
    with pytest.raises(JournalError, match=r"has failed .* begin another run"):
        world.visit("bank")
    assert world.releases("bank") == {}
