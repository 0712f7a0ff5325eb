"""The lowest place of a smooth convex function, by limited-memory BFGS."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from scipy.optimize import minimize

from splitmeans._types import FloatArray

# A value, and the slopes there.
Function: TypeAlias = Callable[[FloatArray], tuple[float, FloatArray]]

# Rest is where slopes are below this share of those at the start. With ten times as much, five
# steps are taken, and losses under strong noise are .01 higher.
_AT_REST = 0.002


def lowest(function: Function, start: FloatArray, *, most_steps: int) -> FloatArray:
    """Return where the function is lowest, or where `most_steps` steps lead.

    Args:
        function: Its value and its slopes at a place of shape (m,).
        start: Where to begin.
        most_steps: Steps at most.
    """
    rest = _AT_REST * float(np.abs(function(start)[1]).max(initial=0.0))
    options = {"maxiter": most_steps, "gtol": rest, "ftol": 0.0}
    found = minimize(function, start, jac=True, method="L-BFGS-B", options=options)
    return np.asarray(found.x)
