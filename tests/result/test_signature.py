"""What is signed, byte by byte: made again here by hand from the words of docs/reference/files.md.

`tests/vectors/signed_result.json` holds facts, the bytes that are signed and a signature by the
Ed25519 key of the seed 00 01 02 ... 1f; numbers and texts in it were chosen, not measured.
"""

import hashlib
import json
import struct
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric import ed25519

from splitmeans.plan.statement import PrivacyReport
from splitmeans.result import signed
from splitmeans.result.signed import (
    SignedFacts,
    privacy_hash,
    segments_hash,
    statement_hash,
    statement_to_compare,
)
from splitmeans.wire.identity import Identity
from tests.scene import keyed_study

VECTORS = json.loads(
    (Path(__file__).parents[1] / "vectors" / "signed_result.json").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("vector", VECTORS["signed"], ids=lambda vector: vector["name"])
def test_signed_bytes(vector):
    facts = SignedFacts(**vector["facts"])
    text = json.dumps(vector["facts"], sort_keys=True, separators=(",", ":"))
    assert facts.data == b"splitmeans result 2\n" + text.encode() == vector["data"].encode()
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


@pytest.mark.parametrize("part", ["statement", "values", "certificate"])
def test_what_is_compared_before_a_release_has_every_part(part, monkeypatch):
    report = PrivacyReport.for_study(keyed_study(n_local_clusters="auto"))
    before = statement_to_compare(report)
    match part:
        case "statement":
            monkeypatch.setattr(PrivacyReport, "statement", lambda self: "no noise")
        case "values":
            monkeypatch.setattr(PrivacyReport, "to_mapping", lambda self: {"epsilon": 9.0})
        case "certificate":
            monkeypatch.setattr(signed, "claims_of", lambda plan: {"epsilon": 9.0})
    assert statement_to_compare(report) != before


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

    privacy = VECTORS["privacy"]
    text = '{"caveats":["\\u00e9"],"secure_noise":true,"total":{"delta":1e-05,"epsilon":0.999999}}'
    assert hashlib.sha256(text.encode()).hexdigest() == privacy["sha256"]
    assert privacy_hash(privacy["value"]) == privacy["sha256"]
    statement = VECTORS["statement"]
    assert statement_hash(statement["text"]) == statement["sha256"]
