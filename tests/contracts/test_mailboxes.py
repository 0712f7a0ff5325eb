"""What every mailbox must do, whatever carries it."""

import functools
import itertools
import secrets
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import fsspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.local_relay import LocalRelay
from splitmeans.errors import MailboxError, MessageExists, MessageRefused, ParameterError
from splitmeans.mailbox.open import SCHEMES, Mailbox, MailboxLimits, MessagePath, open_mailbox
from splitmeans.relay.limits import RelayLimits
from splitmeans.wire.identity import Identity
from splitmeans.wire.slot import Slot, short_name

STUDY = "c0ffee" + "0" * 58
# Every kind of mailbox, and the schemes that it is opened by. The object stores differ in their
# driver alone, and their own tests (`tests/mailbox/test_files.py`) look at how drivers are asked.
KINDS: dict[str, tuple[str, ...]] = {
    "folder": ("file",),
    "file-url": ("file",),
    "memory": ("memory", "s3", "gs", "gcs", "az", "abfs", "abfss"),
    "sftp": ("sftp", "ssh"),
    "sshd": ("sftp", "ssh"),  # the same against OpenSSH, where it is installed
    "relay": ("https", "http"),
}
RUNS = (f"run-{number}" for number in itertools.count())


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A mailbox as its sender alice and its receiver bob see it, and a slot that is free."""

    kind: str
    sender: Mailbox
    receiver: Mailbox
    path: str
    place: Path | None
    another: Callable[[], Mailbox]


def slot_path(run: str, kind: str = "PublishedResult") -> str:
    return Slot(study_hash=STUDY, run=run, sender="server", receiver="bob", kind=kind).path


@pytest.fixture(params=list(KINDS))
def pair(
    request: pytest.FixtureRequest, tmp_path: Path, keys: dict[str, Identity]
) -> Iterator[Pair]:
    ca = options = place = None
    match request.param:
        case "folder":
            url, place = str(tmp_path), tmp_path
        case "file-url":
            url, place = tmp_path.as_uri(), tmp_path
        case "memory":
            url = f"memory://{secrets.token_hex(8)}/box"
        case "sftp":
            server = request.getfixturevalue("sftp_of_python")
            url, options, place = server.url, server.options, server.folder
        case "sshd":
            server = request.getfixturevalue("sftp_server")
            url, options, place = server.url, server.options, server.folder
        case "relay":
            relay: LocalRelay = request.getfixturevalue("relay")
            url, ca, place = relay.url, relay.ca, relay.ca.parent / "messages" / "messages"
    boxes: list[Mailbox] = []

    def opened(name: str = "server") -> Mailbox:
        own = {"participant": name, "signer": keys[name], "ca": ca, "options": options}
        boxes.append(open_mailbox(url, **own))  # type: ignore[arg-type]
        return boxes[-1]

    yield Pair(
        kind=request.param,
        sender=opened("server"),
        receiver=opened("bob"),
        path=slot_path(next(RUNS)),
        place=place,
        another=opened,
    )
    for box in boxes:
        box.close()


def test_every_scheme_has_its_suite() -> None:
    """A mailbox that can be opened and is not here is held to nothing."""
    assert {scheme for schemes in KINDS.values() for scheme in schemes} == set(SCHEMES)


# A name with "_" is no scheme of a URL, so it is a folder's.
OTHERS = {name for name in fsspec.available_protocols() if "_" not in name} | {"gopher"}


@pytest.mark.parametrize("scheme", sorted(OTHERS))
def test_what_is_in_no_suite_cannot_be_opened(scheme: str, keys: dict[str, Identity]) -> None:
    """fsspec reads dozens of places; those that are not looked at here are refused by name."""
    url = f"{scheme}:///folder" if scheme == "file" else f"{scheme}://host/folder"
    opening = functools.partial(open_mailbox, url, participant="bob", signer=keys["bob"])
    if scheme not in SCHEMES:
        with pytest.raises(ParameterError, match="a mailbox is a folder, an https:// relay, or"):
            opening()
    elif scheme not in ("file", "http"):  # there is no such folder; a relay elsewhere needs TLS
        opening().close()


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
    other = slot_path(run, kind="RunPlan")
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
    "hidden": GOOD.replace("/published", "/.published"),
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


# What each kind of mailbox can tell: the longest message, the free room, the clock.
TOLD = {
    "folder": (False, True, False),
    "file-url": (False, True, False),
    "memory": (False, False, False),
    "sftp": (False, False, False),  # room is an extension of OpenSSH
    "sshd": (False, True, False),
    "relay": (True, True, True),
}


def test_limits_are_told_where_they_can_be_known(pair: Pair) -> None:
    for box in (pair.sender, pair.receiver):
        told = box.limits(STUDY)
        assert isinstance(told, MailboxLimits)
        values = (told.max_message_bytes, told.free_bytes, told.clock_offset)
        assert tuple(value is not None for value in values) == TOLD[pair.kind]
        assert told.max_message_bytes in (None, RelayLimits().message_bytes)
        assert told.free_bytes is None or told.free_bytes > 2**20
        # The relay is on this machine; it tells whole seconds.
        assert told.clock_offset is None or abs(told.clock_offset) <= 2.0


def test_asking_for_limits_leaves_nothing(pair: Pair) -> None:
    def files() -> set[str]:
        if pair.place is None:
            return set(fsspec.filesystem("memory").find(""))
        return {str(file) for file in pair.place.rglob("*")}

    for _ in range(2):  # before the study has a folder, and after
        before = files()
        pair.sender.limits(STUDY)
        assert files() == before
        pair.sender.put(pair.path, b"sealed")
    assert pair.receiver.get(pair.path, max_bytes=6) == b"sealed"


@pytest.mark.parametrize("study", ["", "c0ffee", STUDY.upper(), "../" + STUDY[3:], STUDY + "\n"])
def test_limits_are_for_a_study(pair: Pair, study: str) -> None:
    with pytest.raises(ParameterError, match="study_hash must be 64 hexadecimal digits"):
        pair.sender.limits(study)


def test_a_place_that_nobody_may_write_to_says_so(pair: Pair) -> None:
    """Asking is not enough: a mailbox that can be read only would fail after the charge."""
    if pair.kind == "relay":
        stranger = "d0d0" + STUDY[4:]
        with pytest.raises(MailboxError, match="this participant's key is not in the study"):
            pair.sender.limits(stranger)
        return
    if pair.place is None:
        pytest.skip("a store in memory has no rights")
    taken = pair.place / ("a1" * 16)
    taken.write_bytes(b"no folder")  # writing below it fails for everybody, root included
    try:
        with pytest.raises(MailboxError):
            pair.sender.limits("a1" * 32)
    finally:
        taken.unlink()


def test_a_sender_sees_its_own_message_and_cannot_replace_it(pair: Pair) -> None:
    """A party whose home was put back must not be able to release twice, on any mailbox."""
    assert pair.sender.get(pair.path, max_bytes=5) is None
    pair.sender.put(pair.path, b"first")
    assert pair.sender.get(pair.path, max_bytes=5) == b"first"
    with pytest.raises(MessageExists):
        pair.sender.put(pair.path, b"other", is_junk=lambda found: found != b"first")
    pair.sender.put(pair.path, b"first")
    assert pair.receiver.get(pair.path, max_bytes=5) == b"first"


def test_of_many_writers_one_succeeds(pair: Pair) -> None:
    """Copies of one sender, each with its own message; nobody can see the slot filled before."""
    if pair.kind == "memory":
        pytest.skip("a store for one process")
    n_writers = 5
    start = threading.Barrier(n_writers)
    boxes = [pair.another() for _ in range(n_writers)]

    def write(number: int) -> bool:
        start.wait()
        try:
            boxes[number].put(pair.path, b"release %d" % number, is_junk=_not_a_release)
        except MessageExists:
            return False
        return True

    with ThreadPoolExecutor(n_writers) as pool:
        succeeded = list(pool.map(write, range(n_writers)))
    assert sum(succeeded) == 1
    assert pair.receiver.get(pair.path, max_bytes=9) == b"release %d" % succeeded.index(True)


def _not_a_release(found: bytes | None) -> bool:
    return found is None or not found.startswith(b"release")


def test_junk_is_removed_where_others_can_put_it(pair: Pair) -> None:
    if pair.kind == "relay":
        pytest.skip("only the sender fills its slots")
    pair.receiver.put(pair.path, b"junk")
    pair.sender.put(pair.path, b"release", is_junk=_not_a_release)
    assert pair.receiver.get(pair.path, max_bytes=9) == b"release"


def test_room_can_be_asked_for_everywhere(pair: Pair) -> None:
    run = pair.path.split("/")[1]
    pair.sender.reserve(STUDY, run, 2**20)
    pair.sender.put(pair.path, b"sealed")
    if pair.kind == "relay":
        with pytest.raises(MailboxError, match="remove old runs or to allow more"):
            pair.sender.reserve(STUDY, run, 2**50)
