"""The lowest place of a smooth convex function, by limited-memory BFGS (Nocedal, 1980).

SciPy has it too, but loading that takes as long as everything else a party does.
"""

from collections import deque
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from splitmeans._types import FloatArray

# A value, and the slopes there.
Function: TypeAlias = Callable[[FloatArray], tuple[float, FloatArray]]

# Steps that are remembered.
_MEMORY = 10
# A step must gain this share of what the slope promises, and is halved so many times at most.
_SUFFICIENT, _HALVINGS = 1e-4, 20
# Rest is where slopes are below this share of those at the start.
_AT_REST = 0.02


def lowest(function: Function, start: FloatArray, *, most_steps: int) -> FloatArray:
    """Return where the function is lowest, or where so many steps lead; the start has a slope.

    Args:
        function: Its value and its slopes at a place of shape (m,).
        start: Where to begin.
        most_steps: Steps at most.
    """
    place, (value, slopes) = start, function(start)
    rest = _AT_REST * float(np.abs(slopes).max(initial=0.0))
    steps: deque[tuple[FloatArray, FloatArray, float]] = deque(maxlen=_MEMORY)
    for _ in range(most_steps):
        if np.abs(slopes).max(initial=0.0) <= rest:
            break
        direction = -_scaled(slopes, steps)
        promised = float(slopes @ direction)
        length = 1.0
        for _ in range(_HALVINGS):
            moved = place + length * direction
            new_value, new_slopes = function(moved)
            if new_value <= value + _SUFFICIENT * length * promised:
                break
            length /= 2
        else:
            break
        step, change = moved - place, new_slopes - slopes
        curvature = float(step @ change)
        if curvature > 0:
            steps.append((step, change, curvature))
        place, value, slopes = moved, new_value, new_slopes
    return place


def _scaled(slopes: FloatArray, steps: deque[tuple[FloatArray, FloatArray, float]]) -> FloatArray:
    """Return the slopes times what the steps tell of the inverse of the second derivatives."""
    found = slopes.copy()
    shares = []
    for step, change, curvature in reversed(steps):
        share = float(step @ found) / curvature
        shares.append(share)
        found -= share * change
    if steps:
        _, change, curvature = steps[-1]
        found *= curvature / float(change @ change)
    for (step, change, curvature), share in zip(steps, reversed(shares), strict=True):
        found += (share - float(change @ found) / curvature) * step
    return found
