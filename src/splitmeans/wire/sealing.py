"""Key pairs that messages are sealed to: HPKE (RFC 9180) with ML-KEM-768 and X25519 ("X-Wing").

Recorded messages stay closed as long as either of the two is unbroken. A participant has one such
pair in its identity, and a fresh one for every run, so that a stolen identity opens no old run.
"""

import hashlib
import secrets
from dataclasses import dataclass
from typing import NoReturn

from cryptography.hazmat.primitives import hpke
from cryptography.hazmat.primitives.asymmetric import mlkem, x25519

from splitmeans.errors import ParameterError

SEALING_BYTES = 1216  # ML-KEM-768 key (1184), then X25519 key (32), as X-Wing has them
SEAL_BYTES = 1136  # encapsulated keys (1120) and the authentication tag (16)
SEED_BYTES = 32
SEALING_DIGEST_BYTES = 32

_SUITE = hpke.Suite(hpke.KEM.MLKEM768_X25519, hpke.KDF.HKDF_SHA256, hpke.AEAD.AES_256_GCM)
_DIGEST_PREFIX = b"splitmeans sealing key 1\0"


@dataclass(frozen=True, repr=False)
class SealingKey:
    """The public half, to which anyone can seal.

    Attributes:
        data: ML-KEM-768 and X25519 public keys, 1216 bytes.
    """

    data: bytes

    def __post_init__(self) -> None:
        if not isinstance(self.data, bytes) or len(self.data) != SEALING_BYTES:
            raise ParameterError(f"sealing key must be {SEALING_BYTES} bytes")
        _refuse_weak_point(self.data[-32:])
        self._key()

    def __repr__(self) -> str:
        return f"<SealingKey {self.digest.hex()[:12]} ...>"

    @property
    def digest(self) -> bytes:
        """SHA-256 of the key; a sealed message says by it what it was sealed to."""
        return hashlib.sha256(_DIGEST_PREFIX + self.data).digest()

    def encrypt(self, payload: bytes, *, info: bytes) -> bytes:
        """Return the payload encrypted to this key; it opens only with the same `info`."""
        return _SUITE.encrypt(payload, self._key(), info=info)

    def _key(self) -> hpke.MLKEM768X25519PublicKey:
        try:
            lattice = mlkem.MLKEM768PublicKey.from_public_bytes(self.data[:-32])
        except ValueError as problem:
            raise ParameterError("sealing key is not an ML-KEM-768 public key") from problem
        curve = x25519.X25519PublicKey.from_public_bytes(self.data[-32:])
        return hpke.MLKEM768X25519PublicKey(lattice, curve)


class OpeningKey:
    """The private half. Never printed, never pickled.

    Args:
        seed: 32 secret bytes, from which both keys of X-Wing are expanded.
    """

    __slots__ = ("_key", "public", "seed")

    def __init__(self, seed: bytes) -> None:
        if len(seed) != SEED_BYTES:
            raise ParameterError(f"seed of a sealing key must be {SEED_BYTES} bytes")
        self.seed = seed
        # The expansion of X-Wing: one seed gives the keys of both of its parts.
        expanded = hashlib.shake_256(seed).digest(96)
        lattice = mlkem.MLKEM768PrivateKey.from_seed_bytes(expanded[:64])
        curve = x25519.X25519PrivateKey.from_private_bytes(expanded[64:])
        self._key = hpke.MLKEM768X25519PrivateKey(lattice, curve)
        self.public = SealingKey(
            lattice.public_key().public_bytes_raw() + curve.public_key().public_bytes_raw()
        )

    @staticmethod
    def new() -> "OpeningKey":
        """Make a fresh pair."""
        return OpeningKey(secrets.token_bytes(SEED_BYTES))

    def __repr__(self) -> str:
        return f"<OpeningKey {self.public.digest.hex()[:12]} ...>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("an OpeningKey is private and cannot be pickled or copied")

    def decrypt(self, ciphertext: bytes | memoryview, *, info: bytes) -> bytes:
        """Return what was encrypted to this key under `info`, or raise `InvalidTag`."""
        return _SUITE.decrypt(ciphertext, self._key, info=info)


def _refuse_weak_point(curve: bytes) -> None:
    """Refuse a public key of small order, for which anyone can read."""
    probe = x25519.X25519PrivateKey.from_private_bytes(b"\x01" * 32)
    try:
        probe.exchange(x25519.X25519PublicKey.from_public_bytes(curve))
    except ValueError:
        raise ParameterError("sealing key is not a usable X25519 public key") from None
