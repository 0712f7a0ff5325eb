"""Keys of a home over the years: the current one, those before it, and keys that are refused.

key.json          the current key
keys/DIGEST.json  every key that this home ever renewed, and the one that followed it
keys/DIGEST.renewal   the signed word that another key follows this one
keys/DIGEST.revoked   a key, of anyone, that this home refuses, and why

A renewal can be interrupted at any instant: `key.json` is whole and is the old or the new key, no
key is ever lost, and the same command goes on. Runs that were begun with the old key end with it.
"""

import contextlib
import json
import os
import secrets
from datetime import UTC, datetime
from pathlib import Path

from splitmeans.errors import ParameterError
from splitmeans.run.home import sync_folder, write_file
from splitmeans.study import Study
from splitmeans.wire.identity import Identity, PublicIdentity
from splitmeans.wire.key_change import KeyRenewal, Revocation, read_revocation

KEYS = "keys"


def renew(key_file: Path, passphrase: str | None) -> KeyRenewal:
    """Give a home a new key that the old one has signed; go on if that was interrupted.

    The new key gets the passphrase of the old one.
    """
    old = Identity.load(key_file, passphrase)
    folder = key_file.parent / KEYS
    folder.mkdir(mode=0o700, exist_ok=True)
    word = folder / f"{_name(old.public)}.renewal"
    if word.exists():  # an earlier renewal of this very key did not come to its end
        renewal = KeyRenewal.from_text(word.read_text(encoding="utf-8"), where=str(word))
    else:
        new = Identity.new()
        new.save(folder / f"{_name(new.public)}.json", passphrase)
        renewal = KeyRenewal.make(old, new, time=now())
        write_file(word, renewal.to_text().encode())
    if renewal.old != old.public:
        raise ParameterError(f"{word} is about another key; move it away")
    with contextlib.suppress(FileExistsError):
        os.link(key_file, folder / f"{_name(old.public)}.json")
    sync_folder(folder)
    # The new key takes the place of the old one in one act; both stay in the folder.
    part = key_file.with_name(f".{key_file.name}.{secrets.token_hex(8)}.part")
    os.link(folder / f"{_name(renewal.new)}.json", part)
    os.replace(part, key_file)
    sync_folder(key_file.parent)
    return renewal


def key_for(key_file: Path, study: Study, participant: str) -> Path:
    """Return the key file that a study pins: the current one, or one from before a renewal."""
    text = study.public_keys.get(participant)
    if text is None:
        return key_file
    older = key_file.parent / KEYS / f"{_name(PublicIdentity.from_text(text))}.json"
    with contextlib.suppress(ParameterError):
        if Identity.load_public(key_file).to_text() == text:
            return key_file
    return older if older.exists() else key_file


def refuse_key(home: Path, said: Revocation, text: str) -> None:
    """Remember that a key must not be used any more; doing so again changes nothing."""
    folder = home / KEYS
    folder.mkdir(mode=0o700, exist_ok=True)
    path = folder / f"{said.digest[:32]}.revoked"
    if not path.exists():
        write_file(path, text.encode())


def local_revocation(digest: str, *, reason: str) -> tuple[Revocation, str]:
    """Return a revocation that nobody signed, for a home that was told by telephone."""
    facts = {"digest": digest, "reason": reason, "time": now()}
    return Revocation(**facts, is_signed=False), json.dumps(facts) + "\n"


def check_not_revoked(home: Path, study: Study) -> None:
    """Refuse a study with a key that this home knows to be revoked.

    Raises:
        ParameterError: It names the participant and the reason.
    """
    for name, text in study.public_keys.items():
        key = PublicIdentity.from_text(text)
        if (said := revocation_of(home, key)) is not None:
            by = "its owner" if said.is_signed else "this home"
            raise ParameterError(
                f"the key of {name!r} in study {study.name!r} (fingerprint {key.fingerprint}) was "
                f"revoked by {by} on {said.time[:10]}: {said.reason}. Nothing was sent; agree on a "
                f"study with a new key of {name!r} (`splitmeans study rekey`, or a new study if "
                "the old key cannot vouch for the new one)"
            )


def revocation_of(home: Path, key: PublicIdentity) -> Revocation | None:
    """Return why a key is refused, None if it is not.

    Raises:
        ParameterError: What the home says about it cannot be read.
    """
    path = home / KEYS / f"{_name(key)}.revoked"
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise ParameterError(f"{path} cannot be read: {problem.strerror}") from None
    with contextlib.suppress(ValueError, TypeError):
        return Revocation(**json.loads(text), is_signed=False)
    return read_revocation(text, where=str(path))


def now() -> str:
    """Return the time as the files have it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _name(key: PublicIdentity) -> str:
    return key.digest.hex()[:32]
