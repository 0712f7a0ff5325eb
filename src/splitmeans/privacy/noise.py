"""Noise that protects privacy: from the operating system, on integers, never from a global state.

Two kinds of randomness are kept apart everywhere: `noise` (this module) hides users, `rng` (a NumPy
generator) starts algorithms. Only the second may be seeded by a user. The seeded source below
exists for tests and benchmarks; whoever uses it has no privacy, and the privacy statement says so.
"""

import functools
import hashlib
import os
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Protocol

import numpy as np

from splitmeans import _validate
from splitmeans._types import IntArray, WordArray
from splitmeans.kernels.discrete_gaussian import LARGEST_SCALE, discrete_gaussian


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
    """Exact discrete noise, and words from the operating system.

    Gaussian noise is drawn here (`kernels.discrete_gaussian`); of scales below 1 or above 2^48,
    and Laplace noise, by OpenDP, with the same laws.
    """

    secure: bool = field(default=True, init=False)

    def laplace(self, scale: float, size: int) -> IntArray:
        """Draw discrete Laplace noise with exact arithmetic."""
        _validate.positive(scale=scale)
        return _draw(_opendp_laplace(scale), size)

    def gaussian(self, scale: float, size: int) -> IntArray:
        """Draw discrete Gaussian noise with exact arithmetic."""
        _validate.positive(scale=scale)
        if 1 <= scale <= LARGEST_SCALE:
            return discrete_gaussian(scale, size, self.words)
        return _draw(_opendp_gaussian(scale), size)

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


def _draw(measurement: Any, size: int) -> IntArray:
    return np.array(measurement([0] * size), dtype=np.int64)


@functools.lru_cache(maxsize=256)
def _opendp_laplace(scale: float) -> Any:
    dp = _opendp()
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    return dp.m.make_laplace(*space, scale=scale)


@functools.lru_cache(maxsize=256)
def _opendp_gaussian(scale: float) -> Any:
    dp = _opendp()
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")
    return dp.m.make_gaussian(*space, scale=scale)


@functools.cache
def _opendp() -> Any:
    # Imported on first use, and by parts: `opendp.prelude` also loads its extras for other
    # libraries, which takes most of a second.
    from opendp import domains, measurements, metrics, mod

    mod.enable_features("contrib")
    return SimpleNamespace(
        vector_domain=domains.vector_domain,
        atom_domain=domains.atom_domain,
        l1_distance=metrics.l1_distance,
        l2_distance=metrics.l2_distance,
        m=measurements,
    )
