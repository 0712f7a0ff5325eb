"""Noise that protects privacy: from the operating system, on integers, never from a global state.

Two kinds of randomness are kept apart everywhere: `noise` (this module) hides users, `rng` (a NumPy
generator) starts algorithms. Only the second may be seeded by a user. The seeded source below
exists for tests and benchmarks; whoever uses it has no privacy, and the privacy statement says so.
"""

import hashlib
import os
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from splitmeans import _validate
from splitmeans._types import IntArray, WordArray
from splitmeans.kernels.discrete_gaussian import LARGEST_SCALE, discrete_gaussian
from splitmeans.privacy import exact_noise
from splitmeans.privacy.exact_noise import RandomBytes


class NoiseSource(Protocol):
    """Where privacy noise comes from."""

    @property
    def secure(self) -> bool:
        """Whether an observer is unable to predict the draws."""
        ...

    def laplace(self, scale: float, size: int) -> IntArray:
        """Draw integers with P(x) proportional to exp(-|x| / scale)."""
        ...

    def gaussian(self, scale: float, size: int) -> IntArray:
        """Draw integers with P(x) proportional to exp(-x^2 / (2 scale^2))."""
        ...

    def words(self, size: int) -> WordArray:
        """Draw uniform 64-bit words, for look-ups in integer tables."""
        ...

    def spawn(self, label: str) -> "NoiseSource":
        """Return an independent source, for one party or one purpose."""
        ...


@dataclass(frozen=True)
class SecureNoise:
    """Exact discrete noise from the operating system's random bytes."""

    secure: bool = field(default=True, init=False)

    def laplace(self, scale: float, size: int) -> IntArray:
        """Draw discrete Laplace noise with exact arithmetic."""
        return exact_noise.laplace(scale, size, RandomBytes(os.urandom))

    def gaussian(self, scale: float, size: int) -> IntArray:
        """Draw discrete Gaussian noise with exact arithmetic."""
        _validate.positive(scale=scale)
        if 1 <= scale <= LARGEST_SCALE:
            return discrete_gaussian(scale, size, self.words)
        return exact_noise.gaussian(scale, size, RandomBytes(os.urandom))

    def words(self, size: int) -> WordArray:
        """Draw uniform words from the operating system."""
        return np.frombuffer(os.urandom(8 * size), dtype=np.uint64)

    def spawn(self, label: str) -> "SecureNoise":
        """Return itself: every draw is independent already."""
        return self


@dataclass(frozen=True)
class InsecureSeededNoise:
    """Repeatable noise for tests and benchmarks. NOT PRIVATE: whoever knows the seed knows it all.

    `spawn` depends on seed and label alone, never on what was drawn before, so a run repeats
    exactly whatever order its parties work in.
    """

    seed: int
    path: tuple[str, ...] = ()
    secure: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        _validate.at_least(0, seed=self.seed)
        digest = hashlib.sha256(repr((self.seed, self.path)).encode()).digest()
        generator = np.random.default_rng(int.from_bytes(digest, "little"))
        object.__setattr__(self, "_generator", generator)

    _generator: Any = field(init=False, repr=False, compare=False, default=None)

    def laplace(self, scale: float, size: int) -> IntArray:
        """Draw discrete Laplace noise as a difference of two geometric variables."""
        _validate.positive(scale=scale)
        success = -np.expm1(-1 / scale)
        first, second = self._generator.geometric(success, size=(2, size))
        return np.asarray(first - second, dtype=np.int64)

    def gaussian(self, scale: float, size: int) -> IntArray:
        """Draw rounded Gaussian noise, close to discrete Gaussian for scales above a few units."""
        _validate.positive(scale=scale)
        drawn: IntArray = np.rint(self._generator.normal(0.0, scale, size)).astype(np.int64)
        return drawn

    def words(self, size: int) -> WordArray:
        """Draw uniform words."""
        drawn = self._generator.integers(0, 2**64, size=size, dtype=np.uint64)
        return np.asarray(drawn)

    def spawn(self, label: str) -> "InsecureSeededNoise":
        """Return the source that this seed gives to `label`."""
        return InsecureSeededNoise(self.seed, (*self.path, label))
