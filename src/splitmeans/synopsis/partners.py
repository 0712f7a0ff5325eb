"""Pairs of pseudo-users that may exchange places: those with the same local cluster."""

import numpy as np

from splitmeans._types import IntArray


def partners(labels: IntArray, *, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Return pairs of pseudo-users with the same label, nobody in two of them."""
    order = np.argsort(labels + rng.random(len(labels)))
    first, second = order[0:-1:2], order[1::2]
    same = labels[first] == labels[second]
    return first[same], second[same]
