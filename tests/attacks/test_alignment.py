"""Attacks on what parties compare: their users, and what they derive."""

import hashlib
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
from splitmeans.party.equal_users import user_set_digest

from splitmeans.errors import MessageRefused, ProtocolError
from splitmeans.kernels import counts
from splitmeans.membership.decoy import encode as decoy
from splitmeans.party import confirm, node
from splitmeans.party.session import Session
from splitmeans.party.shared_check import shared_check
from splitmeans.plan.settle import make_plan
from splitmeans.table.prepare import prepare_table
from splitmeans.wire import keys
from splitmeans.wire.messages import Confirmation, KeyContribution
from splitmeans.wire.sealed import open_sealed
from splitmeans.wire.slot import SERVER
from tests.scene import KEYS, N_USERS

from .harness import World


def give_ids(world: World, party: str, write: Callable[[int], str]) -> None:
    rows = np.random.default_rng(1).uniform(0, 100, (N_USERS, 2))
    ids = [write(number) for number in range(N_USERS)]
    world.tables[party] = prepare_table(world.study.party(party), rows, ids=ids)


def test_users_whose_ids_are_written_differently(stage):
    """The server asks parties for releases whose ids agree once leading zeros are dropped.

    Gain: releases of users that are not the same, so that one of them shows at one party only.
    Fails: ids are compared as they are used. The run ends before anything is released, and both
    parties are told.
    """
    world = stage("approved")
    give_ids(world, "bank", lambda number: f"{number}")
    give_ids(world, "shop", lambda number: f"{number:06d}")
    world.ask_for_releases()
    errors = world.play("bank", "shop")
    assert set(errors) == {"bank", "shop"}
    for error in errors.values():
        assert isinstance(error, ProtocolError)
        assert "keep the ids that all parties have, written the same way" in str(error)
    for party in ("bank", "shop"):
        assert world.sent_by(party, receiver=SERVER) == []
        assert world.entries(party) == ()


def test_confirmations_weighed_and_tried_with_the_servers_key(stage):
    """The mailbox weighs confirmations, and opens them with the one key that the server has.

    Gain: how ids are written, whether users agree, or digests to try guesses at users on.
    Fails: every confirmation has the same size whatever the ids are, and it is sealed to the other
    party.
    """
    sizes = set()
    for write in (lambda number: f"{number:06d}", lambda number: f" Customer-{number}\u00a0"):
        world = stage("approved")
        give_ids(world, "bank", lambda number: f"{number}")
        give_ids(world, "shop", write)
        world.play("bank", "shop")
        data = world.box.files[world.path("shop", "bank", Confirmation)]
        sizes.add(len(data))
        with pytest.raises(MessageRefused):
            open_sealed(
                data,
                slot=world.slot("shop", "bank", Confirmation),
                sender=KEYS["shop"].public,
                receiver=KEYS["bank"].public,
                opener=KEYS[SERVER].opening_key,
                max_bytes=2**20,
            )
    same = stage("approved")
    assert same.play("bank", "shop") == {}
    sizes.add(len(same.box.files[same.path("shop", "bank", Confirmation)]))
    assert len(sizes) == 1


# ---- a fellow party that guesses ----

CONTRIBUTION, SECRET = b"c" * 32, b"s" * 32


class Guesser:
    """The shop, which follows no rule: it holds its key, the run key and all that the bank says.

    It knows all of the bank's customers but one, and has a list of people who may be that one.
    """

    def __init__(self, world: World) -> None:
        self.world, self.study = world, world.study
        self.session = Session(study=self.study, run="1", party="shop")
        self.known = [f"user-{number}" for number in range(N_USERS - 1)]

    def users(self, guess: str) -> bytes:
        """The digest of the bank's users, if the guess is right."""
        rows = np.zeros((N_USERS, 2))
        table = prepare_table(self.study.party("bank"), rows, ids=[*self.known, guess])
        return user_set_digest(self.study, table, run="1")

    def send_shares_for(self, guess: str) -> None:
        """Send the share that fits one guess."""
        users = self.users(guess)
        shares = node.make_share(self.session, "bank", users=users, secret=SECRET)
        part = KeyContribution(secret=CONTRIBUTION, user_shares=shares)
        self.world.forge("bank", part, sender="shop", key=KEYS["shop"])

    def fits(self, guesses: Iterable[str]) -> list[str]:
        """Those guesses that fit what the bank has said, tried without asking anyone."""
        return [guess for guess in guesses if self.is_right(guess)]

    def is_right(self, guess: str) -> bool:
        """Whether a guess fits what the bank has said."""
        theirs = self.world.message("bank", "shop", KeyContribution)
        word = self.world.message("bank", "shop", Confirmation)
        plan = make_plan(self.study)
        run_key = keys.run_key(
            {"bank": theirs.secret, "shop": CONTRIBUTION},
            transcript=confirm.transcript(self.session, plan),
        )
        facts: dict[str, Any] = {
            "sender": "bank",
            "receiver": "shop",
            "run_key": run_key,
            "shared": shared_check(plan, run_key=run_key),
        }
        user_key = node.agree(
            self.session,
            "bank",
            users=self.users(guess),
            secret=SECRET,
            share=theirs.user_shares,
        )
        expected = confirm.confirmation(self.session, plan, user_key=user_key, **facts)
        assert expected.key_check == word.key_check
        return word.user_check == expected.user_check


# The bank's last customer is user-299; the guesser's list has that one and others.
TRUTH = f"user-{N_USERS - 1}"
OTHERS = [f"user-{number}" for number in range(1000, 1030)]


def guesses_that_fit(world: World, *, sent_for: str) -> list[str]:
    guesser = Guesser(world)
    guesser.send_shares_for(sent_for)
    assert not world.visit("bank")
    return guesser.fits([*OTHERS, TRUTH])


def test_dictionary_of_users_tried_on_what_a_party_said(stage):
    """The shop, which has the run key, tries thousands of people as customers of the bank.

    Gain: whether the bank has customer 4711, for each of many numbers, at no cost and unnoticed.
    Fails: what the bank says about its users is under a key that follows from the guess that the
    shop has made its own share for. One run tells it whether that one guess is right, and nothing
    about any other, were it the truth.
    """
    for sent_for, expected in ((OTHERS[0], []), (TRUTH, [TRUTH])):
        world = stage("approved")
        assert guesses_that_fit(world, sent_for=sent_for) == expected
        # The bank has released nothing: a guesser that cannot answer is refused or waited for.
        assert world.sent_by("bank", receiver=SERVER) == []


def digest_under_the_run_key(*_: Any, users: bytes, **__: Any) -> bytes:
    """As it was: what parties show each other is a digest that the run key opens to guesses."""
    return hashlib.sha256(users).digest()


def test_twin_that_compares_digests_is_caught(stage, monkeypatch):
    """The attack above can succeed: on a digest every guess can be tried, and the truth fits."""
    monkeypatch.setattr(node, "agree", digest_under_the_run_key)
    world = stage("approved")
    world.is_twin = True
    assert guesses_that_fit(world, sent_for=OTHERS[0]) == [TRUTH]


def test_second_guess_in_the_same_run(stage):
    """The shop replaces its shares by those for another guess, and the bank is started again.

    Gain: as many answers as the bank has restarts.
    Fails: a slot is taken once, and the bank's answer is stored: it says the same bytes again.
    """
    world = stage("approved")
    assert guesses_that_fit(world, sent_for=OTHERS[0]) == []
    said = {path: data for path, data in world.box.sent}
    for guess in (OTHERS[1], TRUTH):
        Guesser(world).send_shares_for(guess)
        assert not world.visit("bank")
        assert {path: data for path, data in world.box.sent} == said
        assert Guesser(world).fits([guess]) == []


def test_shares_before_and_after_a_restart(stage):
    """The bank is stopped before anyone has answered, its first shares are lost, it starts again.

    Gain: two shares of one run, whose difference would tell about the password.
    Fails: shares are stored before they are sent, and sent again as they are.
    """
    world = stage("approved")
    world.greet("shop")
    world.visit("bank")
    path = world.path("bank", "shop", KeyContribution)
    first = world.box.files.pop(path)
    world.visit("bank")
    assert world.box.files[path] == first


def test_shares_that_are_no_shares(stage):
    """The shop sends points of small order, points that are none, and the bank's own share.

    Gain: a key that does not depend on the bank's users, or depends on them in a way that shows.
    Fails: such shares are refused in the same words whatever the users are, and the run ends.
    """
    one = (1).to_bytes(32, "little")
    for share in (b"", b"B" + one, b"B" + bytes(32), b"A" + one, None):
        world = stage("approved")
        world.greet("shop")
        world.visit("bank")
        if share is None:
            own = world.message("bank", "shop", KeyContribution).user_shares
            share = b"B" + own[1:]
        part = KeyContribution(secret=CONTRIBUTION, user_shares=share)
        world.forge("bank", part, sender="shop", key=KEYS["shop"])
        with pytest.raises(ProtocolError, match="sent no share for comparing users"):
            world.visit("bank")
        assert world.stage_of("bank") == "failed"
        assert set(world.sent_by("bank")) == {"KeyContribution"}


def test_different_guesses_to_different_parties(stage, trio):
    """The clinic makes its shares for the truth to the bank and for another guess to the shop.

    Gain: a run in which it is taken for a party with the same users by some.
    Fails: every pair compares, and no party goes on before all others have confirmed to it. (It
    has learned one answer from each: with S parties a run answers S - 1 guesses.)
    """
    world = stage("approved", trio)
    honest = Session(study=trio, run="1", party="clinic")
    rows = np.zeros((N_USERS, 2))
    for other, last in (("bank", TRUTH), ("shop", OTHERS[0])):
        ids = [*(f"user-{number}" for number in range(N_USERS - 1)), last]
        table = prepare_table(trio.party("clinic"), rows, ids=ids)
        users = user_set_digest(trio, table, run="1")
        shares = node.make_share(honest, other, users=users, secret=SECRET)
        part = KeyContribution(secret=CONTRIBUTION, user_shares=shares)
        world.forge(other, part, sender="clinic", key=KEYS["clinic"])
    world.play("bank", "shop")
    world.ask_for_releases("bank", "shop")
    assert world.play("bank", "shop") == {}
    assert {world.stage_of(name) for name in ("bank", "shop")} == {"Keyed"}
    assert world.sent_by("bank", receiver=SERVER) == world.sent_by("shop", receiver=SERVER) == []


# ---- parties that derive different things ----


def play_versions(world: World, switch: Callable[[Any], None], monkeypatch: Any) -> dict[str, Any]:
    """Let the bank act as it is and the shop as another version, in turn."""
    errors: dict[str, Any] = {}
    for _ in range(4):
        for name in ("bank", "shop"):
            if name in errors:
                continue
            with monkeypatch.context() as patch:
                if name == "shop":
                    switch(patch)
                errors |= world.play(name, rounds=1)
        world.ask_for_releases()
    return errors


def derive_other_decoys(patch: Any) -> None:
    records, number = counts.decoy_records, counts.decoy_counts
    patch.setattr(decoy, "decoy_records", lambda a, b, **facts: records(b, a, **facts))
    patch.setattr(decoy, "decoy_counts", lambda a, **facts: number(a[::-1], **facts))


def test_party_of_a_version_with_other_decoys(stage, monkeypatch):
    """The server persuades the shop to run a version that makes other decoys from the run key.

    Gain: decoys that no two parties share, so that everyone in the join is a user.
    Fails: parties compare a digest of the decoys of this very run before anything is released.
    """
    world = stage("approved")
    errors = play_versions(world, derive_other_decoys, monkeypatch)
    assert set(errors) == {"bank", "shop"}
    for error in errors.values():
        assert "derive different decoys or tags from the same key" in str(error)
    assert world.sent_by("bank", receiver=SERVER) == world.sent_by("shop", receiver=SERVER) == []


def test_twin_that_compares_no_decoys_is_caught(stage, monkeypatch):
    """Without the digest both parties release, and most records of the join are users alone."""
    monkeypatch.setattr(node, "shared_check", lambda plan, run_key: b"")
    world = stage("approved")
    world.is_twin = True
    assert play_versions(world, derive_other_decoys, monkeypatch) == {}
    assert {world.stage_of(name) for name in ("bank", "shop")} == {"Released"}


def test_party_of_another_version_of_the_protocol(stage, monkeypatch):
    """The server persuades the shop to run a version whose test vectors are other ones.

    Gain: any difference in tags, labels, tables or ids that a digest of decoys does not show.
    Fails: protocol number and a digest of the vectors are in the transcript, so in the run key.
    """

    def another(patch: Any) -> None:
        patch.setattr(confirm, "derivation_digest", lambda: bytes(32))

    def older(patch: Any) -> None:
        patch.setattr("splitmeans.party.session.PROTOCOL", 1)

    for switch in (another, older):
        world = stage("approved")
        errors = play_versions(world, switch, monkeypatch)
        assert set(errors) == {"bank", "shop"}
        for error in errors.values():
            assert "hold different run keys, studies or versions of splitmeans" in str(error)
        assert world.sent_by("bank", receiver=SERVER) == []
