"""Label vectors that classes draw, and equal ones taken together."""

import numpy as np

from splitmeans._types import FloatArray, IntArray
from splitmeans.kmeans.draws import draw_evenly
from splitmeans.synopsis.decode.classes import LatentClasses


def draw_labels(model: LatentClasses, n_points: int, *, rng: np.random.Generator) -> IntArray:
    """Draw label vectors, shape (n_points, S), with as little chance as possible.

    Every class, and every label of every party within a class, comes as often as its probability
    says, up to one point. Only which labels of different parties meet is random.
    """
    classes = draw_evenly(model.shares, n_points, rng=rng)
    ends = np.cumsum(np.bincount(classes, minlength=len(model.shares)))
    labels = np.empty((n_points, len(model.profiles)), dtype=np.int64)
    for party, profile in enumerate(model.profiles):
        start = 0
        for which, end in enumerate(ends):
            if end > start:
                in_order = draw_evenly(profile[:, which], int(end - start), rng=rng)
                labels[start:end, party] = rng.permutation(in_order)
            start = end
    return labels


def merged(labels: IntArray, weights: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the different vectors, and the weights of equal ones together."""
    found, which = np.unique(labels, axis=0, return_inverse=True)
    return found, np.asarray(np.bincount(which.ravel(), weights=weights), dtype=np.float64)
