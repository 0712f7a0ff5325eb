"""A third accountant, of another construction: a contour integral of the loss's moments.

With M(z) = E e^(z L) of the privacy loss L, delta(epsilon) = E (1 - e^(epsilon - L))+ is the
integral of M(z) e^(-z epsilon) / (z (z + 1)) / (2 pi i) along any line Re z = c > 0. Moments of
independent releases multiply, so nothing is discretised or convolved: each release gives log M(z)
in closed form or as a sum over its table. The line goes through the saddle point, where the
integrand is smallest and decays like a normal density, so that the trapezoidal rule is exact to
many digits. Shares no code with the library.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

LogMoments = Callable[[np.ndarray], np.ndarray]

# Points to a width of the integrand, and how many widths are followed.
_PER_WIDTH, _WIDTHS = 16, 14


@dataclass(frozen=True)
class Loss:
    """log E e^(z L) over the outcomes with finite loss, and the probability of the others."""

    log_moments: LogMoments
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
        exponent = log_p[np.newaxis] + z[:, np.newaxis] * loss[np.newaxis]
        top = exponent.real.max(axis=1)
        total = np.exp(exponent - top[:, np.newaxis]).sum(axis=1)
        # The branch of the logarithm does not matter: it is a whole number of copies of 2 pi i.
        return copies * (top + np.log(total))

    return Loss(log_moments, infinite)


def shifted(law: Sequence[float]) -> tuple[Loss, Loss]:
    """A count's noise and itself moved by one, in both directions."""
    here, moved = np.append(law, 0.0), np.append(0.0, law)
    return table(moved, here), table(here, moved)


def delta(losses: Sequence[Loss], epsilon: float) -> float:
    """Return delta of independent releases in one direction."""
    finite = math.prod(1 - loss.infinite for loss in losses)

    def exponent(z: np.ndarray) -> np.ndarray:
        moments = sum(loss.log_moments(z) for loss in losses)
        return moments - z * epsilon - np.log(z) - np.log(z + 1)

    grid = np.geomspace(1e-2, 1e4, 150)
    best = int(np.argmin(exponent(grid.astype(complex)).real))
    c = float(grid[best])
    # The second derivative near the saddle tells how fast the integrand decays along the line.
    h = 1e-3 * c
    three = exponent(np.array([c - h, c, c + h], dtype=complex)).real
    step = 1 / math.sqrt(float((three[0] - 2 * three[1] + three[2]) / h**2)) / _PER_WIDTH
    # Conjugate points have conjugate values: half of the line is enough.
    values = np.exp(exponent(c + 1j * step * np.arange(_PER_WIDTH * _WIDTHS))).real
    integral = (2 * float(values.sum()) - float(values[0])) * step / (2 * math.pi)
    return (1 - finite) + integral
