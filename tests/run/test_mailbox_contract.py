"""What every mailbox must do, whatever carries it."""

import itertools
import secrets
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from splitmeans.bench.local_relay import LocalRelay
from splitmeans.errors import MessageRefused, ParameterError
from splitmeans.run.mailbox import Mailbox, MessagePath, open_mailbox
from splitmeans.wire.identity import Identity
from splitmeans.wire.slot import Slot, short_name

STUDY = "c0ffee" + "0" * 58
KINDS = ("folder", "file-url", "memory", "sftp", "relay")
RUNS = (f"run-{number}" for number in itertools.count())


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A mailbox as its sender alice and its receiver bob see it, and a slot that is free."""

    sender: Mailbox
    receiver: Mailbox
    path: str


def slot_path(run: str, kind: str = "Letter") -> str:
    return Slot(study_hash=STUDY, run=run, sender="alice", receiver="bob", kind=kind).path


@pytest.fixture(params=KINDS)
def pair(
    request: pytest.FixtureRequest, tmp_path: Path, keys: dict[str, Identity]
) -> Iterator[Pair]:
    ca = options = None
    match request.param:
        case "folder":
            url = str(tmp_path)
        case "file-url":
            url = tmp_path.as_uri()
        case "memory":
            url = f"memory://{secrets.token_hex(8)}/box"
        case "sftp":
            server = request.getfixturevalue("sftp_server")
            url, options = server.url, server.options
        case "relay":
            relay: LocalRelay = request.getfixturevalue("relay")
            url, ca = relay.url, relay.ca
    boxes = [
        open_mailbox(url, participant=name, signer=keys[name], ca=ca, options=options)
        for name in ("alice", "bob")
    ]
    yield Pair(sender=boxes[0], receiver=boxes[1], path=slot_path(next(RUNS)))
    for box in boxes:
        box.close()


names = st.text(min_size=1, max_size=20)


@settings(max_examples=50, deadline=None)
@given(run=st.from_regex(r"[a-z0-9][a-z0-9-]{0,39}", fullmatch=True), sender=names, receiver=names)
def test_every_slot_has_a_path_that_passes(run: str, sender: str, receiver: str) -> None:
    slot = Slot(study_hash=STUDY, run=run, sender=sender, receiver=receiver, kind="KeyContribution")
    found = MessagePath.parse(slot.path)
    assert "/".join(found.parts) == slot.path
    assert (found.study, found.run) == (STUDY[:32], run)
    assert (found.sender, found.receiver) == (short_name(sender), short_name(receiver))


def test_absent_is_none(pair: Pair) -> None:
    assert pair.receiver.get(pair.path, max_bytes=10) is None


@pytest.mark.parametrize("size", [0, 1, 700_001])
def test_what_was_put_comes_back(pair: Pair, size: int) -> None:
    data = secrets.token_bytes(size)
    pair.sender.put(pair.path, data)
    assert pair.receiver.get(pair.path, max_bytes=size) == data


def test_the_same_again_is_fine(pair: Pair) -> None:
    for _ in range(3):
        pair.sender.put(pair.path, b"sealed")
    assert pair.receiver.get(pair.path, max_bytes=6) == b"sealed"


def test_too_large_is_refused(pair: Pair) -> None:
    pair.sender.put(pair.path, b"x" * 100_000)
    with pytest.raises(MessageRefused, match="more than 99999 bytes"):
        pair.receiver.get(pair.path, max_bytes=99_999)
    with pytest.raises(MessageRefused, match="more than 0 bytes"):
        pair.receiver.get(pair.path, max_bytes=0)
    assert len(pair.receiver.get(pair.path, max_bytes=100_000) or b"") == 100_000


def test_slots_do_not_mix(pair: Pair) -> None:
    run = pair.path.split("/")[1]
    other = slot_path(run, kind="Parcel")
    pair.sender.put(pair.path, b"letter")
    assert pair.receiver.get(other, max_bytes=100) is None
    pair.sender.put(other, b"parcel")
    assert pair.receiver.get(pair.path, max_bytes=100) == b"letter"
    assert pair.receiver.get(other, max_bytes=100) == b"parcel"


GOOD = slot_path("run")
BAD_PATHS = {
    "empty": "",
    "absolute": "/" + GOOD,
    "up": "../" + GOOD,
    "up inside": GOOD.replace("/run/", "/../"),
    "backslash": GOOD.replace("/", "\\"),
    "extra part": GOOD + "/more",
    "end of line": GOOD + "\n",
    "zero byte": GOOD + "\0",
    "percent": GOOD.replace("/run/", "/%2e%2e/"),
    "other digits": GOOD.replace("c0ffee", "c0ffe٣"),
    "upper case": GOOD.replace("c0ffee", "C0FFEE"),
    "doubled": GOOD.replace("/run/", "//run/"),
    "hidden": GOOD.replace("/letter", "/.letter"),
}


@pytest.mark.parametrize("path", BAD_PATHS.values(), ids=BAD_PATHS.keys())
def test_other_names_are_refused(pair: Pair, path: str) -> None:
    with pytest.raises(ParameterError, match="path must have the form"):
        pair.sender.put(path, b"data")
    with pytest.raises(ParameterError, match="path must have the form"):
        pair.receiver.get(path, max_bytes=10)


def test_negative_bound_is_refused(pair: Pair) -> None:
    with pytest.raises(ParameterError, match="max_bytes must be a whole number >= 0"):
        pair.receiver.get(pair.path, max_bytes=-1)


def test_a_reader_sees_nothing_or_all(pair: Pair) -> None:
    data = secrets.token_bytes(1_500_000)
    seen: list[bytes] = []
    is_done = threading.Event()

    def read() -> None:
        while True:
            last_look = is_done.is_set()
            found = pair.receiver.get(pair.path, max_bytes=len(data))
            if found is not None:
                seen.append(found)
            if last_look:
                return

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for _ in range(3):
            pair.sender.put(pair.path, data)
    finally:
        is_done.set()
        reader.join()
    assert seen
    assert all(found == data for found in seen)


def test_its_text_shows_no_key(pair: Pair) -> None:
    assert "Mailbox(" in repr(pair.sender)
    assert "signer" not in repr(pair.sender)
