import pytest

from splitmeans.errors import ProtocolError
from splitmeans.wire import keys

HASH = "ab" * 32
ONE, TWO = b"\x01" * 32, b"\x02" * 32


def test_all_parties_get_the_same_key_in_any_order() -> None:
    assert keys.run_key({"a": ONE, "b": TWO}, study_hash=HASH) == keys.run_key(
        {"b": TWO, "a": ONE}, study_hash=HASH
    )


def test_key_depends_on_every_contribution_its_party_and_the_study() -> None:
    variants = [
        keys.run_key({"a": ONE, "b": TWO}, study_hash=HASH),
        keys.run_key({"a": TWO, "b": ONE}, study_hash=HASH),
        keys.run_key({"a": ONE, "b": ONE}, study_hash=HASH),
        keys.run_key({"a": ONE, "c": TWO}, study_hash=HASH),
        keys.run_key({"a": ONE, "b": TWO}, study_hash="cd" * 32),
    ]
    assert len(set(variants)) == len(variants)
    assert all(len(key) == 32 for key in variants)


def test_subkeys_differ_by_label() -> None:
    key = keys.run_key({"a": ONE, "b": TWO}, study_hash=HASH)
    derived = {keys.subkey(key, label) for label in keys._LABELS}
    assert len(derived) == len(keys._LABELS)
    assert {len(item) for item in derived} == {16}


def test_unknown_label_and_short_contribution_are_refused() -> None:
    with pytest.raises(ProtocolError, match="no subkey is defined for 'other'"):
        keys.subkey(ONE, "other")
    with pytest.raises(ProtocolError, match="contribution of 'a' must be 32 bytes, got 3"):
        keys.run_key({"a": b"abc", "b": TWO}, study_hash=HASH)
