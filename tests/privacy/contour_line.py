"""An accountant of another construction: a contour integral of the loss's moments.

Nothing is put on a grid of losses and nothing is convolved. With M(z) = E exp(z L) of the loss L,
under the law that makes it large,

    delta(epsilon) = P(L infinite) + 1/(2 pi i) * integral over c - i oo .. c + i oo of
                     exp(-z epsilon) M(z) / (z (z + 1)) dz,     c > 0,

because the same integral of exp(z (L - epsilon)) / (z (z + 1)) is max(0, 1 - exp(epsilon - L)). M
of independent releases is the product of theirs. The trapezoid rule on the line through the saddle
point converges geometrically wherever some of the noise is Gaussian.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import optimize

_POINTS = 2**15


@dataclass(frozen=True)
class Normal:
    """Gaussian releases of this mu in all."""

    mu: float

    def log_moment(self, z, *, added):
        return self.mu**2 * (z * z + z) / 2

    infinite = 0.0
    symmetric = True


@dataclass(frozen=True)
class Pure:
    """The worst release of this epsilon."""

    epsilon: float

    def log_moment(self, z, *, added):
        likely = 1 / (1 + math.exp(-self.epsilon))
        return np.log(likely * np.exp(z * self.epsilon) + (1 - likely) * np.exp(-z * self.epsilon))

    infinite = 0.0
    symmetric = True


class Table:
    """`count` releases of a variable that has one of two laws; a user makes it the second one."""

    def __init__(self, away, there, count=1):
        self.laws = np.asarray(away, dtype=float), np.asarray(there, dtype=float)
        self.count = count

    @property
    def symmetric(self):
        """Whether the loss has the same law in both directions."""
        return np.array_equal(self.laws[0], self.laws[1][::-1])

    @property
    def infinite(self):
        away, there = self.laws
        return max(float(there[away == 0].sum()), float(away[there == 0].sum()))

    def log_moment(self, z, *, added):
        lower, upper = self.laws if added else self.laws[::-1]
        both = (lower > 0) & (upper > 0)
        loss = np.log(upper[both] / lower[both])
        return self.count * np.log(np.exp(np.multiply.outer(z, loss)) @ upper[both])


def shifted(weights, count=1):
    """A count plus noise of this law, against the same moved by one."""
    law = np.array([float(weight) for weight in weights])
    law /= law.sum()
    return Table(np.append(law, 0.0), np.append(0.0, law), count)


def delta_at(laws: Sequence, epsilon: float) -> float:
    """Return delta of all releases together, the worse of the two directions."""
    directions = (True,) if all(law.symmetric for law in laws) else (True, False)
    return max(_one_direction(laws, epsilon, added=added) for added in directions)


def epsilon_at(laws: Sequence, delta: float, *, gap) -> float:
    """Return epsilon at a delta, with the charge for what `laws` leave out (`privacy.pld.Gap`)."""

    def excess(epsilon):
        found = math.exp(gap.loss) * delta_at(laws, epsilon - gap.loss)
        found += gap.rare + (1 + math.exp(epsilon)) * gap.distance
        return math.log(found) - math.log(delta)

    high = 0.5
    while excess(high) > 0:
        high *= 1.5
    return float(optimize.brentq(excess, 0.0, high, rtol=1e-8, xtol=1e-9))


def _one_direction(laws, epsilon, *, added):
    def log_moment(z):
        return sum(law.log_moment(z, added=added) for law in laws)

    # The saddle point of the integrand on the real line, roughly; any c > 0 would be right.
    grid = np.geomspace(1e-2, 1e4, 400)
    with np.errstate(over="ignore", invalid="ignore"):
        height = log_moment(grid) - grid * epsilon - np.log(grid * (grid + 1))
    c = float(grid[np.nanargmin(np.where(np.isfinite(height), height, np.nan))])
    spread = math.sqrt(max(_curvature(log_moment, c), 1e-6))
    step = 2 * math.pi * min(c / 60, 1 / (40 * spread))
    total, start, block = 0.0, 0, 2048
    while start < _POINTS:
        z = c + 1j * step * np.arange(start, start + block)
        values = np.exp(log_moment(z) - z * epsilon) / (z * (z + 1))
        total += float(values.real.sum()) - (values[0].real / 2 if start == 0 else 0.0)
        start += block
        if np.abs(values[-block // 2 :]).max() < 1e-13 * abs(total):
            break
    infinite = 1 - math.prod((1 - law.infinite) ** getattr(law, "count", 1) for law in laws)
    return total * step / math.pi + infinite


def _curvature(log_moment, c):
    h = 1e-3 * c
    left, middle, right = (float(log_moment(np.array([x]))[0]) for x in (c - h, c, c + h))
    return (left - 2 * middle + right) / h**2
