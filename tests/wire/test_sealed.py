"""Sealed messages: what opens, and everything that must not."""

import hashlib
import json
import re
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import hpke
from hypothesis import given, settings
from hypothesis import strategies as st

from splitmeans.errors import MessageRefused, OtherRunKey, ParameterError
from splitmeans.wire import sealed as module
from splitmeans.wire.identity import Identity, PublicIdentity
from splitmeans.wire.sealed import OVERHEAD_BYTES, open_sealed, other_version, seal
from splitmeans.wire.sealing import OpeningKey
from splitmeans.wire.slot import Slot

VECTORS = Path(__file__).parents[1] / "vectors" / "sealed.json"

# Private keys for tests only: anyone can derive them.
SEEDS = {
    name: {
        part: hashlib.sha256(f"splitmeans test {name} {part}".encode()).digest()
        for part in ("signing", "sealing")
    }
    for name in ("bank", "shop", "server", "Möbel & Co")
}
PEOPLE = {name: Identity(**seeds) for name, seeds in SEEDS.items()}
BANK, SHOP, SERVER = PEOPLE["bank"], PEOPLE["shop"], PEOPLE["server"]
SLOT = Slot(study_hash="ab" * 32, run="r1", sender="bank", receiver="server", kind="Ready")
OTHER_SLOTS = {
    "study": replace(SLOT, study_hash="ab" * 31 + "ac"),
    "run": replace(SLOT, run="r2"),
    "sender": replace(SLOT, sender="shop"),
    "receiver": replace(SLOT, receiver="shop"),
    "kind": replace(SLOT, kind="StageRelease_1"),
}
TO = SERVER.public.sealing_key
MESSAGE = seal(
    b"hello", slot=SLOT, sender=BANK, receiver=SERVER.public, to=SERVER.public.sealing_key
)


def try_open(
    data: bytes,
    *,
    slot: Slot = SLOT,
    sender: PublicIdentity = BANK.public,
    receiver: Identity = SERVER,
    opener: OpeningKey | None = None,
    max_bytes: int = 10_000,
) -> bytes:
    return open_sealed(
        data,
        slot=slot,
        sender=sender,
        receiver=receiver.public,
        opener=opener or receiver.opening_key,
        max_bytes=max_bytes,
    )


def by_hand(
    payload: bytes,
    *,
    slot: Slot = SLOT,
    signer: Identity = BANK,
    named: PublicIdentity = BANK.public,
    receiver: PublicIdentity = SERVER.public,
    **wrong: Any,
) -> bytes:
    """Seal as docs/reference/wire.md says, with one step done wrong if `wrong` names it."""
    keys = named.signing + named.sealing + receiver.signing + receiver.sealing
    sealed_to = wrong.get("sealed_to", receiver.sealing_key)
    key_digest = hashlib.sha256(
        b"splitmeans sealing key 1\0" + wrong.get("named_key", sealed_to).data
    ).digest()
    info = b"splitmeans sealed message 2\0" + slot.text + keys + key_digest
    values = {
        "study": slot.study_hash.encode(),
        "run": slot.run.encode(),
        "sender": slot.sender.encode(),
        "receiver": slot.receiver.encode(),
        "kind": slot.kind.encode(),
        "sender's key": named.digest,
        "receiver's key": receiver.digest,
    }
    header: bytes = b"SMSE" + bytes([wrong.get("version", 2)])
    header += wrong.get("length", len(payload) + 1357).to_bytes(8, "little")
    for name, value in values.items():
        mark = hashlib.sha256(b"splitmeans slot mark 1\0" + name.encode() + b"\0" + value)
        header += mark.digest()[:16]
    header += key_digest
    suite = hpke.Suite(
        hpke.KEM.MLKEM768_X25519,
        wrong.get("kdf", hpke.KDF.HKDF_SHA256),
        wrong.get("aead", hpke.AEAD.AES_256_GCM),
    )
    body = suite.encrypt(payload, sealed_to._key(), info=wrong.get("info", info))
    signed_info = wrong.get("signed_info", info)
    digest = hashlib.sha256(len(signed_info).to_bytes(8, "little") + signed_info + header + body)
    prefix: bytes = wrong.get("prefix", b"splitmeans sealed signature 2\0")
    return header + body + signer.sign(prefix + digest.digest())


# ---- what opens ----


@settings(max_examples=50, deadline=None)
@given(payload=st.binary(max_size=3000), sender=st.text(), receiver=st.text(), kind=st.text())
def test_round_trip(payload: bytes, sender: str, receiver: str, kind: str) -> None:
    slot = replace(SLOT, sender=sender, receiver=receiver, kind=kind)
    data = seal(
        payload, slot=slot, sender=BANK, receiver=SERVER.public, to=SERVER.public.sealing_key
    )
    assert len(data) == len(payload) + OVERHEAD_BYTES
    assert try_open(data, slot=slot) == payload
    with pytest.raises(MessageRefused, match="is not the one expected here"):
        try_open(data, slot=replace(slot, kind=kind + "x"))


def test_what_the_documented_layout_gives_opens() -> None:
    assert try_open(by_hand(b"hello")) == b"hello"


def test_a_key_of_the_run_opens_and_the_identity_does_not() -> None:
    run_key, other = (OpeningKey(bytes([number]) * 32) for number in (1, 2))
    data = seal(b"hello", slot=SLOT, sender=BANK, receiver=SERVER.public, to=run_key.public)
    assert try_open(data, opener=run_key) == b"hello"
    for opener in (None, other):
        with pytest.raises(OtherRunKey, match="signed, but sealed to a key that is not here"):
            try_open(data, opener=opener)
    # Whoever has forgotten the key still knows its own signature.
    module.check_signed(
        data, slot=SLOT, sender=BANK.public, receiver=SERVER.public, max_bytes=10_000
    )
    swapped = data[:125] + other.public.digest + data[157:]
    with pytest.raises(MessageRefused, match="signature is wrong"):
        try_open(swapped, opener=other)


def test_another_version_is_told_by_its_first_bytes() -> None:
    assert other_version(MESSAGE) is None
    assert other_version(b"SMSE\x01 and so on") == 1
    assert [other_version(data) for data in (b"", b"SMSE", b"SMSX\x01")] == [None] * 3


def test_sealing_twice_gives_different_bytes_and_hides_the_payload() -> None:
    payload = b"the same payload"
    one, two = (seal(payload, slot=SLOT, sender=BANK, receiver=SERVER.public, to=TO) for _ in "12")
    assert one != two
    assert payload not in one
    assert b"bank" not in one
    assert one[:157] == two[:157]


def test_largest_message_is_the_given_one() -> None:
    assert try_open(MESSAGE, max_bytes=len(MESSAGE)) == b"hello"
    with pytest.raises(MessageRefused, match=f"has {len(MESSAGE)} bytes, at most 1361 are allowed"):
        try_open(MESSAGE, max_bytes=len(MESSAGE) - 1)


# ---- damage ----


def test_every_flipped_bit_is_refused() -> None:
    for place in range(len(MESSAGE)):
        for bit in range(8):
            changed = bytearray(MESSAGE)
            changed[place] ^= 1 << bit
            with pytest.raises(MessageRefused, match="refused: it"):
                try_open(bytes(changed))


def test_every_truncation_is_refused() -> None:
    for size in range(len(MESSAGE)):
        with pytest.raises(MessageRefused, match="cut off"):
            try_open(MESSAGE[:size])


@pytest.mark.parametrize("extra", [b"\0", b"hello", MESSAGE])
def test_bytes_added_are_refused(extra: bytes) -> None:
    with pytest.raises(MessageRefused, match=r"bytes and says 1362"):
        try_open(MESSAGE + extra)
    with pytest.raises(MessageRefused, match=r"does not start with the mark|bytes and says"):
        try_open(extra + MESSAGE)


@settings(max_examples=50, deadline=None)
@given(data=st.binary(max_size=3000))
def test_noise_is_refused(data: bytes) -> None:
    for start in (b"", b"SMSE", b"SMSE\x02", MESSAGE[:157]):
        with pytest.raises(MessageRefused, match=r"Ready from 'bank' in run 'r1' refused: it"):
            try_open(start + data)


class Huge(bytes):
    """Says that it is enormous, and fails if anything but its length is looked at."""

    def __len__(self) -> int:
        return 2**50

    def __getitem__(self, key: Any) -> Any:
        raise AssertionError("looked at the bytes of a message that is too large")


def test_too_large_is_refused_before_anything_is_looked_at() -> None:
    with pytest.raises(MessageRefused, match="at most 10000 are allowed"):
        try_open(Huge())
    with pytest.raises(MessageRefused, match=f"at most {2**31 + 1356} are allowed"):
        try_open(Huge(), max_bytes=2**60)
    with pytest.raises(ParameterError, match=f"payload must have at most {2**31 - 1} bytes"):
        seal(Huge(), slot=SLOT, sender=BANK, receiver=SERVER.public, to=TO)


@pytest.mark.parametrize("length", [0, 1, 1361, 1363, 2**31, 2**63, 2**64 - 1])
def test_a_wrong_length_is_refused_even_if_signed(length: int) -> None:
    with pytest.raises(MessageRefused, match=f"has 1362 bytes and says {length}; is it cut off"):
        try_open(by_hand(b"hello", length=length))


@pytest.mark.parametrize(
    ("version", "why"),
    [
        (1, "version 1, only 2 is read: older; the sender must update"),
        (3, "version 3, only 2 is read: newer; update splitmeans"),
        (255, "version 255, only 2 is read: newer"),
    ],
)
def test_other_versions_are_refused_even_if_signed(version: int, why: str) -> None:
    with pytest.raises(MessageRefused, match=why):
        try_open(by_hand(b"hello", version=version))
    with pytest.raises(MessageRefused, match=why):
        try_open(b"SMSE" + bytes([version]))


# ---- good messages in the wrong place ----


@pytest.mark.parametrize("part", OTHER_SLOTS)
def test_other_slots_are_refused_and_the_part_is_named(part: str) -> None:
    with pytest.raises(MessageRefused, match=f"its {part} is not the one expected here"):
        try_open(MESSAGE, slot=OTHER_SLOTS[part])
    other = seal(
        b"hello",
        slot=OTHER_SLOTS[part],
        sender=BANK,
        receiver=SERVER.public,
        to=SERVER.public.sealing_key,
    )
    with pytest.raises(MessageRefused, match=f"its {part} is not the one expected here"):
        try_open(other)


@pytest.mark.parametrize("part", OTHER_SLOTS)
def test_marks_alone_do_not_move_a_message(part: str) -> None:
    """The header of the slot that is expected, in front of what was sealed for another."""
    other = seal(
        b"hello",
        slot=OTHER_SLOTS[part],
        sender=BANK,
        receiver=SERVER.public,
        to=SERVER.public.sealing_key,
    )
    with pytest.raises(MessageRefused, match="its signature is wrong"):
        try_open(MESSAGE[:157] + other[157:])
    resigned = by_hand(b"hello", info=b"splitmeans sealed message 2\0" + OTHER_SLOTS[part].text)
    with pytest.raises(MessageRefused, match="signed, but not sealed to the key that it names"):
        try_open(resigned)


def test_other_senders_and_receivers_are_refused() -> None:
    with pytest.raises(MessageRefused, match="its sender's key is not the one expected here"):
        try_open(MESSAGE, sender=SHOP.public)
    with pytest.raises(MessageRefused, match="its receiver's key is not the one expected here"):
        try_open(MESSAGE, receiver=SHOP)
    half = PublicIdentity(signing=BANK.public.signing, sealing=SHOP.public.sealing)
    with pytest.raises(MessageRefused, match="its sender's key is not the one expected here"):
        try_open(MESSAGE, sender=half)


def test_a_message_sent_back_to_its_sender_is_refused() -> None:
    back = replace(SLOT, sender="server", receiver="bank")
    with pytest.raises(MessageRefused, match="its sender is not the one expected here"):
        try_open(MESSAGE, slot=back, sender=SERVER.public, receiver=BANK)
    with pytest.raises(MessageRefused, match="its sender's key is not the one"):
        try_open(MESSAGE, sender=SERVER.public, receiver=BANK)
    # Also between two names that share one identity, and to oneself.
    own = seal(b"hello", slot=SLOT, sender=BANK, receiver=BANK.public, to=BANK.public.sealing_key)
    with pytest.raises(MessageRefused, match="its sender is not the one expected here"):
        try_open(own, slot=back, receiver=BANK)


def test_a_body_from_another_message_is_refused() -> None:
    other = seal(
        b"HELLO", slot=SLOT, sender=BANK, receiver=SERVER.public, to=SERVER.public.sealing_key
    )
    for cut in (157 + 1088, 157 + 1120, len(MESSAGE) - 64):
        with pytest.raises(MessageRefused, match="its signature is wrong"):
            try_open(MESSAGE[:cut] + other[cut:])


# ---- forgeries: everything right but one step ----

INFO = b"splitmeans sealed message 2\0" + SLOT.text
FORGERIES: dict[str, tuple[dict[str, Any], str]] = {
    "signed by another": ({"signer": SHOP}, "signature is wrong"),
    "signed by the receiver": ({"signer": SERVER}, "signature is wrong"),
    "signed for another purpose": ({"prefix": b""}, "signature is wrong"),
    "signed without the identities": ({"signed_info": INFO}, "signature is wrong"),
    "sealed to another": (
        {"sealed_to": SHOP.public.sealing_key},
        "signed, but sealed to a key that is not here",
    ),
    "sealed to another, named as this": (
        {"sealed_to": SHOP.public.sealing_key, "named_key": SERVER.public.sealing_key},
        "signed, but not sealed to the key",
    ),
    "sealed without the identities": ({"info": INFO}, "signed, but not sealed to the key"),
    "another cipher": ({"aead": hpke.AEAD.CHACHA20_POLY1305}, "signed, but not sealed to the key"),
    "another key derivation": ({"kdf": hpke.KDF.HKDF_SHA512}, "signed, but not sealed to the key"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forgeries_are_refused(name: str) -> None:
    wrong, why = FORGERIES[name]
    with pytest.raises(MessageRefused, match=why):
        try_open(by_hand(b"hello", **wrong))


def test_an_insider_cannot_pass_on_anothers_secret_as_their_own() -> None:
    """The shop signs the bank's ciphertext anew: it was bound to the bank, so it stays closed."""
    slot = replace(SLOT, sender="shop")
    own = by_hand(b"hello", slot=slot, signer=SHOP, named=SHOP.public)
    stolen = own[:157] + MESSAGE[157:-64]
    digest = SERVER.public.sealing_key.digest
    info = module._info(slot, sender=SHOP.public, receiver=SERVER.public, sealed_to=digest)
    stolen += SHOP.sign(module._to_sign(info, stolen[:157], stolen[157:]))
    with pytest.raises(MessageRefused, match="signed, but not sealed to the key that it names"):
        try_open(stolen, slot=slot, sender=SHOP.public)


def test_nothing_is_decrypted_before_the_signature_is_good(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def reached(*args: object, **kwargs: object) -> bytes:
        raise AssertionError("decrypted")

    monkeypatch.setattr(OpeningKey, "decrypt", reached)
    with pytest.raises(MessageRefused, match="signature is wrong"):
        try_open(MESSAGE[:-1] + bytes([MESSAGE[-1] ^ 1]))
    with pytest.raises(AssertionError, match="decrypted"):
        try_open(MESSAGE)


# ---- vectors ----


def make_vectors() -> dict[str, Any]:
    """Return fresh vectors; encryption is random, so the stored ones are kept as they are."""
    foreign = replace(SLOT, sender="Möbel & Co", receiver="bank", kind="KeyContribution")
    cases = {
        "short payload": (SLOT, b"hello"),
        "no payload": (SLOT, b""),
        "names beyond ASCII": (foreign, bytes(range(256))),
    }
    good: list[dict[str, Any]] = []
    for what, (slot, payload) in cases.items():
        data = seal(
            payload,
            slot=slot,
            sender=PEOPLE[slot.sender],
            receiver=PEOPLE[slot.receiver].public,
            to=PEOPLE[slot.receiver].public.sealing_key,
        )
        good.append(
            {"what": what, "slot": asdict(slot), "payload": payload.hex(), "sealed": data.hex()}
        )
    first = bytes.fromhex(good[0]["sealed"])
    other_run = seal(
        b"hello",
        slot=OTHER_SLOTS["run"],
        sender=BANK,
        receiver=SERVER.public,
        to=SERVER.public.sealing_key,
    )
    bad = {
        "empty": (b"", "cut off"),
        "only the magic": (first[:4], "cut off"),
        "last byte missing": (first[:-1], "cut off"),
        "one byte more": (first + b"\0", "bytes and says"),
        "other magic": (b"SMW1" + first[4:], "does not start with the mark"),
        "older version, signed": (by_hand(b"hello", version=1), "older"),
        "newer version, signed": (by_hand(b"hello", version=3), "newer"),
        "length of 2^64 - 1, signed": (by_hand(b"hello", length=2**64 - 1), "bytes and says"),
        "another run": (other_run, "its run is not the one expected here"),
        "another run under this header": (first[:157] + other_run[157:], "signature is wrong"),
        "last bit of the signature": (first[:-1] + bytes([first[-1] ^ 1]), "signature is wrong"),
        **{name: (by_hand(b"hello", **wrong), why) for name, (wrong, why) in FORGERIES.items()},
    }
    return {
        "identities": {
            name: {
                **{f"{part}_seed": seed.hex() for part, seed in SEEDS[name].items()},
                "text": person.public.to_text(),
                "fingerprint": person.public.fingerprint,
            }
            for name, person in PEOPLE.items()
        },
        "good": good,
        "bad": [
            {"what": what, "slot": asdict(SLOT), "sealed": data.hex(), "refused": why}
            for what, (data, why) in bad.items()
        ],
    }


def stored() -> Any:
    return json.loads(VECTORS.read_text(encoding="utf-8"))


def test_vectors_have_the_cases_and_identities_that_the_generator_makes() -> None:
    fresh, kept = make_vectors(), stored()
    assert kept["identities"] == fresh["identities"]
    for group in ("good", "bad"):
        for entries in (fresh[group], kept[group]):
            for entry in entries:
                # Random parts: compared by their header and length only.
                data = entry.pop("sealed")
                entry["header"], entry["length"] = data[:250], len(data)
        assert kept[group] == fresh[group]


def test_good_vectors_open() -> None:
    for vector in stored()["good"]:
        slot = Slot(**vector["slot"])
        data = bytes.fromhex(vector["sealed"])
        sender, receiver = PEOPLE[slot.sender], PEOPLE[slot.receiver]
        payload = try_open(data, slot=slot, sender=sender.public, receiver=receiver)
        assert payload.hex() == vector["payload"], vector["what"]


def test_signatures_of_good_vectors_are_determined_by_what_they_cover() -> None:
    for vector in stored()["good"]:
        slot = Slot(**vector["slot"])
        data = bytes.fromhex(vector["sealed"])
        sender, receiver = PEOPLE[slot.sender], PEOPLE[slot.receiver].public
        digest = receiver.sealing_key.digest
        info = module._info(slot, sender=sender.public, receiver=receiver, sealed_to=digest)
        assert sender.sign(module._to_sign(info, data[:157], data[157:-64])) == data[-64:]


def test_bad_vectors_are_refused() -> None:
    for vector in stored()["bad"]:
        with pytest.raises(MessageRefused, match=re.escape(vector["refused"])):
            try_open(bytes.fromhex(vector["sealed"]), slot=Slot(**vector["slot"]))


if __name__ == "__main__":
    text = json.dumps(make_vectors(), indent=1, ensure_ascii=False)
    VECTORS.write_text(text + "\n", encoding="utf-8")
