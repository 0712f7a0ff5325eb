"""The lowest place of convex functions whose lowest place is known."""

import numpy as np
import pytest

from splitmeans.local.descent import lowest


def _bowl(matrix, middle):
    def value(place):
        off = place - middle
        return 0.5 * float(off @ matrix @ off), matrix @ off

    return value


@pytest.mark.parametrize("seed", range(5))
def test_a_bowl_of_any_shape(seed):
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=(12, 12))
    middle = rng.normal(size=12)
    bowl = _bowl(factor @ factor.T + np.eye(12), middle)
    found = lowest(bowl, np.zeros(12), most_steps=200)
    assert np.abs(bowl(found)[1]).max() <= 0.02 * np.abs(bowl(np.zeros(12))[1]).max()
    assert bowl(found)[0] < 0.05 * bowl(np.zeros(12))[0]


def test_more_steps_lead_lower():
    matrix, middle = np.diag(np.geomspace(1.0, 1_000.0, 30)), np.ones(30)
    values = [
        _bowl(matrix, middle)(lowest(_bowl(matrix, middle), np.zeros(30), most_steps=steps))[0]
        for steps in (1, 5, 20)
    ]
    assert values[0] > values[1] > values[2]


def test_a_function_that_is_not_a_bowl():
    # log(exp(x) + exp(-x)) + x / 2 is lowest where tanh(x) = -1/2.
    def value(place):
        x = float(place[0])
        return float(np.logaddexp(x, -x)) + x / 2, np.tanh(place) + 0.5

    found = lowest(value, np.array([6.0]), most_steps=50)
    assert found[0] == pytest.approx(np.arctanh(-0.5), abs=0.05)


def test_at_rest_from_the_start_nothing_moves():
    start = np.array([2.0, -1.0])
    np.testing.assert_array_equal(lowest(_bowl(np.eye(2), start), start, most_steps=10), start)
