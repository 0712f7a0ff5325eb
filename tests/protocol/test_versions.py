"""A participant of the version before is refused by its first message, before any charge."""

import json
from pathlib import Path

import pytest

from splitmeans.errors import ProtocolError
from splitmeans.party.node import _check_protocol
from splitmeans.wire.codec import decode, encode
from splitmeans.wire.envelope import PROTOCOL
from splitmeans.wire.messages import KeyContribution

VECTOR = json.loads((Path(__file__).parents[1] / "vectors" / "protocol3.json").read_text())


def test_bytes_of_protocol_3_are_refused_with_both_numbers() -> None:
    part = decode(bytes.fromhex(VECTOR["KeyContribution"]))
    assert isinstance(part, KeyContribution)
    with pytest.raises(ProtocolError, match="'shop' speaks protocol 3 or older and this is proto"):
        _check_protocol("shop", part)


@pytest.mark.parametrize("number", [0, PROTOCOL - 1, PROTOCOL + 1, 255])
def test_another_protocol_is_refused(number: int) -> None:
    part = decode(encode(KeyContribution(secret=b"x" * 32, protocol=bytes([number]))))
    assert isinstance(part, KeyContribution)
    words = rf"speaks protocol {number} and this is protocol {PROTOCOL}.*nothing was charged"
    with pytest.raises(ProtocolError, match=words):
        _check_protocol("shop", part)


def test_the_own_protocol_passes_and_an_empty_one_has_one_form() -> None:
    _check_protocol("shop", KeyContribution(secret=b"x", protocol=bytes([PROTOCOL])))
    data = encode(KeyContribution(secret=b"x"))
    assert b"protocol" not in data
    header = data[8:].replace(b'{"secret"', b'{"protocol":"","secret"')
    with pytest.raises(ProtocolError, match="must be left out where it is empty"):
        decode(data[:4] + len(header).to_bytes(4, "little") + header)
