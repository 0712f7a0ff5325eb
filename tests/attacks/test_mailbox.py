"""Attacks of whoever runs the mailbox: poisoned folders, lost messages, a relay that lies.

The folder tests use the real `FileMailbox`. What a carrier does costs time at most: nothing here
makes a party send anything twice or differently.
"""

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from splitmeans.errors import MailboxError
from splitmeans.mailbox.files import FileMailbox
from splitmeans.wire.messages import (
    Confirmation,
    Hello,
    KeyContribution,
    PartyRelease,
    PublishedResult,
)
from splitmeans.wire.slot import SERVER

from .harness import Box, World


class Folder(Box):
    """A folder as the mailbox; everything that passes is in the log."""

    def __init__(self, place: Path) -> None:
        super().__init__()
        place.mkdir()
        self.place, self.inner = place, FileMailbox(str(place))

    def put(self, path: str, data: bytes, **how: Any) -> None:
        self.log.append(("put", path, data))
        self.inner.put(path, data, **how)

    def get(self, path: str, *, max_bytes: int) -> bytes | None:
        data = self.inner.get(path, max_bytes=max_bytes)
        if data is not None:
            self.log.append(("got", path, data))
        return data

    def file(self, path: str) -> Path:
        """Where a message is, with its folders made."""
        file = self.place / path
        file.parent.mkdir(parents=True, exist_ok=True)
        return file


@pytest.fixture
def shared(stage: Callable[..., World], tmp_path: Path) -> World:
    """A world that has only been approved, over a folder that all share."""
    world = stage("approved")
    world.box = world.mailbox = Folder(tmp_path / "shared")
    return world


def folder_of(world: World) -> Folder:
    assert isinstance(world.box, Folder)
    return world.box


def finishes(world: World) -> None:
    assert world.play() == {}
    assert {world.stage_of(name) for name in world.study.party_names} == {"done"}


def test_junk_files_beside_the_messages(shared, tmp_path):
    """Someone fills the folder with files of all kinds of names, also with names that look right.

    Gain: a reader that lists the folder and takes what it finds.
    Fails: a party asks for the names that it expects and never lists anything.
    """
    box = folder_of(shared)
    study = shared.study.hash[:32]
    for name in ("a", f"{study}/1/readme", f"{study}/1/keycontribution.", f"{study}/2/x", "%2e%2e"):
        box.file(name).write_bytes(b"junk")
    box.file(f"{study}/1/keycontribution.{'0' * 16}.{'1' * 16}").write_bytes(b"SMSE")
    box.file(f"{study}/1/.hidden.part").write_bytes(b"junk")
    finishes(shared)


def test_huge_file_in_a_slot(shared):
    """Someone puts a file of a terabyte (with holes) in the place of the shop's contribution.

    Gain: the party's memory.
    Fails: at most 64 kilobytes are read of such a message; the shop's real one replaces the file.
    """
    target = folder_of(shared).file(shared.path("shop", "bank", KeyContribution))
    with target.open("wb") as file:
        file.truncate(2**40)
    assert not shared.visit("bank")
    assert shared.stage_of("bank") == "Joined"
    finishes(shared)


def test_symbolic_link_in_a_slot(shared, tmp_path):
    """Someone puts links in the places of messages, to a file of the party and to nowhere.

    Gain: to have a secret file read, or the file behind the link overwritten by the next message.
    Fails: links are not followed in reading, and writing replaces the link itself.
    """
    secret = tmp_path / "secret"
    secret.write_bytes(b"do not touch")
    box = folder_of(shared)
    box.file(shared.path("shop", "bank", KeyContribution)).symlink_to(secret)
    box.file(shared.path("bank", "shop", KeyContribution)).symlink_to(tmp_path / "nowhere")
    finishes(shared)
    assert secret.read_bytes() == b"do not touch"
    assert not (tmp_path / "nowhere").exists()


def test_symbolic_link_in_place_of_a_folder(shared, tmp_path):
    """Someone makes the run's folder a link to another folder of the party.

    Gain: messages written to a place that the mailbox's owner chooses.
    Fails: a linked folder is refused; nothing is written behind it.
    """
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    run = folder_of(shared).file(shared.path("shop", "bank", KeyContribution)).parent
    run.rmdir()
    run.symlink_to(elsewhere, target_is_directory=True)
    with pytest.raises(MailboxError, match="symbolic link"):
        shared.visit("bank")
    assert list(elsewhere.iterdir()) == []
    run.unlink()
    finishes(shared)


def test_directory_in_place_of_a_message(shared):
    """Someone makes a directory where a message belongs, at the reader and at the writer.

    Gain: an untyped error, or a step that is half done.
    Fails: the reader ignores it, and the writer moves it away.
    """
    box = folder_of(shared)
    box.file(shared.path("shop", "bank", Hello)).mkdir()
    assert not shared.visit("bank")
    assert not shared.visit("shop")
    assert box.file(shared.path("shop", "bank", Hello)).is_file()
    finishes(shared)


def test_named_pipe_in_place_of_a_message(shared):
    """Someone puts a pipe, which blocks whoever opens it, where a message belongs.

    Gain: a party that hangs for ever.
    Fails: only plain files are opened; writing replaces the pipe.
    """
    os.mkfifo(folder_of(shared).file(shared.path("shop", "bank", KeyContribution)))
    finishes(shared)


def test_slot_filled_before_its_sender(shared):
    """Someone fills every slot of the run with junk before the senders come.

    Gain: a run in which the real messages never appear, because their places are taken.
    Fails: a sender replaces what is not its own message; all of them get through.
    """
    box = folder_of(shared)
    for sender, receiver in (("bank", "shop"), ("shop", "bank")):
        for kind in (KeyContribution, Confirmation):
            box.file(shared.path(sender, receiver, kind)).write_bytes(b"SMSE\x01 junk")
        box.file(shared.path(sender, SERVER, PartyRelease)).write_bytes(b"")
        box.file(shared.path(SERVER, receiver, PublishedResult)).write_bytes(b"\xff" * 3000)
    finishes(shared)


def test_message_overwritten_after_it_was_sent(shared):
    """Someone overwrites a message after its sender was told that it is stored.

    Gain: a run that can never end, so that the budget is spent for nothing.
    Fails: when the sender is started again it sends its stored messages again, the same bytes.
    """
    box = folder_of(shared)
    shared.visit("bank")
    target = box.file(shared.path("bank", "shop", Hello))
    sent = target.read_bytes()
    target.write_bytes(b"overwritten")
    assert not shared.visit("shop")
    assert shared.stage_of("shop") == "Joined"
    shared.visit("bank")
    assert target.read_bytes() == sent
    finishes(shared)


def test_release_deleted_after_it_was_sent(stage):
    """The mailbox deletes a release that it had acknowledged, and waits for another one.

    Gain: a release that is made anew under the same key.
    Fails: the party has no key any more; all that it can send are the stored bytes (R11).
    """
    world = stage("released")
    path = world.path("bank", SERVER, PartyRelease)
    sent = world.box.files.pop(path)
    world.opened.clear()
    assert not world.visit("bank")
    assert world.box.files[path] == sent
    assert world.opened == []
    assert world.play() == {}


def test_messages_deleted_after_reading(stage):
    """The mailbox deletes every message as soon as it was read once.

    Gain: a participant that forgets what it took, and takes another message for it.
    Fails: what was taken is part of the stored state; parties finish. The server, which takes
    messages again after a restart, gets them again from parties that are started again.
    """
    world = stage("approved")

    def once(path: str, data: bytes | None) -> bytes | None:
        world.box.files.pop(path, None)
        return data

    world.box.on_get = once
    assert world.play(rounds=12, idle=12) == {}
    assert {world.stage_of(name) for name in ("bank", "shop")} == {"done"}


def test_every_message_dropped(stage):
    """The mailbox takes all messages and hands none on.

    Gain: to have parties release in order to be heard at all.
    Fails: nothing about users is sent before the others have answered.
    """
    world = stage("approved")
    world.box.on_put = lambda path, data: None
    assert world.play() == {}
    assert set(world.sent_by("bank")) == set(world.sent_by("shop")) == set()
    assert world.charged("bank") == 0


def test_mailbox_that_fails_after_it_has_done_it(stage):
    """The mailbox reports an error at every tenth request, by chance, having done what was asked.

    Gain: steps that are half done: a charge without a release, or a release without a charge.
    Fails: a step is one transaction before anything is sent; after each error the same command
    goes on.
    """
    world = stage("approved")
    chance = random.Random(8)

    def flaky(path: str, data: bytes | None) -> bytes | None:
        if data is not None and chance.random() < 0.1:
            world.box.files[path] = data
            raise MailboxError("no answer in time")
        return data

    world.box.on_put = world.box.on_get = flaky
    for _ in range(20):
        errors = world.play(rounds=1)
        assert {type(error) for error in errors.values()} <= {MailboxError}
        if all(world.saved(name) and world.stage_of(name) == "done" for name in ("bank", "shop")):
            break
    assert {world.stage_of(name) for name in ("bank", "shop")} == {"done"}
    assert world.charged("bank") == 4
