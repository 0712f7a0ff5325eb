"""Exact samplers: probabilities of coins and draws over all tapes, bytes, and limits of scales."""

import math
from fractions import Fraction

import numpy as np
import pytest

from splitmeans.errors import ParameterError
from splitmeans.privacy import exact_noise
from splitmeans.privacy.exact_noise import LARGEST_SCALE, RandomBytes, coin, draw_laplace


class Ended(Exception):
    """The digits of a tape are used up."""


class Digits:
    """A tape of given uniform numbers; asks for the bound of the next where they end."""

    def __init__(self, digits):
        self.digits, self.used, self.bound = digits, 0, 0

    def below(self, bound):
        if bound == 1:
            return 0
        if self.used == len(self.digits):
            self.bound = bound
            raise Ended
        self.used += 1
        return self.digits[self.used - 1]


def probabilities(draw, *, least):
    """Weights of the results on all tapes but those of less weight, and the weight left."""
    found, left, open_tapes = {}, 0.0, [((), 1.0)]
    while open_tapes:
        digits, weight = open_tapes.pop()
        tape = Digits(digits)
        try:
            result = draw(tape)
        except Ended:
            share = weight / tape.bound
            if share < least:
                left += weight
            else:
                open_tapes += [((*digits, digit), share) for digit in range(tape.bound)]
        else:
            found[result] = found.get(result, 0.0) + weight
    return found, left


@pytest.mark.parametrize(("above", "below"), [(0, 1), (1, 3), (1, 1), (3, 2), (7, 2)])
def test_a_coin_has_exactly_its_probability(above, below):
    found, left = probabilities(lambda tape: coin(above, below, tape), least=1e-5)
    heads = found.get(True, 0)
    assert heads <= math.exp(-above / below) + 1e-15
    assert heads + left >= math.exp(-above / below) - 1e-15
    assert left < 0.01


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(1), Fraction(3, 2)])
def test_laplace_draws_have_exactly_their_probabilities(scale):
    found, left = probabilities(lambda tape: draw_laplace(scale, tape), least=1e-6)
    ratio = math.exp(-1 / scale)
    for value in range(-3, 4):
        exact = (1 - ratio) / (1 + ratio) * ratio ** abs(value)
        assert found.get(value, 0) <= exact <= found.get(value, 0) + left
    assert left < 0.2


def test_a_zero_of_either_sign_would_be_noticed():
    """The same bounds on draws that keep minus zero: they catch it."""

    def draw(tape):
        part = tape.below(1)
        whole = 0
        while coin(1, 1, tape):
            whole += 1
        return (part + whole) * (-1 if tape.below(2) else 1)

    found, _ = probabilities(draw, least=1e-5)
    ratio = math.exp(-1)
    assert found[0] > (1 - ratio) / (1 + ratio)


@pytest.mark.parametrize("bound", [1, 2, 3, 255, 256, 257, 2**70 + 1])
def test_numbers_below(bound):
    tape = RandomBytes(np.random.default_rng(bound % 1000).bytes)
    found = [tape.below(bound) for _ in range(2000)]
    assert 0 <= min(found) <= max(found) < bound
    if bound <= 3:
        assert set(found) == set(range(bound))


def test_bytes_are_taken_in_a_row_whatever_is_asked_for():
    made = []

    def more(n_bytes):
        made.append(np.random.default_rng(len(made)).bytes(n_bytes))
        return made[-1]

    tape = RandomBytes(more)
    taken = b"".join(tape.take(n_bytes) for n_bytes in (0, 1, 4095, 3, 10_000, 5))
    assert b"".join(made).startswith(taken)


@pytest.mark.parametrize("draw", [exact_noise.laplace, exact_noise.gaussian])
def test_the_largest_scale_is_drawn_and_no_larger_one(draw):
    tape = RandomBytes(np.random.default_rng(1).bytes)
    drawn = draw(LARGEST_SCALE, 50, tape)
    assert drawn.dtype == np.int64
    assert np.abs(drawn).max() > LARGEST_SCALE / 10
    with pytest.raises(ParameterError, match=r"at most 2\^55, got 7.20576e\+16"):
        draw(2 * LARGEST_SCALE, 1, tape)
