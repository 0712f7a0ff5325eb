"""Versions that meet: everyone is told by the first word of the other, before any charge."""

import json
from pathlib import Path

import pytest

from splitmeans.errors import MessageRefused, ProtocolError
from splitmeans.run.greeting import check_hello
from splitmeans.study import Study
from splitmeans.wire import envelope
from splitmeans.wire.codec import decode, encode
from splitmeans.wire.envelope import PROTOCOL
from splitmeans.wire.messages import Hello, KeyContribution
from splitmeans.wire.sealed import check_signed, other_version
from splitmeans.wire.sealing import OpeningKey
from splitmeans.wire.slot import SERVER, Slot
from tests.attacks.harness import World
from tests.scene import KEYS, keyed_study

VECTOR = json.loads((Path(__file__).parents[1] / "vectors" / "protocol3.json").read_text())
KEY = OpeningKey(bytes(32)).public
EVERYONE = ("bank", "shop", SERVER)


@pytest.fixture(scope="module")
def staged() -> Study:
    """A study in which the bank releases a number before the server says its plan."""
    return keyed_study(n_local_clusters="auto")


@pytest.fixture
def world(staged: Study, tmp_path: Path) -> World:
    return World(staged, tmp_path).approve()


def play(world: World, odd: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Let everyone act in turn, one of them with another protocol; return who refused, and why."""
    refused: dict[str, str] = {}
    for _ in range(4):
        for name in EVERYONE:
            number = PROTOCOL + 1 if name == odd else PROTOCOL
            monkeypatch.setattr(envelope, "PROTOCOL", number)
            if name not in refused:
                try:
                    world.visit(name)
                except ProtocolError as problem:
                    refused[name] = str(problem)
    return refused


@pytest.mark.parametrize("odd", EVERYONE)
def test_a_whole_run_with_one_other_version_charges_nobody(
    world: World, odd: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = play(world, odd, monkeypatch)
    assert set(refused) == set(EVERYONE)
    for name, text in refused.items():
        who, theirs, own = (odd, PROTOCOL + 1, PROTOCOL)
        if name == odd:
            who, theirs, own = text.split("'")[1], PROTOCOL, PROTOCOL + 1
        assert text.startswith(f"{who!r} speaks protocol {theirs} and this is protocol {own}: ")
        assert "nothing was charged" in text
    for name in ("bank", "shop"):
        assert world.entries(name) == ()
        assert world.sent_by(name) == []  # after its first words
        assert world.stage_of(name) == "failed"


def test_the_same_run_with_one_version_ends(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check above can fail: with no odd one out, the stage is charged."""
    assert play(world, "nobody", monkeypatch) == {}
    assert len(world.entries("bank")) > 0


@pytest.mark.parametrize("number", [0, PROTOCOL - 1, PROTOCOL + 1, 255])
def test_another_protocol_is_refused(number: int) -> None:
    word = decode(encode(Hello(protocol=bytes([number]), sealing=KEY.data)))
    assert isinstance(word, Hello)
    words = rf"speaks protocol {number} and this is protocol {PROTOCOL}.*nothing was charged"
    with pytest.raises(ProtocolError, match=words):
        check_hello("shop", word)


def test_the_own_protocol_passes_with_a_usable_key_alone() -> None:
    own = bytes([PROTOCOL])
    assert check_hello("shop", Hello(protocol=own, sealing=KEY.data)) == KEY
    for sealing in (b"", KEY.data[:-1], KEY.data[:-32] + bytes(32), b"\xff" * 1216):
        with pytest.raises(ProtocolError, match="'shop' sent no usable key for the run"):
            check_hello("shop", Hello(protocol=own, sealing=sealing))


def test_bytes_of_protocol_3_are_told_and_never_taken(world: World) -> None:
    """A party of protocol 3 begins with its contribution, sealed in another form."""
    with pytest.raises(ProtocolError, match="must have exactly the fields secret"):
        decode(bytes.fromhex(VECTOR["KeyContribution"]))
    data = bytes.fromhex(VECTOR["sealed"]["bytes"])
    assert other_version(data) == 1
    slot = Slot(**VECTOR["sealed"]["slot"])
    bank, shop = KEYS["bank"].public, KEYS["shop"].public
    with pytest.raises(MessageRefused, match="version 1, only 2 is read: older; the sender must"):
        check_signed(data, slot=slot, sender=bank, receiver=shop, max_bytes=10_000)
    world.box.files[world.path("shop", "bank", KeyContribution)] = data
    assert not world.visit("bank")
    assert not world.visit("bank")
    (told,) = {text for text in world.said["bank"] if "another version" in text}
    assert told.startswith("a message of shop has the form of another version of splitmeans")
    assert world.entries("bank") == ()
