"""What is signed, byte by byte: made again here by hand from the words of docs/reference/files.md.

`tests/vectors/signed_result.json` holds facts, the bytes that are signed and a signature by the
Ed25519 key of the seed 00 01 02 ... 1f; numbers and texts in it were chosen, not measured.
"""

import dataclasses
import hashlib
import json
import struct
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric import ed25519

from splitmeans.plan.facts import PrivacyFacts
from splitmeans.plan.settle import make_plan
from splitmeans.result.contents import FORMAT
from splitmeans.result.publish import read_published
from splitmeans.result.signed import (
    SignedFacts,
    facts_of,
    privacy_to_compare,
    rounded_hash,
    segments_hash,
)
from splitmeans.study.id_rules import AS_IS
from splitmeans.wire.identity import Identity
from tests.result.small_result import small_message, small_study
from tests.scene import keyed_study

VECTORS = json.loads(
    (Path(__file__).parents[1] / "vectors" / "signed_result.json").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("vector", VECTORS["signed"], ids=lambda vector: vector["name"])
def test_signed_bytes(vector):
    facts = SignedFacts(**vector["facts"])
    text = json.dumps(vector["facts"], sort_keys=True, separators=(",", ":"))
    assert facts.data == b"splitmeans result 3\n" + text.encode() == vector["data"].encode()
    assert facts.digest == hashlib.sha256(facts.data).hexdigest() == vector["digest"]
    seed = bytes.fromhex(VECTORS["signing_seed"])
    key = ed25519.Ed25519PrivateKey.from_private_bytes(seed)
    assert key.public_key().public_bytes_raw().hex() == VECTORS["public"]
    assert key.sign(facts.data).hex() == vector["signature"]
    identity = Identity(signing=seed, sealing=seed)
    assert facts.signed_by(identity.public.to_text(), bytes.fromhex(vector["signature"]))


@pytest.mark.parametrize("field", list(VECTORS["signed"][0]["facts"]))
def test_every_fact_is_under_the_signature(field):
    vector = VECTORS["signed"][0]
    seed = bytes.fromhex(VECTORS["signing_seed"])
    key = Identity(signing=seed, sealing=seed).public.to_text()
    other = [[[1]]] if field == "released" else vector["facts"][field] + "0"
    changed = SignedFacts(**vector["facts"] | {field: other})
    assert not changed.signed_by(key, bytes.fromhex(vector["signature"]))


def test_every_part_of_a_result_is_among_the_facts():
    plan = make_plan(small_study(user_sets="partial", ids=AS_IS))
    presence = np.array([300, 200, 400])
    message = dataclasses.replace(small_message(plan), presence=presence)
    privacy, synopsis = PrivacyFacts.of(plan), read_published(plan, message)
    parts = {
        "centres": message.centres,
        "sizes": message.sizes,
        "presence": presence,
        "run": "1",
        "published_at": "2026-01-31T12:00:00Z",
    }
    changed = {name: f"{own}0" if isinstance(own, str) else own + 1 for name, own in parts.items()}
    found = {facts_of(plan, privacy, synopsis, **parts).data}
    found |= {
        facts_of(plan, privacy, synopsis, **parts | {name: own}).data
        for name, own in changed.items()
    }
    other = dataclasses.replace(synopsis, weights=synopsis.weights + 1)
    found.add(facts_of(plan, privacy, other, **parts).data)
    assert len(found) == 2 + len(parts)


def test_what_is_compared_before_a_release_is_all_that_is_signed_of_privacy(monkeypatch):
    plan = make_plan(keyed_study())
    before = privacy_to_compare(plan, secure_noise=True)
    assert before == rounded_hash(PrivacyFacts.of(plan).to_mapping())
    assert privacy_to_compare(plan, secure_noise=False) != before
    monkeypatch.setattr(PrivacyFacts, "to_mapping", lambda self: {"epsilon": 9.0})
    assert privacy_to_compare(plan, secure_noise=True) != before


def test_hashes_of_parts():
    segments = VECTORS["segments"]
    by_hand = (
        b"<f8 [2, 2]\n"
        + struct.pack("<4d", *np.ravel(segments["centres"]))
        + b"<f8 [2]\n"
        + struct.pack("<2d", *segments["sizes"])
    )
    assert hashlib.sha256(by_hand).hexdigest() == segments["sha256"]
    found = segments_hash(np.array(segments["centres"]), np.array(segments["sizes"]))
    assert found == segments["sha256"]

    value = {"caveats": ["é"], "secure_noise": True, "total": {"delta": 1e-5, "epsilon": 0.9999991}}
    text = '{"caveats":["\\u00e9"],"secure_noise":true,"total":{"delta":1e-05,"epsilon":0.999999}}'
    assert rounded_hash(value) == hashlib.sha256(text.encode()).hexdigest()
    privacy = VECTORS["privacy"]
    assert rounded_hash(privacy["value"]) == privacy["sha256"]


def test_the_statement_follows_from_the_facts_in_words_of_this_format():
    """A reader makes the text again, so other words for the same facts need another format."""
    facts = PrivacyFacts.from_mapping(VECTORS["privacy"]["value"], where="facts")
    assert facts.to_mapping() == VECTORS["privacy"]["value"]
    assert VECTORS["statement"]["result_format"] == FORMAT
    assert facts.statement().split("\n") == VECTORS["statement"]["lines"]
