"""Tails of the normal law, one by one, as the standard library computes them."""

import math

import numpy as np

from splitmeans._types import FloatArray
from splitmeans.kernels.compiled import kernel

_ROOT_OF_TWO = math.sqrt(2)


def normal_tails(edges: FloatArray) -> FloatArray:
    """Return the mass of a standard normal variable above each edge, with full relative precision.

    The same numbers as `math.erfc` gives; an array of a hundred thousand in a millisecond or two.
    """
    tails = np.empty(len(edges))
    _normal_tails(np.array(edges, dtype=np.float64, order="C"), tails)
    return tails


@kernel
def _normal_tails(edges, tails):  # type: ignore[no-untyped-def]
    """OUT `tails` (n,)."""
    for i in range(edges.size):
        tails[i] = math.erfc(edges[i] / _ROOT_OF_TWO) / 2
