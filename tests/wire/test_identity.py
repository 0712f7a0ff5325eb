import copy
import hashlib
import json
import os
import pickle
import stat
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from splitmeans.errors import ParameterError
from splitmeans.wire import identity as module
from splitmeans.wire.identity import Identity, PublicIdentity, spoken

# Seed and ends of the public key of the first test vector of draft-connolly-cfrg-xwing-kem.
XWING_SEED = "7f9c2ba4e88f827d616045507605853ed73b8093f6efbc88eb1a6eacfa66ef26"
XWING_START = "e2236b35a8c24b39b10aa1323a96a919a2ced88400633a7b07131713fc14b2b5"
XWING_END = "cd049040ef6534"
# Secret and public key of the first test vector of RFC 8032, section 7.1.
RFC8032_SEED = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"
RFC8032_PUBLIC = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"

BANK = Identity(signing=bytes.fromhex(RFC8032_SEED), sealing=bytes.fromhex(XWING_SEED))
TEXT = BANK.public.to_text()

needs_modes = pytest.mark.skipif(os.name != "posix", reason="file modes mean something on POSIX")


@pytest.fixture
def cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_COST", 2**15)


# ---- public identity ----


def test_keys_are_the_standard_ones() -> None:
    assert BANK.public.signing.hex() == RFC8032_PUBLIC
    assert BANK.public.sealing.hex().startswith(XWING_START)
    assert BANK.public.sealing.hex().endswith(XWING_END)


def test_spoken_by_hand() -> None:
    assert spoken(bytes(32)) == " ".join(["00000"] * 8)
    assert spoken((1234567).to_bytes(32, "big")) == " ".join(["00000"] * 6 + ["00012", "34567"])
    assert spoken((10**40 + 5).to_bytes(32, "big")) == " ".join(["00000"] * 7 + ["00005"])
    assert spoken("00" * 31 + "ff") == " ".join(["00000"] * 7 + ["00255"])
    assert spoken("00" * 31 + "FF") == spoken(b"\0" * 31 + b"\xff")


@pytest.mark.parametrize("digest", ["", "ab", "x" * 64, "ab" * 33, b"", bytes(31), 5, "٣" * 64])
def test_spoken_refuses_what_is_no_digest(digest: object) -> None:
    with pytest.raises(ParameterError, match="digest must be 32 bytes or 64 hexadecimal digits"):
        spoken(digest)  # type: ignore[arg-type]


def test_fingerprint_is_the_spoken_digest_of_both_keys() -> None:
    public = BANK.public
    digest = hashlib.sha256(b"splitmeans identity 1\0" + public.signing + public.sealing)
    assert public.fingerprint == spoken(digest.hexdigest())
    assert [len(group) for group in public.fingerprint.split(" ")] == [5] * 8
    other = PublicIdentity(signing=Identity.new().public.signing, sealing=public.sealing)
    assert other.fingerprint != public.fingerprint


def test_text_round_trip() -> None:
    assert TEXT.startswith("smid1-")
    assert len(TEXT) == 1678
    assert PublicIdentity.from_text(TEXT) == BANK.public
    assert PublicIdentity.from_text(f"  {TEXT}\n") == BANK.public


@settings(max_examples=50, deadline=None)
@given(place=st.integers(6, 1677), letter=st.sampled_from("ABCDEFGHabcdefgh01234567-_"))
def test_one_wrong_letter_is_noticed(place: int, letter: str) -> None:
    changed = TEXT[:place] + letter + TEXT[place + 1 :]
    if changed != TEXT:
        with pytest.raises(ParameterError, match="typing error: its checksum does not fit"):
            PublicIdentity.from_text(changed)


def test_two_letters_swapped_are_noticed() -> None:
    place = next(index for index in range(6, 1677) if TEXT[index] != TEXT[index + 1])
    changed = TEXT[:place] + TEXT[place + 1] + TEXT[place] + TEXT[place + 2 :]
    with pytest.raises(ParameterError, match="typing error"):
        PublicIdentity.from_text(changed)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "must start with 'smid1-'"),
        ('{"format": "splitmeans private key 1"}', "must start with 'smid1-'"),
        (TEXT.upper(), "must start with 'smid1-'"),
        ("smid2-" + TEXT[6:], "has version 2, this splitmeans reads version 1 only"),
        ("smid01-" + TEXT[6:], "has version 01"),
        (TEXT[:-1], "must have 1678 characters, got 1677; was it cut"),
        (TEXT + "A", "must have 1678 characters, got 1679"),
        (TEXT[:100] + "\n" + TEXT[100:], "on one line; character 101 is not"),
        (TEXT[:8] + "=" + TEXT[9:], "on one line; character 9 is not"),
        (TEXT[:8] + "é" + TEXT[9:], "on one line; character 9 is not"),
        (None, "identity must be a text"),
    ],
)
def test_from_text_says_what_is_wrong(text: str, why: str) -> None:
    with pytest.raises(ParameterError, match=why):
        PublicIdentity.from_text(text)


def test_keys_of_the_wrong_size_are_refused() -> None:
    with pytest.raises(ParameterError, match="signing key must be 32 bytes"):
        PublicIdentity(signing=bytes(31), sealing=BANK.public.sealing)
    with pytest.raises(ParameterError, match="sealing key must be 1216 bytes"):
        PublicIdentity(signing=BANK.public.signing, sealing=bytes(1215))
    with pytest.raises(ParameterError, match="seeds of an identity must be 32 bytes"):
        Identity(signing=bytes(31), sealing=bytes(32))


PRIME = 2**255 - 19
# y of two of the four points of order 8; the other two have its negative.
ORDER_8 = int.from_bytes(
    bytes.fromhex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"), "little"
)


@pytest.mark.parametrize("sign", [0, 1])
@pytest.mark.parametrize("y", [0, 1, PRIME - 1, PRIME, PRIME + 1, ORDER_8, PRIME - ORDER_8])
def test_signing_keys_that_anyone_can_sign_for_are_refused(y: int, sign: int) -> None:
    key = (y + sign * 2**255).to_bytes(32, "little")
    with pytest.raises(ParameterError, match="not a usable Ed25519 public key"):
        PublicIdentity(signing=key, sealing=BANK.public.sealing)


def test_sealing_keys_that_no_one_can_use_are_refused() -> None:
    signing, sealing = BANK.public.signing, BANK.public.sealing
    with pytest.raises(ParameterError, match="not a usable X25519 public key"):
        PublicIdentity(signing=signing, sealing=sealing[:-32] + bytes(32))
    with pytest.raises(ParameterError, match="not an ML-KEM-768 public key"):
        PublicIdentity(signing=signing, sealing=b"\xff" * 1184 + sealing[-32:])


def test_signatures() -> None:
    signature = BANK.sign(b"data")
    assert BANK.public.verify(b"data", signature)
    assert not BANK.public.verify(b"date", signature)
    assert not BANK.public.verify(b"data", signature[:-1])
    assert not BANK.public.verify(b"data", signature + b"\0")
    assert not BANK.public.verify(b"data", b"")
    assert not Identity.new().public.verify(b"data", signature)


# ---- private identity ----


def test_new_identities_differ() -> None:
    one, two = Identity.new().public, Identity.new().public
    assert one.signing != two.signing
    assert one.sealing != two.sealing


def test_secrets_are_not_shown_pickled_or_copied() -> None:
    for shown in (repr(BANK), str(BANK), f"{BANK}", repr([BANK]), repr(BANK.public)):
        assert RFC8032_SEED not in shown
        assert len(shown) < 60
    assert not hasattr(BANK, "__dict__")
    for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="holds private keys and cannot be pickled or copied"):
            attempt(BANK)


def test_file_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "bank.key"
    BANK.save(path)
    assert Identity.load(path).public == BANK.public
    assert Identity.load(str(path)).sign(b"x") == BANK.sign(b"x")
    assert [item.name for item in tmp_path.iterdir()] == ["bank.key"]


@pytest.mark.usefixtures("cheap")
def test_file_round_trip_with_passphrase(tmp_path: Path) -> None:
    path = tmp_path / "bank.key"
    BANK.save(path, "Schlüssel")
    assert RFC8032_SEED not in path.read_text()
    assert XWING_SEED not in path.read_text()
    # The same word with its accent as a letter of its own, as some keyboards type it.
    assert Identity.load(path, "Schlu\u0308ssel").public == BANK.public
    with pytest.raises(ParameterError, match=r"passphrase of key file .*bank.key is wrong, or"):
        Identity.load(path, "Schlussel")
    with pytest.raises(ParameterError, match=r"bank.key is protected: give its passphrase"):
        Identity.load(path)
    with pytest.raises(ParameterError, match="passphrase must not be empty"):
        Identity.load(path, "")


@pytest.mark.usefixtures("cheap")
def test_the_public_half_needs_no_passphrase(tmp_path: Path) -> None:
    path, open_path = tmp_path / "bank.key", tmp_path / "open.key"
    BANK.save(path, "word")
    BANK.save(open_path)
    assert Identity.load_public(path) == Identity.load_public(open_path) == BANK.public
    # A changed public half is found out: at once without a passphrase, else when it is given.
    other = Identity.new().public.to_text()
    for file in (path, open_path):
        file.write_text(file.read_text().replace(BANK.public.to_text(), other))
    with pytest.raises(ParameterError, match=r"open.key is damaged: its two halves do not fit"):
        Identity.load_public(open_path)
    with pytest.raises(ParameterError, match=r"is wrong, or the file is damaged"):
        Identity.load(path, "word")
    path.write_text(path.read_text().replace(other, other[:-1]))
    with pytest.raises(ParameterError, match=r"bank.key is damaged: identity text must have"):
        Identity.load_public(path)


def test_default_cost_is_allowed_when_read() -> None:
    assert module._COST in module._COSTS


def test_unwanted_passphrases_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="passphrase must not be empty"):
        BANK.save(tmp_path / "empty.key", "")
    assert list(tmp_path.iterdir()) == []
    BANK.save(tmp_path / "open.key")
    with pytest.raises(ParameterError, match=r"open.key has no passphrase, but one was given"):
        Identity.load(tmp_path / "open.key", "word")


@needs_modes
def test_file_is_private_whatever_the_umask(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        BANK.save(tmp_path / "bank.key")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "bank.key").stat().st_mode) == 0o600


@needs_modes
@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o610, 0o777])
def test_files_that_others_can_use_are_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "bank.key"
    BANK.save(path)
    path.chmod(mode)
    with pytest.raises(ParameterError, match=r"other users of this machine; run: chmod 600 .*key"):
        Identity.load(path)


def test_existing_files_are_never_replaced(tmp_path: Path) -> None:
    path = tmp_path / "bank.key"
    path.write_text("precious")
    with pytest.raises(ParameterError, match=r"key file .*bank.key exists; keys are never repl"):
        BANK.save(path)
    assert path.read_text() == "precious"
    (tmp_path / "link.key").symlink_to(tmp_path / "nowhere")
    with pytest.raises(ParameterError, match=r"link.key exists"):
        BANK.save(tmp_path / "link.key")
    assert sorted(item.name for item in tmp_path.iterdir()) == ["bank.key", "link.key"]


def test_failed_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ParameterError, match=r"bank.key cannot be written: No space left"):
        BANK.save(tmp_path / "bank.key")
    assert list(tmp_path.iterdir()) == []


def test_places_without_a_key_file(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"none.key cannot be read: No such file"):
        Identity.load(tmp_path / "none.key")
    with pytest.raises(ParameterError, match=r"cannot be read: Is a directory|is not a file"):
        Identity.load(tmp_path)
    with pytest.raises(ParameterError, match=r"cannot be written: No such file"):
        BANK.save(tmp_path / "none" / "bank.key")


@needs_modes
def test_a_pipe_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.key", 0o600)
    with pytest.raises(ParameterError, match=r"pipe.key is not a file"):
        Identity.load(tmp_path / "pipe.key")


# ---- damaged and hostile key files ----


def write_private(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    path.chmod(0o600)
    return path


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        "null",
        "7",
        "[" * 10_000,
        "9" * 10_000,
        b"\xff\xfe\x00",
        TEXT,
        '{"format": "splitmeans private key 1"}',
    ],
)
def test_files_that_are_no_key_files(tmp_path: Path, text: str | bytes) -> None:
    with pytest.raises(ParameterError, match=r"x.key is damaged, or not a splitmeans key file"):
        Identity.load(write_private(tmp_path / "x.key", text))


def test_large_files_are_not_read(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"key file .*x.key is too large: at most 16384 bytes"):
        Identity.load(write_private(tmp_path / "x.key", "[" * 20_000))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"format": "splitmeans private key 2"}, "must have format 'splitmeans private key 1'"),
        ({"format": 1}, "must have format 'splitmeans private key 1'"),
        ({"public": 5}, "is damaged, or not"),
        ({"public": Identity.new().public.to_text()}, "is damaged: its two halves do not fit"),
        ({"secret": "ab"}, "is damaged, or not"),
        ({"secret": "zz" * 64}, "is damaged, or not"),
        ({"secret": None}, "is damaged, or not"),
        ({"secret": "00" * 64}, "is damaged: its two halves do not fit"),
        ({"more": 1}, "is damaged, or not"),
        ({"scrypt": {}}, "is damaged, or not"),
        ({"scrypt": 5}, "is damaged, or not"),
    ],
)
def test_changed_files(tmp_path: Path, change: dict[str, object], why: str) -> None:
    BANK.save(tmp_path / "bank.key")
    document = json.loads((tmp_path / "bank.key").read_text()) | change
    with pytest.raises(ParameterError, match=f"x.key {why}"):
        Identity.load(write_private(tmp_path / "x.key", json.dumps(document)))


@pytest.mark.usefixtures("cheap")
@pytest.mark.parametrize("cost", [2**40, 2**19, 2**14, 2**17 + 1, 0, -1, 32768.0, "32768", None])
def test_cost_is_bounded_before_memory_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cost: object
) -> None:
    BANK.save(tmp_path / "bank.key", "word")
    document = json.loads((tmp_path / "bank.key").read_text())
    document["scrypt"]["n"] = cost
    path = write_private(tmp_path / "x.key", json.dumps(document))
    monkeypatch.setattr(module, "Scrypt", None)  # must not be reached
    with pytest.raises(ParameterError, match=r"x.key is damaged: scrypt's n must be one of"):
        Identity.load(path, "word")


@pytest.mark.usefixtures("cheap")
def test_every_part_of_a_protected_file_is_covered(tmp_path: Path) -> None:
    BANK.save(tmp_path / "bank.key", "word")
    document = json.loads((tmp_path / "bank.key").read_text())
    flipped = f"{int(document['secret'][30], 16) ^ 1:x}"
    secret = document["secret"][:30] + flipped + document["secret"][31:]
    for number, change in enumerate(
        [
            {"secret": secret},
            {"public": Identity.new().public.to_text()},
            {"scrypt": {"n": 2**16, "salt": document["scrypt"]["salt"]}},
            {"scrypt": {"n": 2**15, "salt": "00" * 32}},
        ]
    ):
        path = write_private(tmp_path / f"{number}.key", json.dumps(document | change))
        with pytest.raises(ParameterError, match=r"is wrong, or the file is damaged"):
            Identity.load(path, "word")
