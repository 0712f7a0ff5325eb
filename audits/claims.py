"""What a part claims, as a limit on every test that an observer could make.

A test says "the user is there". It is right with probability `found` if the user is there, and
wrong with probability `false` if not. Each kind of claim says how large `found` may be at a given
`false`; the other way round, a test shows a value that the claim cannot be below.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy import special

from splitmeans._types import FloatArray
from splitmeans.privacy.events import Event
from splitmeans.privacy.pld import delta_for

# Epsilons at which a loss curve is read. Fewer would only make the claim a little weaker.
_CURVE_EPSILONS = np.concatenate([np.linspace(0.0, 3.0, 61), np.linspace(3.25, 8.0, 20)])


class Claim(Protocol):
    """A claim; arrays have one entry for each test."""

    @property
    def unit(self) -> str:
        """What the values are."""
        ...

    def shown(self, found: FloatArray, false: FloatArray) -> FloatArray:
        """Return the least value that allows tests that find at least, and are wrong at most so."""
        ...

    def allowed(self, false: FloatArray) -> FloatArray:
        """Return the largest value that the claim lets a test show that is so often wrong."""
        ...


@dataclass(frozen=True, kw_only=True)
class GaussianClaim:
    """mu-Gaussian privacy: the user is no plainer than a normal variable's mean moved by mu.

    Noise of a discrete law adds a distance in total variation below 10^-8 (the slack of an event),
    which no number of trials here could see; it is left out.
    """

    mu: float
    unit: str = "mu"

    def shown(self, found: FloatArray, false: FloatArray) -> FloatArray:
        """Return Phi^-1(found) - Phi^-1(false)."""
        return np.asarray(special.ndtri(found) - special.ndtri(false))

    def allowed(self, false: FloatArray) -> FloatArray:
        """Return mu, for every test."""
        return np.full(np.shape(false), self.mu)


@dataclass(frozen=True, kw_only=True)
class BudgetClaim:
    """(epsilon, delta)-privacy at one delta; pure epsilon with delta 0.

    Both the test and its opposite, "the user is not there", count.
    """

    epsilon: float
    delta: float = 0.0
    unit: str = "epsilon"

    def shown(self, found: FloatArray, false: FloatArray) -> FloatArray:
        """Return the larger of log((found - delta) / false) and the same of the opposite."""
        with np.errstate(divide="ignore", invalid="ignore"):
            there = np.log(found - self.delta) - np.log(false)
            away = np.log(1 - false - self.delta) - np.log(1 - found)
        return np.asarray(np.fmax(np.fmax(there, away), -np.inf))

    def allowed(self, false: FloatArray) -> FloatArray:
        """Return epsilon, for every test."""
        return np.full(np.shape(false), self.epsilon)


@dataclass(frozen=True, kw_only=True)
class CurveClaim:
    """All (epsilon, delta) of some events at once: the curve that the accountant calculates.

    A test is limited by every point of the curve: found <= e^epsilon false + delta, and the same of
    its opposite. Values are in mu, so that lines of a table compare: what a test shows is its mu,
    and what is allowed is the mu of the best test that the curve has room for at this `false`.
    """

    events: Sequence[Event]
    unit: str = "mu, curve"

    @functools.cached_property
    def _deltas(self) -> FloatArray:
        return np.array([delta_for(self.events, float(at)) for at in _CURVE_EPSILONS])

    def shown(self, found: FloatArray, false: FloatArray) -> FloatArray:
        """Return the mu of the test."""
        return np.asarray(special.ndtri(found) - special.ndtri(false))

    def allowed(self, false: FloatArray) -> FloatArray:
        """Return the mu of the best test on the curve."""
        wrong = np.asarray(false)[..., np.newaxis]
        ratios = np.exp(_CURVE_EPSILONS)
        there = (ratios * wrong + self._deltas).min(axis=-1)
        away = (1 - (1 - wrong - self._deltas) / ratios).min(axis=-1)
        best = np.clip(np.minimum(there, away), 0.0, 1.0)
        with np.errstate(invalid="ignore"):
            room = special.ndtri(best) - special.ndtri(false)
        return np.asarray(np.where(np.isnan(room), np.inf, room))
