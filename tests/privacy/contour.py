"""An accountant of another construction: a contour integral of the loss's moments.

Nothing is put on a grid of losses and nothing is convolved. With M(z) = E exp(z L) of the loss L,
under the law that makes it large,

    delta(epsilon) = P(L infinite) + 1/(2 pi i) * integral over c - i oo .. c + i oo of
                     exp(-z epsilon) M(z) / (z (z + 1)) dz,     c > 0,

because the same integral of exp(z (L - epsilon)) / (z (z + 1)) is max(0, 1 - exp(epsilon - L)). M
of independent releases is the product of theirs, each in closed form or as a sum over its table.
The trapezoid rule on the line through the saddle point converges geometrically wherever some of the
noise is Gaussian. Shares no code with the library.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import optimize

_POINTS, _BLOCK = 2**15, 2**9


@dataclass(frozen=True)
class Loss:
    """log E e^(z L) over the outcomes with finite loss, and the probability of the others."""

    log_moments: Callable[[np.ndarray], np.ndarray]
    infinite: float = 0.0


def normal(mu: float) -> Loss:
    """Two normal laws of deviation 1 whose means are mu apart."""
    return Loss(lambda z: (z * z + z) * mu**2 / 2)


def table(upper: Sequence[float], lower: Sequence[float], *, copies: int = 1) -> Loss:
    """Two laws on one finite set, some independent copies."""
    p, q = np.array(upper, dtype=float), np.array(lower, dtype=float)
    both = (p > 0) & (q > 0)
    log_p, loss = np.log(p[both]), np.log(p[both]) - np.log(q[both])
    infinite = 1 - (1 - float(p[~(q > 0)].sum())) ** copies

    def log_moments(z: np.ndarray) -> np.ndarray:
        exponent = log_p + np.multiply.outer(z, loss)
        top = exponent.real.max(axis=1)
        total = np.exp(exponent - top[:, np.newaxis]).sum(axis=1)
        # The branch of the logarithm does not matter: it is a whole number of copies of 2 pi i.
        return copies * (top + np.log(total))

    return Loss(log_moments, infinite)


def delta(losses: Sequence[Loss], epsilon: float) -> float:
    """Return delta of independent releases in one direction."""

    def exponent(z: np.ndarray) -> np.ndarray:
        moments = sum(loss.log_moments(z) for loss in losses)
        return moments - z * epsilon - np.log(z) - np.log(z + 1)

    # The saddle point of the integrand on the real line, roughly; any c > 0 would be right.
    grid = np.geomspace(1e-2, 1e4, 400)
    c = float(grid[np.argmin(exponent(grid.astype(complex)).real)])
    # The second derivative there tells how fast the integrand decays along the line.
    h = 1e-3 * c
    left, middle, right = exponent(np.array([c - h, c, c + h], dtype=complex)).real
    spread = math.sqrt(max(float(left - 2 * middle + right) / h**2, 1e-6))
    step = 2 * math.pi * min(c / 60, 1 / (40 * spread))
    # Conjugate points have conjugate values: half of the line is enough.
    total = 0.0
    for start in range(0, _POINTS, _BLOCK):
        values = np.exp(exponent(c + 1j * step * np.arange(start, start + _BLOCK)))
        total += float(values.real.sum()) - (values[0].real / 2 if start == 0 else 0.0)
        if np.abs(values[-_BLOCK // 2 :]).max() < 1e-13 * abs(total):
            break
    return 1 - math.prod(1 - loss.infinite for loss in losses) + total * step / math.pi


# ---- releases, with the loss of both directions ----


@dataclass(frozen=True)
class Normal:
    """Gaussian releases of this mu in all."""

    mu: float
    symmetric = True

    def loss(self, *, added: bool) -> Loss:
        return normal(self.mu)


@dataclass(frozen=True)
class Pure:
    """The worst release of this epsilon."""

    epsilon: float
    symmetric = True

    def loss(self, *, added: bool) -> Loss:
        likely = 1 / (1 + math.exp(-self.epsilon))
        return table([likely, 1 - likely], [1 - likely, likely])


class Table:
    """`count` releases of a variable that has one of two laws; a user makes it the second one."""

    def __init__(self, away, there, count=1):
        self.laws = np.asarray(away, dtype=float), np.asarray(there, dtype=float)
        self.count = count

    @property
    def symmetric(self) -> bool:
        """Whether the loss has the same law in both directions."""
        return np.array_equal(self.laws[0], self.laws[1][::-1])

    def loss(self, *, added: bool) -> Loss:
        lower, upper = self.laws if added else self.laws[::-1]
        return table(upper, lower, copies=self.count)


def shifted(weights, count=1) -> Table:
    """A count plus noise of this law, against the same moved by one."""
    law = np.array([float(weight) for weight in weights])
    law /= law.sum()
    return Table(np.append(law, 0.0), np.append(0.0, law), count)


def delta_at(laws: Sequence, epsilon: float) -> float:
    """Return delta of all releases together, the worse of the two directions."""
    directions = (True,) if all(law.symmetric for law in laws) else (True, False)
    return max(delta([law.loss(added=added) for law in laws], epsilon) for added in directions)


def epsilon_at(laws: Sequence, allowed: float, *, gap) -> float:
    """Return epsilon at a delta, with the charge for what `laws` leave out (`privacy.pld.Gap`)."""

    def excess(epsilon):
        found = math.exp(gap.loss) * delta_at(laws, epsilon - gap.loss)
        found += gap.rare + (1 + math.exp(epsilon)) * gap.distance
        return math.log(found) - math.log(allowed)

    high = 0.5
    while excess(high) > 0:
        high *= 1.5
    return float(optimize.brentq(excess, 0.0, high, rtol=1e-8, xtol=1e-9))
