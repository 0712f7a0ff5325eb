"""Attacks with bytes that are no messages: cut, stretched, garbled, of other versions, as bombs.

What a carrier can do is ignored, because the true message may still come. What the server itself
signs and seals, and is no message, ends the run. Neither gets past the checks of size and form.
"""

import functools
import json
import logging
import random
import tracemalloc
from collections.abc import Callable

import pytest

from splitmeans.errors import MessageRefused, ProtocolError
from splitmeans.mailbox.open import MessagePath
from splitmeans.run import party as driver
from splitmeans.run.drive import Patience
from splitmeans.wire.codec import MAGIC, decode, encode
from splitmeans.wire.messages import PublishedResult, RunPlan
from splitmeans.wire.sealed import OVERHEAD_BYTES, VERSION
from splitmeans.wire.slot import SERVER, short_name

from .harness import World

SLOTS_TO_PARTIES = (
    12  # of 2 parties: two first words, contribution, confirmation, plan and result each
)


@pytest.fixture
def chance() -> random.Random:
    return random.Random(11)


def runs_in_spite_of(
    world: World, change: Callable[[bytes], bytes], caplog: pytest.LogCaptureFixture
) -> None:
    """Every slot first shows changed bytes, which are ignored, then the true ones; all end well."""
    shown: set[str] = set()

    def first_changed(path: str, data: bytes | None) -> bytes | None:
        if data is None or path in shown:
            return data
        shown.add(path)
        return change(data)

    world.box.on_get = first_changed
    with caplog.at_level(logging.WARNING, logger="splitmeans.run.post"):
        assert world.play(rounds=30, idle=6) == {}
    assert {world.stage_of(name) for name in world.study.party_names} == {"done"}
    # And two Hello, two Ready, two releases and its own result to the server.
    assert len(shown) == SLOTS_TO_PARTIES + 7
    assert sum("ignored what is in the place of" in text for text in caplog.messages) == len(shown)


def test_truncated_messages(stage, caplog, chance):
    """The mailbox cuts each message off, at another place each time.

    Gain: a reader that takes what is there, or fails in the middle of a step.
    Fails: the length is part of what is signed, and is compared first.
    """
    runs_in_spite_of(stage("approved"), lambda data: data[: chance.randrange(len(data))], caplog)


def test_oversized_messages(stage, caplog, chance):
    """The mailbox adds bytes to each message, up to a hundred kilobytes.

    Gain: memory, or a second message behind the first.
    Fails: nothing behind a message is read; small kinds have small limits before anything is read.
    """
    tails = (1, 64, 100_000)
    runs_in_spite_of(stage("approved"), lambda data: data + bytes(chance.choice(tails)), caplog)


def test_changed_bits(stage, caplog, chance):
    """The mailbox flips one bit of each message.

    Gain: a changed plan, count or contribution that still opens.
    Fails: every byte is covered by the signature.
    """

    def flip(data: bytes) -> bytes:
        place = chance.randrange(len(data))
        return data[:place] + bytes([data[place] ^ 1 << chance.randrange(8)]) + data[place + 1 :]

    runs_in_spite_of(stage("approved"), flip, caplog)


def test_garbage_in_every_slot(stage, caplog, chance):
    """The mailbox answers with random bytes, with nothing, with text and with zeros.

    Gain: an error that is not expected, in any decoder.
    Fails: all of it is refused by its first bytes.
    """
    junk = (b"", b"\0" * 4096, b"SMSE", b"{}", b"GIF89a", chance.randbytes(5000))
    runs_in_spite_of(stage("approved"), lambda data: chance.choice(junk), caplog)


@pytest.mark.parametrize("version", [0, VERSION + 1, 255])
def test_version_downgrade_and_future_version(stage, caplog, version):
    """The mailbox changes the version byte, to an older one or to one that does not exist yet.

    Gain: a receiver that falls back to weaker algorithms.
    Fails: one version fixes all algorithms; there is nothing to negotiate, and the byte is signed.
    """
    world = stage("joined")
    world.box.on_get = lambda path, data: data and data[:4] + bytes([version]) + data[5:]
    with caplog.at_level(logging.WARNING):
        assert not world.visit("bank")
    assert f"it has version {version}, only {VERSION} is read" in caplog.text
    assert world.stage_of("bank") == "Joined"


@pytest.mark.parametrize("magic", [b"SMW0", b"SMW2", b"SMSE"])
def test_version_downgrade_under_the_seal(stage, magic):
    """The server seals a plan in another version of the inner format.

    Gain: as above, where a signature is no obstacle to the server.
    Fails: the inner format has one version as well.
    """
    world = stage("prepared")
    world.forge("bank", magic + encode(world.plan_message())[4:], kind=RunPlan)
    with pytest.raises(ProtocolError, match="does not start with the mark"):
        world.visit("bank")
    assert world.releases("bank") == {}


@pytest.mark.parametrize("length", [0, 2**31, 2**63, 2**64 - 1])
def test_length_bomb_in_a_sealed_message(stage, caplog, length):
    """The mailbox writes a huge length into the header of a short message.

    Gain: a receiver that allocates what the header says.
    Fails: the length is compared with what is there, and nothing is allocated for it.
    """
    world = stage("joined")
    world.box.on_get = lambda path, data: (
        data and data[:5] + length.to_bytes(8, "little") + data[13:]
    )
    with caplog.at_level(logging.WARNING):
        assert not world.visit("bank")
    assert "bytes and says" in caplog.text
    assert world.stage_of("bank") == "Joined"


def framed(header: bytes, body: bytes = b"", *, length: int | None = None) -> bytes:
    size = len(header) if length is None else length
    return MAGIC + size.to_bytes(4, "little") + header + body


def described(kind: str, **fields: object) -> bytes:
    return json.dumps({"type": kind, "fields": fields}).encode()


BOMBS = {
    "header length": framed(b"{}", length=2**32 - 1),
    "header of a megabyte": framed(b" " * 2**20),
    "deep nesting": framed(b"[" * 60_000),
    "deep objects": framed(b'{"a":' * 10_000),
    "long number": framed(b"1" * 60_000),
    "array of exabytes": framed(
        described("RunPlan", n_local_clusters=[2**62], released=[0], fingerprint="")
    ),
    "array with too many axes": framed(
        described("RunPlan", n_local_clusters=[1] * 64, released=[0], fingerprint=""), bytes(8)
    ),
    "empty array of endless rows": framed(
        described("RunPlan", n_local_clusters=[0, 10**30], released=[0], fingerprint="")
    ),
    "huge count": framed(
        described("RunPlan", n_local_clusters=[0], released=[10**4000], fingerprint="")
    ),
    "count that is a float": framed(
        b'{"type":"RunPlan","fields":{"n_local_clusters":[0],"released":[1e999],"fingerprint":""}}'
    ),
    "message in itself": framed(
        described("RunPlan", n_local_clusters={"type": "RunPlan"}, released=[0], fingerprint="")
    ),
    "unknown kind": framed(described("os.system", command="true")),
    "unknown field": framed(described("RunPlan", path="/etc/passwd")),
}


@pytest.mark.parametrize("name", BOMBS)
def test_decompression_and_header_bombs(stage, name):
    """The server seals and signs a few bytes that promise gigabytes, or nest without end.

    Gain: memory or time of the party, or an error that is not typed.
    Fails: nothing is compressed, so no message can be larger inside than outside; sizes are checked
    against the bytes that are there before anything is made of them.
    """
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolError):
            decode(BOMBS[name])
        assert tracemalloc.get_traced_memory()[1] < 16 * 2**20
    finally:
        tracemalloc.stop()
    if len(BOMBS[name]) > 2**16:
        return  # more than a party looks at in this slot
    world = stage("prepared")
    world.forge("bank", BOMBS[name], kind=RunPlan)
    with pytest.raises(ProtocolError):
        world.visit("bank")
    assert world.stage_of("bank") == "failed"
    assert world.releases("bank") == {}


def test_small_kinds_have_small_limits(stage):
    """The mailbox offers a hundred megabytes in the place of a plan.

    Gain: the party's memory, at every request.
    Fails: each request says how much it will take; for all kinds but releases and results that is
    64 kilobytes.
    """
    world = stage("prepared")
    limits: dict[str, int] = {}

    def get(path: str, *, max_bytes: int) -> bytes | None:
        place = MessagePath.parse(path)
        if place.receiver == short_name("bank"):  # not what it looks for of its own
            limits[place.kind] = max_bytes
        raise MessageRefused("too large")

    world.box.get = get
    assert not world.visit("bank")
    released = stage("released")
    released.box.get = get
    assert not released.visit("bank", max_bytes=10_000)
    assert limits == {"runplan": 2**16 + OVERHEAD_BYTES, "publishedresult": 10_000 + OVERHEAD_BYTES}


def test_endless_junk_is_no_news(stage, monkeypatch, chance):
    """The mailbox answers every request with new junk, for ever.

    Gain: a party that never gives up waiting, because something always comes.
    Fails: only a message that opens counts as news.
    """
    world = stage("released")
    world.box.on_get = lambda path, data: chance.randbytes(2000)
    now = [0.0]
    patience = functools.partial(
        Patience,
        clock=lambda: now[0],
        sleep=lambda pause: now.__setitem__(0, now[0] + pause),
    )
    monkeypatch.setattr(driver, "Patience", patience)
    assert not world.visit("bank", timeout=60.0)
    assert "nothing came from server for 60 seconds" in world.waiting["bank"]
    assert 60 <= now[0] <= 64


def test_result_slot_filled_by_the_server_with_nothing(stage):
    """The server seals an empty payload for the result.

    Gain: an untyped error after the release, so that the party's state is lost.
    Fails: an empty payload is no message; the run ends, charged and recorded.
    """
    world = stage("released")
    world.forge("bank", b"", kind=PublishedResult)
    with pytest.raises(ProtocolError, match="does not start with the mark"):
        world.visit("bank")
    assert world.stage_of("bank") == "failed"
    assert world.charged("bank") == 4
    assert world.sent_by("bank", receiver=SERVER) == ["Ready", "PartyRelease"]
