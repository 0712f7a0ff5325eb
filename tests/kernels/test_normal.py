"""Normal tails are those of the standard library, to the last bit."""

import math

import numpy as np

from splitmeans.kernels.normal import normal_tails


def test_tails_are_those_of_the_standard_library():
    edges = np.concatenate([np.linspace(-40, 40, 4001), [0.0, 1e-300, -np.inf, np.inf]])
    expected = [math.erfc(edge / math.sqrt(2)) / 2 for edge in edges.tolist()]
    assert normal_tails(edges).tolist() == expected


def test_no_edges_have_no_tails():
    assert normal_tails(np.empty(0)).shape == (0,)
