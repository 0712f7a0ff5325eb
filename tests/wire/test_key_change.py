"""Renewals and revocations: who must have signed them."""

import json

import pytest

from splitmeans.errors import ParameterError
from splitmeans.wire.key_change import KeyRenewal, read_revocation, revocation_text
from tests.scene import key_of

OLD, NEW, EVE = key_of("old"), key_of("new"), key_of("eve")
RENEWAL = KeyRenewal.make(OLD, NEW, time="2026-11-17T10:00:00+00:00")
REVOKED = revocation_text(OLD, reason="stolen", time="2026-11-17T10:00:00+00:00")


def test_round_trips() -> None:
    assert KeyRenewal.from_text(RENEWAL.to_text(), where="x") == RENEWAL
    said = read_revocation(REVOKED, where="x")
    assert (said.digest, said.reason) == (OLD.public.digest.hex(), "stolen")
    assert said.is_signed


@pytest.mark.parametrize(
    "change",
    [
        {"old": EVE.public.to_text()},
        {"new": EVE.public.to_text()},
        {"time": "2027-11-17T10:00:00+00:00"},
        {"signatures": [RENEWAL.signatures[0].hex(), RENEWAL.signatures[0].hex()]},
        {"signatures": [RENEWAL.signatures[1].hex(), RENEWAL.signatures[1].hex()]},
        {"signatures": ["", ""]},
        {"signatures": []},
        {"old": 5},
        {"format": "splitmeans key renewal 2"},
    ],
)
def test_a_renewal_that_not_both_keys_signed(change: dict[str, object]) -> None:
    text = json.dumps(json.loads(RENEWAL.to_text()) | change)
    with pytest.raises(ParameterError, match=r"x(:| is| must)"):
        KeyRenewal.from_text(text, where="x")


def test_a_key_cannot_follow_itself() -> None:
    with pytest.raises(ParameterError, match="signed by the old and the new key"):
        KeyRenewal.from_text(KeyRenewal.make(OLD, OLD, time="t").to_text(), where="x")


@pytest.mark.parametrize(
    "change",
    [{"key": EVE.public.to_text()}, {"reason": "gift"}, {"time": "t"}, {"signature": "00"}],
)
def test_a_revocation_that_the_key_did_not_sign(change: dict[str, str]) -> None:
    with pytest.raises(ParameterError, match="not signed by the key that it ends"):
        read_revocation(json.dumps(json.loads(REVOKED) | change), where="x")


@pytest.mark.parametrize("text", ["", "{}", "[1]", "[" * 9000, "x" * 20_000])
def test_what_is_neither(text: str) -> None:
    with pytest.raises(ParameterError, match="must have format 'splitmeans key renewal 1'"):
        KeyRenewal.from_text(text, where="x")
    with pytest.raises(ParameterError, match="must have format 'splitmeans key revocation 1'"):
        read_revocation(text, where="x")


def test_reasons_are_printable() -> None:
    with pytest.raises(ParameterError, match="must be printable text"):
        revocation_text(OLD, reason="\x1b[2J", time="t")
