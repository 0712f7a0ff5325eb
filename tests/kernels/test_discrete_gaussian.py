"""Discrete Gaussian noise: its law, and that it does not depend on how words are handed out."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from splitmeans.kernels import discrete_gaussian as module
from splitmeans.kernels.discrete_gaussian import LARGEST_SCALE, discrete_gaussian

# Each statistical test below fails by chance with this probability; the seeds are fixed, so it
# either always fails or never does.
CHANCE = 1e-6


def seeded(seed):
    rng = np.random.default_rng(seed)
    return lambda size: rng.integers(0, 2**64, size=size, dtype=np.uint64)


def check_law(drawn, scale):
    """Chi-square of the draws against the probabilities by their formula, rare values as one."""
    values = np.arange(-math.ceil(12 * scale), math.ceil(12 * scale) + 1)
    law = np.exp(-(values**2) / (2 * scale**2))
    law /= law.sum()
    common = law * drawn.size >= 10
    counts = np.array([np.count_nonzero(drawn == value) for value in values[common]])
    expected = law[common] * drawn.size
    rest = drawn.size - counts.sum(), drawn.size - expected.sum()
    terms = np.append((counts - expected) ** 2 / expected, (rest[0] - rest[1]) ** 2 / rest[1])
    assert stats.chi2.sf(terms.sum(), common.sum()) > CHANCE


@pytest.mark.parametrize("scale", [1, 2, 3, 7, 20, 1.1, 1.5, 2.75, 3.9999, math.pi, 19.3])
def test_law(scale):
    check_law(discrete_gaussian(scale, 200_000, seeded(int(100 * scale))), scale)


@pytest.mark.parametrize(("scale", "other"), [(20, 19), (2.75, 2.8), (1.1, 1.0), (3.9999, 4.1)])
def test_a_law_of_another_scale_would_be_noticed(scale, other):
    with pytest.raises(AssertionError):
        check_law(discrete_gaussian(scale, 200_000, seeded(0)), other)


@pytest.mark.parametrize("scale", [1.0, 1.1, 2.5, math.e, 7.0, 100.25])
def test_every_integer_belongs_to_one_step_and_place(scale):
    """As `_draw` numbers them: |x| = ceil(k s) + j with a rest below s, j below s rounded up."""
    exact = Fraction(scale)
    found = [
        (math.ceil(k * exact) + j, k)
        for k in range(40)
        for j in range(math.ceil(exact))
        if math.ceil(k * exact) + j - k * exact < exact
    ]
    sizes = [size for size, _ in found]
    assert sorted(sizes) == list(range(len(sizes)))
    assert all(k == math.floor(size / exact) for size, k in found)


@pytest.mark.parametrize("scale", [2.0**47 + 0.5, 1 + 2.0**-52, 2 - 2.0**-52])
def test_scales_with_as_many_digits_as_there_are(scale):
    """Products stay within 64 bits: k of some hundreds would be needed to leave them."""
    drawn = discrete_gaussian(scale, 50_000, seeded(11))
    assert abs(np.mean(drawn / scale)) < 5 / math.sqrt(50_000)  # false failure: 6e-7
    assert np.abs(drawn / scale).max() < 8


@pytest.mark.parametrize("scale", [2**16, 3**20, LARGEST_SCALE])
def test_large_scales_are_normal_up_to_rounding(scale):
    drawn = discrete_gaussian(scale, 100_000, seeded(5)) / scale
    assert stats.kstest(drawn, "norm").pvalue > CHANCE
    # Within a step of the scale every remainder is possible: low digits are uniform.
    if scale % 16 == 0:
        low = (drawn * scale).astype(np.int64) % 16
        assert stats.chisquare(np.bincount(low, minlength=16)).pvalue > CHANCE


@pytest.mark.parametrize("scale", [1, 5, 2**30, 3.7])
def test_draws_do_not_depend_on_how_much_tape_there_is(scale, monkeypatch):
    long = discrete_gaussian(scale, 300, seeded(9))
    monkeypatch.setattr(module, "_WORDS_A_DRAW", 1)
    assert discrete_gaussian(scale, 300, seeded(9)).tolist() == long.tolist()


def test_throwing_away_draws_that_the_tape_cuts_off_would_be_noticed():
    """Large values take more words: a source that gives up on them has too few."""
    rng = np.random.default_rng(3)
    drawn = []
    while len(drawn) < 20_000:
        tape = rng.integers(0, 2**64, size=12, dtype=np.uint64)
        value = np.empty(1, dtype=np.int64)
        done, _ = module._fill(tape, np.int64(3), np.int64(1), np.int64(0), value)
        drawn += value.tolist() if done else []
    with pytest.raises(AssertionError):
        check_law(np.array(drawn), 3)


@pytest.mark.parametrize(("a", "b", "c", "d"), [(1, 2, 1, 1), (3, 4, 3, 4), (0, 3, 1, 2)])
def test_a_coin_has_exactly_its_probability(a, b, c, d):
    """All tapes of few digits, each with its weight: the sums bracket exp(-(a / b) (c / d)).

    Words are given as the digits that the coin looks at; a digit out of range is thrown away and
    changes nothing, so digits within the range are enough.
    """
    falls, open_ends = Fraction(0), Fraction(0)

    def follow(digits, weight):
        nonlocal falls, open_ends
        tape = np.array(digits, dtype=np.uint64)
        fell, at = module._coin(tape, 0, *(np.int64(value) for value in (a, b, c, d)))
        if at <= len(digits):
            falls += weight * bool(fell)
        elif len(digits) == 9:
            open_ends += weight
        else:
            # The next digit is below b, d or the turn, in this order, bounds of 1 left out.
            bounds = (bound for turn in itertools.count(1) for bound in (b, d, turn))
            bound = next(itertools.islice((x for x in bounds if x > 1), len(digits), None))
            for digit in range(bound):
                follow([*digits, digit], weight / bound)

    follow([], Fraction(1))
    assert falls <= Fraction(math.exp(-a * c / (b * d))) <= falls + open_ends
    assert open_ends < Fraction(1, 20)


def test_nothing_is_drawn_where_nothing_is_asked_for():
    assert discrete_gaussian(4, 0, seeded(0)).shape == (0,)
