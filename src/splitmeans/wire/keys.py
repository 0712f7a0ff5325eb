"""Keys of one run: every party adds a fresh contribution, the server learns none of them.

The run key is HKDF over all contributions, salted with the hash of study, run and plan; each
purpose gets its own subkey by label (rule R1), so that no two uses of randomness can ever be the
same stream.
"""

import hmac
from collections.abc import Iterable, Mapping
from hashlib import sha256

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from splitmeans.errors import ProtocolError

CONTRIBUTION_BYTES = 32
HASH_KEY_BYTES = 16

# The purposes a run key has; nothing else may be derived from it.
USER_REGISTERS = "user-registers"
PHANTOM_REGISTERS = "phantom-registers"
USER_TAG = "user-tag"
DECOY_TAG = "decoy-tag"
DECOY_COUNT = "decoy-count"
SAMPLE = "sample"
COLUMNS = "columns"
CONFIRM = "confirm"
_LABELS = (
    USER_REGISTERS,
    PHANTOM_REGISTERS,
    USER_TAG,
    DECOY_TAG,
    DECOY_COUNT,
    SAMPLE,
    COLUMNS,
    CONFIRM,
)


def run_key(contributions: Mapping[str, bytes], *, transcript: bytes) -> bytes:
    """Combine the contributions of all parties, by party name, into the key of this run.

    `transcript` is the hash of study, run and plan: parties who differ in any of them get
    different keys.
    """
    for party, secret in contributions.items():
        if len(secret) != CONTRIBUTION_BYTES:
            raise ProtocolError(
                f"key contribution of {party!r} must be {CONTRIBUTION_BYTES} bytes, "
                f"got {len(secret)}"
            )
    # Names are hashed to a fixed width, so that no two sets of contributions share their bytes.
    material = b"".join(
        sha256(party.encode()).digest() + contributions[party] for party in sorted(contributions)
    )
    return _hkdf(material, salt=transcript, info=b"splitmeans run key 1", length=32)


def subkey(key: bytes, label: str, *, group: tuple[int, ...] = ()) -> bytes:
    """Return the 128-bit key for one purpose of a run, within one group of parties.

    A group is the positions of parties that share a release, such as a pair; nothing that is
    derived for one group links to another.
    """
    if label not in _LABELS:
        raise ProtocolError(f"no subkey is defined for {label!r}")
    place = "-".join(str(position) for position in group)
    info = f"splitmeans subkey 1 {label} {place}".encode()
    return _hkdf(key, salt=b"", info=info, length=HASH_KEY_BYTES)


def keyed_digest(key: bytes, pieces: Iterable[bytes]) -> bytes:
    """Return HMAC-SHA256 of all pieces in a row.

    For values that parties compare without showing them to the server.
    """
    code = hmac.new(key, digestmod=sha256)
    for piece in pieces:
        code.update(piece)
    return code.digest()


def _hkdf(material: bytes, *, salt: bytes, info: bytes, length: int) -> bytes:
    return HKDF(algorithm=SHA256(), length=length, salt=salt, info=info).derive(material)
