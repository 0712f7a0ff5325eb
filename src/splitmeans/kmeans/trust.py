"""How far noisy counts are believed beside those of a model (empirical Bayes)."""

import math

import numpy as np

from splitmeans._types import FloatArray


def trusted(model: FloatArray, noisy: FloatArray, *, deviation: float) -> FloatArray:
    """Return how far to believe each noisy count rather than the model's, between 0 and 1.

    A model is off by more where there are more rows: its variance is taken in proportion to them,
    and by how much all counts together are off beyond their noise.
    """
    rows = np.maximum(model, 1.0)
    off = float(np.sum(np.square(noisy - model) - deviation**2))
    # What noise alone does to such a sum: less than this is not told from nothing.
    chance = deviation**2 * math.sqrt(2 * len(model))
    variance = max(off - chance, 0.0) / float(rows.sum()) * rows
    return np.asarray(variance / (variance + deviation**2))
