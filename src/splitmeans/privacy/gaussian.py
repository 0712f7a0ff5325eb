"""The Gaussian mechanism's exact curve, the least noise for a cost, and what whole numbers add."""

import math

_STEPS = 200

# Noise is looked at up to this many deviations; more has a probability below 2 exp(-72) < 2e-31.
_DEVIATIONS = 12.0


def gaussian_delta(multiplier: float, epsilon: float) -> float:
    """Return delta at this epsilon of Gaussian noise, its deviation over the sensitivity given.

    Two normal laws of deviation 1 whose means are mu = 1 / multiplier apart:
    Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu).
    """
    half, shift = 1 / (2 * multiplier), epsilon * multiplier
    there, away = _tail(shift - half), _tail(shift + half)
    # e^epsilon may be huge where the tail is tiny: far out both are beyond doubles, and nothing.
    return max(0.0, there - (math.exp(epsilon + math.log(away)) if away > 0 else 0.0))


def gaussian_multiplier(epsilon: float, delta: float) -> float:
    """Return the least multiplier whose delta at this epsilon is within `delta`.

    Rounded up: the search keeps to the side with more noise.
    """
    low = high = 1.0
    while gaussian_delta(high, epsilon) > delta:
        high *= 2
    while gaussian_delta(low, epsilon) <= delta:
        low /= 2
    for _ in range(_STEPS):
        middle = math.sqrt(low * high)
        if not low < middle < high:
            break
        low, high = (low, middle) if gaussian_delta(middle, epsilon) <= delta else (middle, high)
    return high


def discrete_slack(scale: float, *, mu: float, coordinates: int) -> float:
    """Return what discrete Gaussian noise may add to the loss of continuous noise.

    With p the discrete Gaussian of this scale s on whole numbers and q rounded continuous noise,
    log(p / q) <= -log(1 - 1/(24 s^2)) everywhere, and log(q / p) <= (e^y - 1) / 3 + 3 e^(-2 pi^2
    s^2) at k, y = k^2 / (8 s^4). So neighbouring laws of discrete noise are dominated by those of
    rounded noise with this much more loss, as long as no coordinate is beyond 12 deviations. Proof:
    docs/concepts/guarantee.md, "Discrete Gaussian noise".

    Args:
        scale: Scale of the noise in units of the whole numbers, at least 1.
        mu: Largest shift of the vector by a user, in deviations.
        coordinates: How many coordinates a user can shift.
    """
    if scale < 1:
        raise ValueError(f"scale must be >= 1, got {scale!r}")
    over = -math.log1p(-1 / (24 * scale**2))
    # Scales far below a user's shift come up in searches alone; beyond 1 the bound says nothing.
    under = math.expm1(min(((_DEVIATIONS + mu) / scale) ** 2 / 8, 1e2)) / 3
    normaliser = 3 * math.exp(-2 * (math.pi * scale) ** 2)
    return coordinates * (over + under + normaliser)


def _tail(x: float) -> float:
    """P(N > x) for a standard normal N."""
    return math.erfc(x / math.sqrt(2)) / 2
