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

    Values are finite, at least one; the total is zero or more.
    """
    if not (math.isfinite(total) and total >= 0):
        raise ParameterError(f"total must be a finite number >= 0, got {total!r}")
    if values.size == 0 or not np.isfinite(values).all():
        raise ParameterError(f"values must be finite and at least one, got shape {values.shape}")
    return project_rows(values.reshape(1, -1), total=total).reshape(values.shape)


def project_rows(values: FloatArray, *, total: float) -> FloatArray:
    """Return for each row of `values`, shape (n, m), the closest one with the sum `total`."""
    if total == 0 or len(values) == 0:
        return np.zeros(values.shape)
    # A common shift does not change the result. With the peak at zero the small differences
    # that decide keep their digits, and an entry `total` or more below the peak becomes zero
    # whatever it is, so it may as well lie exactly there.
    with np.errstate(over="ignore"):
        shifted = np.maximum(values - values.max(axis=1, keepdims=True), -total)
    descending = np.sort(shifted, axis=1)[:, ::-1]
    ranks = np.arange(1, values.shape[1] + 1)
    cuts = (np.cumsum(descending, axis=1) - total) / ranks
    # The last one that is kept; the peak always is: 0 > -total.
    kept = values.shape[1] - 1 - np.argmax((descending > cuts)[:, ::-1], axis=1)
    cut = np.take_along_axis(cuts, kept[:, np.newaxis], axis=1)
    return np.asarray(np.maximum(shifted - cut, 0.0))
