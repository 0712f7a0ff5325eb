"""The Gaussian mechanism's exact curve, and the least noise for an epsilon and a delta."""

import math

_STEPS = 200


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


def _tail(x: float) -> float:
    """P(N > x) for a standard normal N."""
    return math.erfc(x / math.sqrt(2)) / 2
