"""Noise that is drawn once however often it is drawn: exact discrete noise from a secret key.

The server's noise E protects users from the parties as long as they see one draw of it. A server
that lost its home, or a second one with the same key, must not draw again: it derives the same draw
from its private key and from what it was sent (`run.server`). Whoever does not have the key sees
noise that cannot be told from fresh noise, up to the security of ChaCha20 and HMAC-SHA256.

The samplers are those of Canonne, Kamath and Steinke, "The Discrete Gaussian for Differential
Privacy" (2020), in whole numbers: no rounding anywhere. OpenDP's are the same, but take their
randomness from the operating system only.
"""

import hmac
import math
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

from splitmeans import _validate
from splitmeans._types import IntArray, WordArray
from splitmeans.errors import ParameterError

KEY_BYTES = 32
_BLOCK_BYTES = 1 << 16


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
        object.__setattr__(self, "_stream", _Stream(self.key))

    _stream: "_Stream" = field(init=False, compare=False, default=None)  # type: ignore[assignment]

    def laplace(self, scale: float, size: int) -> IntArray:
        """Draw discrete Laplace noise with exact arithmetic."""
        _validate.positive(scale=scale)
        exact = Fraction(scale)
        drawn = [_laplace(exact, self._stream) for _ in range(size)]
        return np.array(drawn, dtype=np.int64)

    def gaussian(self, scale: float, size: int) -> IntArray:
        """Draw discrete Gaussian noise with exact arithmetic."""
        _validate.positive(scale=scale)
        exact = Fraction(scale)
        drawn = [_gaussian(exact, self._stream) for _ in range(size)]
        return np.array(drawn, dtype=np.int64)

    def words(self, size: int) -> WordArray:
        """Draw uniform words."""
        return np.frombuffer(self._stream.take(8 * size), dtype="<u8").astype(np.uint64)

    def spawn(self, label: str) -> "KeyedNoise":
        """Return the source that this key gives to `label`, whatever was drawn before."""
        text = b"splitmeans noise 1\0" + label.encode()
        return KeyedNoise(hmac.digest(self.key, text, "sha256"))


class _Stream:
    """The bytes of ChaCha20 under a key that is used for this stream alone."""

    def __init__(self, key: bytes) -> None:
        self._cipher = Cipher(algorithms.ChaCha20(key, bytes(16)), mode=None).encryptor()
        self._bytes, self._used = b"", 0

    def take(self, n_bytes: int) -> bytes:
        """Return the next bytes."""
        end = self._used + n_bytes
        if end > len(self._bytes):
            more = self._cipher.update(bytes(max(_BLOCK_BYTES, n_bytes)))
            self._bytes, self._used, end = self._bytes[self._used :] + more, 0, n_bytes
        taken, self._used = self._bytes[self._used : end], end
        return taken

    def below(self, bound: int) -> int:
        """Return a uniform number from 0 to bound - 1; what lies beyond is thrown away."""
        n_bits = (bound - 1).bit_length()
        n_bytes, spare = -(-n_bits // 8), -n_bits % 8
        while True:
            number = int.from_bytes(self.take(n_bytes), "little") >> spare
            if number < bound:
                return number


def _gaussian(scale: Fraction, stream: _Stream) -> int:
    """Algorithm 3: discrete Laplace noise of whole scale, kept with the right probability."""
    variance = scale * scale
    whole = math.floor(scale) + 1
    while True:
        drawn = _laplace(Fraction(whole), stream)
        # (|y| - variance / whole)^2 / (2 variance) in whole numbers.
        gap = abs(drawn) * whole * variance.denominator - variance.numerator
        below = 2 * variance.numerator * variance.denominator * whole * whole
        if _exp_coin(gap * gap, below, stream):
            return drawn


def _laplace(scale: Fraction, stream: _Stream) -> int:
    """Algorithm 2: P(x) proportional to exp(-|x| / scale)."""
    t, s = scale.numerator, scale.denominator
    while True:
        part = stream.below(t)
        if not _exp_coin(part, t, stream):
            continue
        whole = 0
        while _exp_coin(1, 1, stream):
            whole += 1
        size = (part + t * whole) // s
        is_negative = stream.below(2)
        if not (is_negative and size == 0):  # zero would come twice
            return -size if is_negative else size


def _exp_coin(numerator: int, denominator: int, stream: _Stream) -> bool:
    """Algorithm 1: True with probability exp(-numerator / denominator)."""
    while numerator > denominator:
        if not _exp_coin(1, 1, stream):
            return False
        numerator -= denominator
    tries = 1
    while stream.below(denominator * tries) < numerator:
        tries += 1
    return tries % 2 == 1
