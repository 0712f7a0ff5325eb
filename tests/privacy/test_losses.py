"""Laws of the privacy loss: made, composed and read, against convolution and closed forms."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from splitmeans.privacy import losses
from splitmeans.privacy.gaussian import gaussian_delta
from splitmeans.privacy.losses import (
    LossGrid,
    compose,
    compose_many,
    delta_at,
    epsilon_at,
    from_laws,
    from_normal,
    regrid,
)


def convolved(row: LossGrid, rows: int) -> tuple[int, np.ndarray]:
    mass = np.ones(1)
    for _ in range(rows):
        mass = np.convolve(mass, row.mass)
    return rows * row.start, mass


def mass_at(grid: LossGrid, start: int, count: int) -> np.ndarray:
    """The mass of some cells, none where the law has been cut."""
    found = np.zeros(count)
    for place, mass in enumerate(grid.mass):
        if 0 <= grid.start + place - start < count:
            found[grid.start + place - start] = mass
    return found


def laws(seed: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(size)), rng.dirichlet(np.ones(size))


def true_delta(upper: np.ndarray, lower: np.ndarray, epsilon: float) -> float:
    return float(np.maximum(upper - math.exp(epsilon) * lower, 0).sum())


# ---- from_laws ----


def test_an_outcome_is_shared_so_that_both_laws_keep_their_totals():
    upper, lower = np.array([0.8, 0.2]), np.array([0.5, 0.5])
    grid = from_laws(upper, lower, width=1.0)
    # Losses log 1.6 = 0.47 and log 0.4 = -0.92 lie between -1, 0 and 1.
    assert grid.start == -1
    assert grid.mass.sum() == pytest.approx(1)
    assert float(grid.mass @ np.exp(-grid.losses)) == pytest.approx(1)
    top = 0.8 * (1 - 1 / 1.6) / (1 - math.exp(-1))
    assert grid.mass[2] == pytest.approx(top)


def test_what_only_one_law_can_give_is_infinite_loss():
    grid = from_laws(np.array([0.1, 0.9, 0.0]), np.array([0.0, 0.6, 0.4]), width=0.1)
    assert grid.infinite == pytest.approx(0.1)
    assert delta_at(grid, 50.0) == pytest.approx(0.1)


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10_000), width=st.sampled_from([0.01, 0.1, 0.7]))
def test_the_grid_lies_above_the_true_curve_by_less_than_a_step(seed, width):
    upper, lower = laws(seed, 8)
    grid = from_laws(upper, lower, width=width)
    for epsilon in np.linspace(-6, 6, 100):
        found = delta_at(grid, epsilon)
        assert found >= true_delta(upper, lower, epsilon) - 1e-13
        assert found <= true_delta(upper, lower, epsilon - width) + 1e-13


def test_on_grid_points_the_curve_is_exact():
    upper, lower = laws(3, 12)
    grid = from_laws(upper, lower, width=0.25)
    for step in range(-20, 20):
        expected = true_delta(upper, lower, step * 0.25)
        assert delta_at(grid, step * 0.25) == pytest.approx(expected, abs=1e-13)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_a_coarser_grid_only_adds_loss(seed):
    fine = from_laws(*laws(seed, 8), width=0.01)
    coarse = regrid(fine, width=0.3)
    assert coarse.mass.sum() == pytest.approx(fine.mass.sum())
    for epsilon in np.linspace(-4, 4, 50):
        assert delta_at(coarse, epsilon) >= delta_at(fine, epsilon) - 1e-13


# ---- from_normal ----


@pytest.mark.parametrize("mu", [0.01, 0.3, 1.0, 4.0])
@pytest.mark.parametrize("width", [1e-3, 1e-2])
def test_normal_laws_have_their_closed_form(mu, width):
    grid = from_normal(mu, width=width)
    assert grid.mass.min() >= 0
    assert grid.mass.sum() + grid.infinite == pytest.approx(1, abs=1e-14)
    for step in (-30, 0, 1, 40, 200):
        epsilon = step * width
        # Exact on the grid's points, up to what was cut and rounding.
        assert delta_at(grid, epsilon) == pytest.approx(gaussian_delta(1 / mu, epsilon), abs=1e-13)
    between = 10.5 * width
    assert delta_at(grid, between) >= gaussian_delta(1 / mu, between) - 1e-15


# ---- compose ----


def test_two_laws_compose_to_their_convolution():
    one = LossGrid(start=-1, mass=np.array([0.2, 0.3, 0.4]), infinite=0.1, width=0.5)
    other = LossGrid(start=2, mass=np.array([0.5, 0.25]), infinite=0.25, width=0.5)
    composed = compose(one, other)
    assert composed.start == 1
    np.testing.assert_allclose(composed.mass, [0.1, 0.2, 0.275, 0.1], atol=1e-15)
    assert composed.infinite == pytest.approx(1 - 0.9 * 0.75)


def test_composed_normal_laws_are_a_normal_law():
    half = from_normal(0.6, width=1e-3)
    composed = compose(half, from_normal(0.8, width=1e-3))
    for epsilon in (0.0, 0.5, 3.0):
        exact = gaussian_delta(1.0, epsilon)
        assert exact - 1e-13 <= delta_at(composed, epsilon) <= exact * (1 + 1e-5) + 1e-13


def test_ends_are_cut_towards_more_loss():
    mass = np.zeros(2000)
    mass[[0, 1000, 1999]] = 4e-16, 1 - 8e-16, 4e-16
    one = LossGrid(start=-1000, mass=mass, infinite=0.0, width=0.01)
    nothing = LossGrid(start=0, mass=np.ones(1), infinite=0.0, width=0.01)
    composed = compose(one, nothing)
    assert len(composed.mass) < 2000
    assert composed.infinite >= 3e-16
    assert composed.mass.sum() + composed.infinite == pytest.approx(1, abs=1e-14)


# ---- epsilon_at ----


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10_000), delta=st.floats(1e-6, 0.9))
def test_epsilon_and_delta_are_inverse(seed, delta):
    grid = from_laws(*laws(seed, 9), width=0.05)
    epsilon = epsilon_at(grid, delta)
    assert delta_at(grid, epsilon) <= delta + 1e-12
    if epsilon > 0:
        assert delta_at(grid, epsilon) == pytest.approx(delta, abs=1e-12)


def test_no_epsilon_helps_against_infinite_loss():
    grid = LossGrid(start=0, mass=np.array([0.9]), infinite=0.1, width=1.0)
    assert epsilon_at(grid, 0.05) == math.inf
    assert epsilon_at(grid, 0.1) == 0.0


def test_losses_beyond_what_a_float_can_be_raised_to_move_epsilon_and_nothing_else():
    """A law whose losses are all larger by c needs an epsilon that is larger by c."""
    width = 0.01
    mass = stats.norm.pdf(np.linspace(-4, 4, 400))
    mass = mass / mass.sum()
    near = LossGrid(start=100, mass=mass, infinite=1e-9, width=width)
    for beyond in (650, 690, 705, 1600):
        far = LossGrid(start=100 + beyond * 100, mass=mass, infinite=1e-9, width=width)
        with np.errstate(all="raise", under="ignore"):
            found = epsilon_at(far, 1e-3)
        assert math.isclose(found, epsilon_at(near, 1e-3) + beyond, rel_tol=1e-12)


# ---- compose_many ----


@pytest.mark.parametrize("rows", [1, 2, 3, 7])
def test_composition_is_convolution(rows):
    rng = np.random.default_rng(4)
    row = LossGrid(start=-5, mass=rng.dirichlet(np.ones(13)) * 0.99, infinite=0.01, width=0.01)
    start, mass = convolved(row, rows)
    composed = compose_many(row, rows)
    assert composed.width == row.width
    np.testing.assert_allclose(mass_at(composed, start, len(mass)), mass, atol=1e-14)
    # Everything else is zero but for rounding, and what is infinite once stays so.
    assert composed.mass.sum() == pytest.approx(0.99**rows, abs=1e-12)
    assert composed.infinite == pytest.approx(1 - 0.99**rows, abs=1e-10)


@pytest.mark.parametrize("rows", [16, 400, 4096])
@pytest.mark.parametrize("share", [0.5, 0.51, 0.9])
def test_two_losses_compose_to_a_binomial_law(rows, share):
    # Loss +1 or -1 steps: after M rows it is 2 B - M with B binomial.
    row = LossGrid(start=-1, mass=np.array([1 - share, 0.0, share]), infinite=0.0, width=1e-3)
    composed = compose_many(row, rows)
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
    composed = compose_many(row, rows)
    counts = np.arange(rows + 1)
    upper, lower = stats.binom.pmf(counts, rows, p), stats.binom.pmf(counts, rows, 1 - p)
    for total in (0.0, 0.5 * epsilon, 3 * epsilon, epsilon * math.sqrt(rows)):
        exact = np.maximum(upper - math.exp(total) * lower, 0).sum()
        found = delta_at(composed, total)
        assert exact - 1e-13 <= found <= exact + 1e-10


def test_a_window_that_cannot_hold_all_counts_the_rest_as_infinite():
    # A rare large loss: the tail beyond the window must not vanish.
    mass = np.zeros(2001)
    mass[0], mass[-1] = 1 - 1e-6, 1e-6
    row = LossGrid(start=0, mass=mass, infinite=0.0, width=1e-3)
    composed = compose_many(row, 1000)
    assert composed.mass.sum() + composed.infinite >= 1 - 1e-12
    # The window grows until next to nothing is outside, so next to nothing is given up.
    assert composed.infinite < 1e-12
    # P(two or more of 1000) = 5e-7 at a loss of 4 or more.
    exact = stats.binom.sf(1, 1000, 1e-6)
    assert delta_at(composed, 3.0) >= exact * (1 - math.exp(-1)) - 1e-13


def test_a_window_that_may_not_grow_counts_the_rest_as_infinite(monkeypatch):
    monkeypatch.setattr(losses, "_LARGEST_WINDOW", 2**13)
    mass = np.zeros(2001)
    mass[0], mass[-1] = 1 - 1e-6, 1e-6
    row = LossGrid(start=0, mass=mass, infinite=0.0, width=1e-3)
    composed = compose_many(row, 1000)
    # Three of the rare losses are 6, beyond the window: they would come back at its lower end.
    assert composed.losses[-1] < 6
    assert composed.infinite >= stats.binom.sf(2, 1000, 1e-6)


def test_one_row_is_itself():
    row = LossGrid(start=3, mass=np.array([0.25, 0.5, 0.25]), infinite=0.0, width=0.1)
    composed = compose_many(row, 1)
    np.testing.assert_allclose(mass_at(composed, 3, 3), row.mass, atol=1e-15)
    np.testing.assert_allclose(row.losses, [0.3, 0.4, 0.5])


# ---- delta_at ----


def test_delta_by_hand():
    grid = LossGrid(start=0, mass=np.array([0.6, 0.3]), infinite=0.1, width=1.0)
    # At 0 the loss of 1 counts 0.3 (1 - 1/e); at 1 and beyond the infinite part is left.
    expected = [0.1 + 0.3 * (1 - math.exp(-1)), 0.1 + 0.3 * (1 - math.exp(-0.5)), 0.1, 0.1]
    found = [delta_at(grid, epsilon) for epsilon in (0.0, 0.5, 1.0, 9.0)]
    assert found == pytest.approx(expected)


def test_delta_never_rises():
    composed = compose_many(from_laws(*laws(9, 20), width=0.05), 50)
    found = [delta_at(composed, epsilon) for epsilon in np.linspace(-10, 60, 300)]
    assert (np.diff(found) <= 1e-12).all()
    assert min(found) >= 0
    assert max(found) <= 1
