"""Sources of noise that an audit puts in the place of a real one: half of it, none, a recording."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from audits.case import Sampler, Scores
from splitmeans._types import IntArray, WordArray
from splitmeans.privacy.noise import NoiseSource


def with_half_noise(sample: Sampler) -> Sampler:
    """Return a sampler whose noise has half the scale that the mechanism asks for."""

    def broken(trials: int, noise: NoiseSource) -> Scores:
        return sample(trials, HalfNoise(noise))

    return broken


@dataclass
class HalfNoise:
    """A broken source: noise of half the scale that was asked for."""

    source: NoiseSource

    @property
    def secure(self) -> bool:
        """Whether the source is."""
        return self.source.secure

    def laplace(self, scale: float, size: int) -> IntArray:
        """Draw with half the scale."""
        return self.source.laplace(scale / 2, size)

    def gaussian(self, scale: float, size: int) -> IntArray:
        """Draw with half the scale."""
        return self.source.gaussian(scale / 2, size)

    def words(self, size: int) -> WordArray:
        """Draw words, unchanged."""
        return self.source.words(size)

    def spawn(self, label: str) -> "HalfNoise":
        """Return a broken source again."""
        return HalfNoise(self.source.spawn(label))


@dataclass
class Silence:
    """No noise: what an observer who knows the rows can calculate."""

    secure: bool = field(default=False, init=False)

    def laplace(self, scale: float, size: int) -> IntArray:
        """Return zeros."""
        return np.zeros(size, dtype=np.int64)

    def gaussian(self, scale: float, size: int) -> IntArray:
        """Return zeros."""
        return np.zeros(size, dtype=np.int64)

    def words(self, size: int) -> WordArray:
        """Return zeros."""
        return np.zeros(size, dtype=np.uint64)

    def spawn(self, label: str) -> "Silence":
        """Return itself."""
        return self


@dataclass
class Tape:
    """Records what a source draws; after `rewind` it plays that again before it draws more."""

    source: NoiseSource
    drawn: list[int] = field(default_factory=list, init=False)
    place: int = field(default=0, init=False)

    @property
    def secure(self) -> bool:
        """Never: draws repeat."""
        return False

    def rewind(self) -> "Tape":
        """Go back to the start."""
        self.place = 0
        return self

    def laplace(self, scale: float, size: int) -> IntArray:
        """Play, then draw."""
        return self._next(self.source.laplace, scale, size)

    def gaussian(self, scale: float, size: int) -> IntArray:
        """Play, then draw."""
        return self._next(self.source.gaussian, scale, size)

    def words(self, size: int) -> WordArray:
        """Refuse: trees, for which this is made, draw none."""
        raise AssertionError("a tree draws no words")

    def spawn(self, label: str) -> "Tape":
        """Return itself."""
        return self

    def _next(self, draw: Callable[[float, int], IntArray], scale: float, size: int) -> IntArray:
        end = self.place + size
        if end > len(self.drawn):
            self.drawn += draw(scale, end - len(self.drawn)).tolist()
        played = self.drawn[self.place : end]
        self.place = end
        return np.array(played, dtype=np.int64)
