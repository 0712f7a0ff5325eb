"""Attacks on what parties compare: what they derive from the key, and nothing about users."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from splitmeans.errors import MessageRefused
from splitmeans.kernels import counts
from splitmeans.membership.decoy import encode as decoy
from splitmeans.party import confirm, node
from splitmeans.table.prepare import prepare_table
from splitmeans.wire.messages import Confirmation
from splitmeans.wire.sealed import open_sealed
from splitmeans.wire.slot import SERVER
from tests.scene import KEYS, N_USERS

from .harness import World


def give_ids(world: World, party: str, write: Callable[[int], str]) -> None:
    rows = np.random.default_rng(1).uniform(0, 100, (N_USERS, 2))
    ids = [write(number) for number in range(N_USERS)]
    world.tables[party] = prepare_table(world.study.party(party), rows, ids=ids)


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
