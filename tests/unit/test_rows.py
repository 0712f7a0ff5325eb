"""Rows composed by one transform, against direct convolution and closed forms."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from splitmeans.privacy.rows import LossGrid, compose_rows, connect_dots, curve, hockey_stick


def convolved(row: LossGrid, rows: int) -> tuple[int, np.ndarray]:
    mass = np.ones(1)
    for _ in range(rows):
        mass = np.convolve(mass, row.mass)
    return rows * row.start, mass


def laws(seed: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(size)), rng.dirichlet(np.ones(size))


# ---- hockey_stick ----


def test_hockey_stick_by_hand():
    upper, lower = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5])
    epsilons = np.log([0.5, 1.0, 2.0, 4.0])
    # max(0, u - l/2): 0.4 + 0.15 + 0; u - l: 0.3; u - 2 l: 0.1; u - 4 l: nothing.
    np.testing.assert_allclose(
        hockey_stick(upper, lower, epsilons), [0.55, 0.3, 0.1, 0.0], atol=1e-15
    )


def test_what_only_one_law_can_give_is_lost_at_every_epsilon():
    upper, lower = np.array([0.1, 0.9, 0.0]), np.array([0.0, 0.6, 0.4])
    np.testing.assert_allclose(hockey_stick(upper, lower, np.array([0.0, 50.0])), [0.4, 0.1])


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10_000), size=st.integers(2, 30), epsilon=st.floats(-5, 5))
def test_hockey_stick_is_its_definition(seed, size, epsilon):
    upper, lower = laws(seed, size)
    expected = np.maximum(upper - math.exp(epsilon) * lower, 0).sum()
    found = hockey_stick(upper, lower, np.array([epsilon]))[0]
    assert found == pytest.approx(expected, abs=1e-13)


# ---- connect_dots ----


def test_connect_dots_is_a_law_that_has_the_given_curve():
    upper, lower = laws(3, 12)
    width = 0.25
    loss = np.log(upper / lower)
    start, stop = math.floor(loss.min() / width), math.ceil(loss.max() / width)
    steps = np.arange(start, stop + 1)
    deltas = hockey_stick(upper, lower, steps * width)
    grid = connect_dots(start, deltas, width=width)
    assert grid.mass.min() >= 0
    assert grid.mass.sum() + grid.infinite == pytest.approx(1, abs=1e-12)
    np.testing.assert_allclose(curve(grid, steps * width), deltas, atol=1e-12)


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10_000), width=st.sampled_from([0.01, 0.1, 0.7]))
def test_connect_dots_lies_above_the_curve_everywhere(seed, width):
    upper, lower = laws(seed, 8)
    loss = np.log(upper / lower)
    start, stop = math.floor(loss.min() / width), math.ceil(loss.max() / width)
    deltas = hockey_stick(upper, lower, np.arange(start, stop + 1) * width)
    grid = connect_dots(start, deltas, width=width)
    between = np.linspace(start * width - 1, stop * width + 1, 400)
    true = hockey_stick(upper, lower, between)
    joined = curve(grid, between)
    assert (joined >= true - 1e-12).all()
    # One step of the grid is the most that an epsilon is moved.
    assert (joined <= hockey_stick(upper, lower, between - width) + 1e-12).all()


# ---- compose_rows ----


@pytest.mark.parametrize("rows", [1, 2, 3, 7])
def test_composition_is_convolution(rows):
    rng = np.random.default_rng(4)
    row = LossGrid(start=-5, mass=rng.dirichlet(np.ones(13)) * 0.99, infinite=0.01, width=0.01)
    start, mass = convolved(row, rows)
    composed = compose_rows(row, rows)
    assert composed.width == row.width
    offset = start - composed.start
    assert offset >= 0
    np.testing.assert_allclose(composed.mass[offset : offset + len(mass)], mass, atol=1e-14)
    # Everything else is zero but for rounding, and what is infinite once stays so.
    assert composed.mass.sum() == pytest.approx(0.99**rows, abs=1e-12)
    assert composed.infinite == pytest.approx(1 - 0.99**rows, abs=1e-10)


@pytest.mark.parametrize("rows", [16, 400, 4096])
@pytest.mark.parametrize("share", [0.5, 0.51, 0.9])
def test_two_losses_compose_to_a_binomial_law(rows, share):
    # Loss +1 or -1 steps: after M rows it is 2 B - M with B binomial.
    row = LossGrid(start=-1, mass=np.array([1 - share, 0.0, share]), infinite=0.0, width=1e-3)
    composed = compose_rows(row, rows)
    steps = composed.start + np.arange(len(composed.mass))
    successes = (steps + rows) / 2
    expected = np.where(steps % 2 == rows % 2, stats.binom.pmf(successes, rows, share), 0.0)
    np.testing.assert_allclose(composed.mass, expected, atol=1e-14)
    assert composed.infinite < 1e-12


@pytest.mark.parametrize("rows", [1, 10, 200])
@pytest.mark.parametrize("epsilon", [0.01, 0.1])
def test_randomised_response_has_its_known_curve(rows, epsilon):
    # k rows of eps-randomised response: P(B = j) against P(B = k - j), B binomial.
    p = math.exp(epsilon) / (1 + math.exp(epsilon))
    row = LossGrid(start=-1, mass=np.array([1 - p, 0.0, p]), infinite=0.0, width=epsilon)
    composed = compose_rows(row, rows)
    counts = np.arange(rows + 1)
    upper, lower = stats.binom.pmf(counts, rows, p), stats.binom.pmf(counts, rows, 1 - p)
    for total in (0.0, 0.5 * epsilon, 3 * epsilon, epsilon * math.sqrt(rows)):
        exact = np.maximum(upper - math.exp(total) * lower, 0).sum()
        found = float(curve(composed, np.array([total]))[0])
        assert exact - 1e-13 <= found <= exact + 1e-10


def test_a_window_that_cannot_hold_all_counts_the_rest_as_infinite():
    # A rare large loss: the tail beyond the window must not vanish.
    mass = np.zeros(2001)
    mass[0], mass[-1] = 1 - 1e-6, 1e-6
    row = LossGrid(start=0, mass=mass, infinite=0.0, width=1e-3)
    composed = compose_rows(row, 1000)
    assert composed.mass.sum() + composed.infinite >= 1 - 1e-12
    # The window grows until next to nothing is outside, so next to nothing is given up.
    assert composed.infinite < 1e-12
    # P(two or more of 1000) = 5e-7 at a loss of 4 or more.
    exact = stats.binom.sf(1, 1000, 1e-6)
    assert curve(composed, np.array([3.0]))[0] >= exact * (1 - math.exp(-1)) - 1e-13


def test_one_row_is_itself():
    row = LossGrid(start=3, mass=np.array([0.25, 0.5, 0.25]), infinite=0.0, width=0.1)
    composed = compose_rows(row, 1)
    offset = 3 - composed.start
    np.testing.assert_allclose(composed.mass[offset : offset + 3], row.mass, atol=1e-15)
    np.testing.assert_allclose(row.losses, [0.3, 0.4, 0.5])


# ---- curve ----


def test_curve_by_hand():
    grid = LossGrid(start=0, mass=np.array([0.6, 0.3]), infinite=0.1, width=1.0)
    # At 0 the loss of 1 counts 0.3 (1 - 1/e); at 1 and beyond the infinite part is left.
    np.testing.assert_allclose(
        curve(grid, np.array([0.0, 0.5, 1.0, 9.0])),
        [0.1 + 0.3 * (1 - math.exp(-1)), 0.1 + 0.3 * (1 - math.exp(-0.5)), 0.1, 0.1],
    )


def test_curve_never_rises():
    upper, lower = laws(9, 20)
    width = 0.05
    loss = np.log(upper / lower)
    start, stop = math.floor(loss.min() / width), math.ceil(loss.max() / width)
    deltas = hockey_stick(upper, lower, np.arange(start, stop + 1) * width)
    composed = compose_rows(connect_dots(start, deltas, width=width), 50)
    found = curve(composed, np.linspace(-10, 60, 300))
    assert (np.diff(found) <= 1e-12).all()
    assert found.min() >= 0
    assert found.max() <= 1
