"""Drawing positions in proportion to weights, with as little chance as possible."""

import numpy as np

from splitmeans._types import FloatArray, IntArray


def draw_evenly(weights: FloatArray, n: int, *, rng: np.random.Generator) -> IntArray:
    """Return n positions in ascending order, each as often as its weight says, up to one.

    Weights, shape (m,), are zero or more, not all zero. One random number shifts all positions.
    """
    edges = np.cumsum(weights)
    marks = (np.arange(n) + rng.random()) / n * edges[-1]
    found = np.searchsorted(edges, marks, side="right")
    return np.asarray(np.minimum(found, len(weights) - 1), dtype=np.int64)
