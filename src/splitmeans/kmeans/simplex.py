"""Euclidean projection onto a scaled simplex: the paper's consistency step (section 4.3, Alg. 4).

Estimated cell weights may be negative and need not add up to the number of users. The closest
weights that are valid are the estimate minus one common number, cut off at zero.
"""

import math

import numpy as np

from splitmeans._types import FloatArray
from splitmeans.errors import ParameterError


def project_to_simplex(values: FloatArray, *, total: float) -> FloatArray:
    """Return the array closest to `values` with no negative entry and the sum `total`.

    Exact up to rounding, by sorting; any shape, which is kept.

    Args:
        values: Finite numbers, at least one.
        total: The wanted sum, zero or more.
    """
    if not (math.isfinite(total) and total >= 0):
        raise ParameterError(f"total must be a finite number >= 0, got {total!r}")
    if values.size == 0 or not np.isfinite(values).all():
        raise ParameterError(f"values must be finite and at least one, got shape {values.shape}")
    if total == 0:
        return np.zeros(values.shape)

    # A common shift does not change the result. With the peak at zero the small differences
    # that decide keep their digits, and an entry `total` or more below the peak becomes zero
    # whatever it is, so it may as well lie exactly there.
    with np.errstate(over="ignore"):
        shifted = np.maximum(values.ravel() - values.max(), -total)
    descending = np.sort(shifted)[::-1]
    ranks = np.arange(1, descending.size + 1)
    cuts = (np.cumsum(descending) - total) / ranks
    kept = int(np.flatnonzero(descending > cuts)[-1])  # the peak always is: 0 > -total
    projected: FloatArray = np.maximum(shifted - cuts[kept], 0.0)
    return projected.reshape(values.shape)
