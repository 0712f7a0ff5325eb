"""Noise that is drawn once however often it is drawn: exact discrete noise from a secret key.

The server's noise E protects users from the parties as long as they see one draw of it. A server
that lost its home, or a second one with the same key, must not draw again: it derives the same draw
from its private key and from what it was sent (`run.server`). Whoever does not have the key sees
noise that cannot be told from fresh noise, up to the security of ChaCha20 and HMAC-SHA256.
"""

import hmac
from dataclasses import dataclass, field

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

from splitmeans._types import IntArray, WordArray
from splitmeans.errors import ParameterError
from splitmeans.privacy import exact_noise
from splitmeans.privacy.exact_noise import RandomBytes

KEY_BYTES = 32


@dataclass(frozen=True, repr=False)
class KeyedNoise:
    """A source whose draws follow from a secret key; a source is used for one sequence of draws.

    Args:
        key: 32 secret bytes that nothing else is derived from.
    """

    key: bytes
    secure: bool = field(default=True, init=False)

    def __post_init__(self) -> None:
        if len(self.key) != KEY_BYTES:
            raise ParameterError(f"key must be {KEY_BYTES} bytes")
        cipher = Cipher(algorithms.ChaCha20(self.key, bytes(16)), mode=None).encryptor()
        tape = RandomBytes(lambda n_bytes: cipher.update(bytes(n_bytes)))
        object.__setattr__(self, "_tape", tape)

    _tape: RandomBytes = field(init=False, compare=False, default=None)  # type: ignore[assignment]

    def laplace(self, scale: float, size: int) -> IntArray:
        """Draw discrete Laplace noise with exact arithmetic."""
        return exact_noise.laplace(scale, size, self._tape)

    def gaussian(self, scale: float, size: int) -> IntArray:
        """Draw discrete Gaussian noise with exact arithmetic."""
        return exact_noise.gaussian(scale, size, self._tape)

    def words(self, size: int) -> WordArray:
        """Draw uniform words."""
        return np.frombuffer(self._tape.take(8 * size), dtype="<u8").astype(np.uint64)

    def spawn(self, label: str) -> "KeyedNoise":
        """Return the source that this key gives to `label`, whatever was drawn before."""
        text = b"splitmeans noise 1\0" + label.encode()
        return KeyedNoise(hmac.digest(self.key, text, "sha256"))
