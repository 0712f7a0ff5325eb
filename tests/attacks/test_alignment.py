"""Attacks on the comparison of user sets, with digests of ids in coarser forms among it."""

from collections.abc import Callable

import numpy as np
import pytest

from splitmeans.errors import MessageRefused, ProtocolError
from splitmeans.party.table import prepare_table
from splitmeans.study import IdRules, Study
from splitmeans.wire.envelope import SERVER
from splitmeans.wire.messages import Confirmation
from splitmeans.wire.sealed import open_sealed

from .harness import World
from .scene import KEYS, N_USERS, make_study


@pytest.fixture(scope="module")
def explained() -> Study:
    """A study whose parties compare coarser forms of their ids too."""
    return make_study(ids=IdRules(explain_mismatch=True))


def give_ids(world: World, party: str, write: Callable[[int], str]) -> None:
    rows = np.random.default_rng(1).uniform(0, 100, (N_USERS, 2))
    ids = [write(number) for number in range(N_USERS)]
    world.tables[party] = prepare_table(world.study.party(party), rows, ids=ids)


def test_users_that_agree_in_a_coarser_form_only(stage, explained):
    """The server asks parties for releases whose ids agree once leading zeros are dropped.

    Gain: releases of users that are not the same, so that one of them shows at one party only.
    Fails: a coarser form explains the difference and mends nothing. The run ends before anything
    is released, and both parties are told what to agree on.
    """
    world = stage("approved", explained)
    give_ids(world, "bank", lambda number: f"{number}")
    give_ids(world, "shop", lambda number: f"{number:06d}")
    world.ask_for_releases()
    errors = world.play("bank", "shop")
    assert set(errors) == {"bank", "shop"}
    for error in errors.values():
        assert isinstance(error, ProtocolError)
        assert 'the ids agree once leading zeros are dropped: set ids.type = "integer"' in str(
            error
        )
    for party in ("bank", "shop"):
        assert world.sent_by(party, receiver=SERVER) == []
        assert world.entries(party) == ()


def test_confirmations_weighed_and_tried_with_the_servers_key(stage, explained):
    """The mailbox weighs confirmations, and opens them with the one key that the server has.

    Gain: how ids are written, whether users agree, or digests to try guesses at users on.
    Fails: how many digests there are follows from the study, so every confirmation has the same
    size whatever the ids are; and they are sealed to the other party.
    """
    sizes = set()
    for write in (lambda number: f"{number:06d}", lambda number: f" Customer-{number}\u00a0"):
        world = stage("approved", explained)
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
                receiver=KEYS[SERVER],
                max_bytes=2**20,
            )
    same = stage("approved", explained)
    assert same.play("bank", "shop") == {}
    sizes.add(len(same.box.files[same.path("shop", "bank", Confirmation)]))
    assert len(sizes) == 1
