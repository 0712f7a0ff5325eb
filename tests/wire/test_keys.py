import hmac
from hashlib import sha256

import pytest

from splitmeans.errors import ProtocolError
from splitmeans.wire import keys

TRANSCRIPT = b"\xab" * 32
ONE, TWO = b"\x01" * 32, b"\x02" * 32


def test_all_parties_get_the_same_key_in_any_order() -> None:
    assert keys.run_key({"a": ONE, "b": TWO}, transcript=TRANSCRIPT) == keys.run_key(
        {"b": TWO, "a": ONE}, transcript=TRANSCRIPT
    )


def test_key_depends_on_every_contribution_its_party_and_the_transcript() -> None:
    variants = [
        keys.run_key({"a": ONE, "b": TWO}, transcript=TRANSCRIPT),
        keys.run_key({"a": TWO, "b": ONE}, transcript=TRANSCRIPT),
        keys.run_key({"a": ONE, "b": ONE}, transcript=TRANSCRIPT),
        keys.run_key({"a": ONE, "c": TWO}, transcript=TRANSCRIPT),
        keys.run_key({"a": ONE, "b": TWO}, transcript=b"\xcd" * 32),
    ]
    assert len(set(variants)) == len(variants)
    assert all(len(key) == 32 for key in variants)


def test_keys_are_hkdf_of_names_and_contributions() -> None:
    """RFC 5869 in two lines: extract with the transcript as salt, expand to one block."""
    material = b"".join(sha256(name).digest() + part for name, part in ((b"a", ONE), (b"b", TWO)))
    secret = hmac.digest(TRANSCRIPT, material, "sha256")
    expected = hmac.digest(secret, b"splitmeans run key 1\x01", "sha256")
    key = keys.run_key({"b": TWO, "a": ONE}, transcript=TRANSCRIPT)
    assert key == expected
    secret = hmac.digest(bytes(32), key, "sha256")
    block = hmac.digest(secret, b"splitmeans subkey 1 sample 0-2\x01", "sha256")
    assert keys.subkey(key, keys.SAMPLE, group=(0, 2)) == block[:16]


def test_subkeys_differ_by_label() -> None:
    key = keys.run_key({"a": ONE, "b": TWO}, transcript=TRANSCRIPT)
    derived = {keys.subkey(key, label) for label in keys._LABELS}
    assert len(derived) == len(keys._LABELS)
    assert {len(item) for item in derived} == {16}


def test_unknown_label_and_short_contribution_are_refused() -> None:
    with pytest.raises(ProtocolError, match="no subkey is defined for 'other'"):
        keys.subkey(ONE, "other")
    with pytest.raises(ProtocolError, match="contribution of 'a' must be 32 bytes, got 3"):
        keys.run_key({"a": b"abc", "b": TWO}, transcript=TRANSCRIPT)
