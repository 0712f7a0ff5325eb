"""Exact accounting against a second, independent calculation: direct convolution of the laws.

The second accountant shares no code with the first. It works on privacy losses rounded UP to a fine
grid (an upper bound) or DOWN (a lower bound), convolves the laws by repeated squaring, in both
directions, and reads delta off. The library's figure must lie between the two, up to its own
pessimism. Rounding in the transforms is below 1e-12, far below every delta compared here.
"""

import math

import numpy as np
import pytest
from scipy import signal, stats

from splitmeans.errors import PrivacyError
from splitmeans.privacy.events import (
    CellSketchEvent,
    ComposedEvent,
    CountGaussianEvent,
    GaussianEvent,
    RandomisedResponseEvent,
    ShiftEvent,
)
from splitmeans.privacy.pld import (
    COARSE,
    FINE,
    NUMERICAL_MARGIN,
    Gap,
    delta_for,
    epsilon_for,
    gap_of,
)

Law = tuple[np.ndarray, np.ndarray]


def discrete_gaussian(sigma: float, reach: int) -> np.ndarray:
    x = np.arange(-reach, reach + 1)
    weights = np.exp(-(x**2) / (2 * sigma**2))
    return weights / weights.sum()


def discrete_laplace(scale: float, reach: int) -> np.ndarray:
    weights = np.exp(-np.abs(np.arange(-reach, reach + 1)) / scale)
    return weights / weights.sum()


def shifted(law: np.ndarray) -> Law:
    """The law and itself moved by one, on a common support."""
    return np.append(law, 0.0), np.append(0.0, law)


def register_laws(gamma: float, phantoms: int, floor: int, top: int) -> Law:
    """F^n floored, straight from its definition, with and without one more element."""
    values = np.arange(floor, top + 1, dtype=np.float64)
    log_cdf = np.log1p(-np.exp(-values * math.log1p(gamma)))

    def law(n: int) -> np.ndarray:
        cdf = np.exp(n * log_cdf)
        cdf[-1] = 1.0
        return np.diff(cdf, prepend=0.0)

    return law(phantoms), law(phantoms + 1)


class Convolution:
    """Privacy losses on a grid of width h, rounded up or down, with the mass at infinity."""

    def __init__(self, one: np.ndarray, other: np.ndarray, *, width: float, up: bool) -> None:
        self.width = width
        both = (one > 0) & (other > 0)
        self.infinite = float(one[~(other > 0)].sum()) if up else 0.0
        loss = np.log(one[both]) - np.log(other[both])
        cells = (np.ceil if up else np.floor)(loss / width).astype(int)
        self.start = int(cells.min())
        self.mass = np.bincount(cells - self.start, weights=one[both])

    def __mul__(self, other: "Convolution") -> "Convolution":
        result = object.__new__(Convolution)
        result.width = self.width
        result.start = self.start + other.start
        result.mass = np.maximum(signal.fftconvolve(self.mass, other.mass), 0.0)
        result.infinite = 1 - (1 - self.infinite) * (1 - other.infinite)
        return result

    def power(self, count: int) -> "Convolution":
        result, square = None, self
        while count:
            if count & 1:
                result = square if result is None else result * square
            count >>= 1
            if count:
                square = square * square
        assert result is not None
        return result

    def delta(self, epsilon: float) -> float:
        losses = (self.start + np.arange(len(self.mass))) * self.width
        over = losses > epsilon
        gain = -np.expm1(epsilon - losses[over])
        return self.infinite + float(self.mass[over] @ gain)


def bracket(laws: list[tuple[Law, int]], epsilon: float, *, width: float) -> tuple[float, float]:
    """Lower and upper bound on delta, the worse of the two directions."""
    ends = []
    for up in (False, True):
        worst = 0.0
        for direction in (0, 1):
            total = None
            for law, count in laws:
                one, other = law if direction == 0 else law[::-1]
                part = Convolution(one, other, width=width, up=up).power(count)
                total = part if total is None else total * part
            assert total is not None
            worst = max(worst, total.delta(epsilon))
        ends.append(worst)
    return ends[0], ends[1]


def assert_between(events: list, laws: list[tuple[Law, int]], epsilon: float, width: float) -> None:
    lower, upper = bracket(laws, epsilon, width=width)
    delta = delta_for(events, epsilon)
    assert lower <= delta * (1 + 1e-6) + 1e-11
    # The fine discretisation may be pessimistic, by a little.
    assert delta <= upper * 1.05 + 1e-11
    assert upper <= lower * 2 + 1e-11, "the check is too blunt to say anything"


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0])
def test_discrete_gaussian_count(epsilon: float) -> None:
    event = CountGaussianEvent(scale=4.0)
    assert_between([event] * 3, [(shifted(discrete_gaussian(4.0, 60)), 3)], epsilon, 1e-4)


@pytest.mark.parametrize("epsilon", [0.2, 0.49, 0.8])
def test_cell_sketch(epsilon: float) -> None:
    """The figures of the design: 85 phantoms at floor 11 are about (0.49, 5e-5)."""
    event = CellSketchEvent(repetitions=4096, gamma=1.0, phantoms=85, floor=11)
    laws = register_laws(1.0, 85, 11, 60)
    lower, upper = sketch_bracket(laws, 4096, epsilon)
    delta = delta_for([event], epsilon)
    assert lower <= delta * (1 + 1e-6) + 1e-11
    assert delta <= upper * 1.05


def sketch_bracket(laws: Law, rows: int, epsilon: float) -> tuple[float, float]:
    """Bound delta of many equal rows; each rounds once, so the grid is much finer here."""
    ends = []
    for up in (False, True):
        worst = 0.0
        for one, other in (laws, laws[::-1]):
            part = Convolution(one, other, width=1e-6, up=up)
            worst = max(worst, fine_power(part, rows).delta(epsilon))
        ends.append(worst)
    return ends[0], ends[1]


def fine_power(part: Convolution, count: int) -> Convolution:
    """`power` by a discrete Fourier transform, for grids too fine to convolve directly."""
    reach = 1.6  # loss of all rows together stays within this, but for a mass below 1e-12
    size = 1 << math.ceil(math.log2(2 * reach / part.width))
    padded = np.zeros(size)
    indices = (part.start + np.arange(len(part.mass))) % size
    np.add.at(padded, indices, part.mass)
    composed = np.fft.irfft(np.fft.rfft(padded) ** count, n=size)
    result = object.__new__(Convolution)
    result.width = part.width
    result.start = -size // 2
    result.mass = np.maximum(np.roll(composed, size // 2), 0.0)
    result.infinite = 1 - (1 - part.infinite) ** count
    return result


def test_number_of_phantoms_by_two_accountants() -> None:
    """(0.49, 5e-5) at M = 4096, gamma = 1 needs below 300 phantoms per cell, at these floors."""
    for floor, phantoms in ((9, 257), (10, 155), (11, 85), (12, 46)):
        event = CellSketchEvent(repetitions=4096, gamma=1.0, phantoms=phantoms, floor=floor)
        assert delta_for([event], 0.49) <= 5e-5
        fewer = CellSketchEvent(
            repetitions=4096, gamma=1.0, phantoms=math.ceil(0.93 * phantoms), floor=floor
        )
        assert delta_for([fewer], 0.49) > 5e-5
    lower, upper = sketch_bracket(register_laws(1.0, 257, 9, 60), 4096, 0.485)
    assert lower < 5e-5 < upper * 1.1


def test_shift_of_a_truncated_law_has_its_ends_as_delta() -> None:
    weights = (1, 2, 4, 2, 1)
    law = np.array(weights) / 10
    event = ShiftEvent(weights=weights)
    # log 2 bounds every finite loss, so what is left is the mass at one end (and a grid step).
    assert delta_for([event], math.log(2)) == pytest.approx(0.1, abs=1e-4)
    assert_between([event, event], [(shifted(law), 2)], 0.5, 1e-4)


@pytest.mark.parametrize("multiplier", [0.8, 2.0, 5.3])
def test_gaussian_matches_its_closed_form(multiplier: float) -> None:
    for epsilon in (0.1, 0.5, 1.0):
        mu = 1 / multiplier
        exact = stats.norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * stats.norm.cdf(
            -mu / 2 - epsilon / mu
        )
        delta = delta_for([GaussianEvent(noise_multiplier=multiplier)], epsilon)
        assert exact <= delta <= exact * 1.01 + 1e-9


def test_gaussians_merge() -> None:
    parts = [GaussianEvent(noise_multiplier=2.0)] * 4
    assert delta_for(parts, 0.7) == delta_for([GaussianEvent(noise_multiplier=1.0)], 0.7)
    nested = [ComposedEvent(parts=(parts[0], ComposedEvent(parts=tuple(parts[1:]))))]
    assert delta_for(nested, 0.7) == delta_for(parts, 0.7)


def test_slack_is_charged() -> None:
    plain = delta_for([GaussianEvent(noise_multiplier=2.0)], 1.0)
    slack = delta_for([GaussianEvent(noise_multiplier=2.0, slack=1e-6)], 1.0)
    shifted = delta_for([GaussianEvent(noise_multiplier=2.0)], 1.0 - 1e-6)
    assert plain < slack == pytest.approx(shifted * (1 + 1e-6), rel=1e-9)
    more = epsilon_for([GaussianEvent(noise_multiplier=2.0, slack=1e-3)], 1e-5)
    less = epsilon_for([GaussianEvent(noise_multiplier=2.0)], 1e-5 * math.exp(-1e-3))
    assert more == pytest.approx(less + 1e-3, abs=1e-6)


def test_a_repeated_tag_costs_a_join_nothing_and_a_sketch_something() -> None:
    """Records of a join with equal tags are refused, or sorted, whoever they belong to."""
    event = ShiftEvent(weights=tuple(round(p * 2**60) for p in discrete_gaussian(7.6, 36)))
    assert gap_of([event] * 3) == Gap(loss=0.0, rare=0.0, distance=0.0)
    assert gap_of([event] * 3).delta(12.0) == NUMERICAL_MARGIN
    sketch = CellSketchEvent(repetitions=16, gamma=1.0, phantoms=5, floor=2)
    assert gap_of([sketch]).delta(12.0) > 1e5 * 2**-50


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
def test_both_laws_of_a_pair_may_be_off(epsilon: float) -> None:
    """Two laws on two outcomes, each moved by the distance in the direction that tells more."""
    upper, lower, distance = 0.6, 0.05, 0.01
    composed = upper - math.exp(epsilon) * lower
    drawn = (upper + distance) - math.exp(epsilon) * (lower - distance)
    charged = Gap(loss=0.0, rare=0.0, distance=distance).delta(epsilon)
    assert composed + charged >= drawn
    assert charged == pytest.approx(drawn - composed)


def test_slack_beyond_reason_bounds_nothing() -> None:
    event = GaussianEvent(noise_multiplier=2.0, slack=1e9)
    assert delta_for([event], 1.0) == 1
    assert epsilon_for([event], 1e-5) == math.inf


def test_randomised_response_has_the_law_of_a_coin() -> None:
    events = [RandomisedResponseEvent(epsilon=0.5)] * 3
    p = math.exp(0.5) / (1 + math.exp(0.5))
    coin = np.array([p, 1 - p])
    assert delta_for(events[:1], 0.5) <= 2e-12
    assert delta_for(events[:1], 0.2) == pytest.approx(p - math.exp(0.2) * (1 - p), rel=1e-3)
    assert_between(events, [((coin, coin[::-1]), 3)], 0.7, 1e-4)


def test_mixed_run_against_convolution() -> None:
    """The shape of a decoy run: local Gaussian noise and one truncated count law."""
    law = discrete_gaussian(7.6, 36)
    events = [CountGaussianEvent(scale=5.3)] * 2 + [
        ShiftEvent(weights=tuple(round(p * 2**60) for p in law))
    ]
    laws = [(shifted(discrete_gaussian(5.3, 60)), 2), (shifted(law), 1)]
    for epsilon in (0.5, 1.0):
        assert_between(events, laws, epsilon, 1e-4)


def test_figures_of_the_design() -> None:
    """Total (1, 5e-5): local multiplier 5.3 twice, decoy law sigma 7.6 cut at 36: 0.9994."""
    weights = tuple(round(p * 2**60) for p in discrete_gaussian(7.6, 36))
    events = [GaussianEvent(noise_multiplier=5.3)] * 2 + [ShiftEvent(weights=weights)]
    assert epsilon_for(events, 5e-5) == pytest.approx(0.9994, abs=5e-4)


def test_epsilon_and_delta_are_inverse() -> None:
    events = [GaussianEvent(noise_multiplier=3.0, slack=1e-9), RandomisedResponseEvent(epsilon=0.2)]
    for delta in (1e-3, 1e-5, 1e-7):
        epsilon = epsilon_for(events, delta)
        assert delta_for(events, epsilon) <= delta * (1 + 1e-6)
        assert delta_for(events, epsilon * 0.99) > delta


def test_coarse_is_never_more_optimistic_than_fine() -> None:
    events = [GaussianEvent(noise_multiplier=3.0)] + [RandomisedResponseEvent(epsilon=1 / 40)] * 21
    for epsilon in (0.3, 1.0):
        coarse = delta_for(events, epsilon, interval=COARSE)
        assert coarse >= delta_for(events, epsilon, interval=FINE) * (1 - 1e-9)


def test_nothing_released_costs_nothing() -> None:
    assert delta_for([], 0.1) == 0
    assert epsilon_for([], 1e-5) == 0


def test_unproved_event_is_refused() -> None:
    class NewEvent:
        pass

    with pytest.raises(PrivacyError, match="NewEvent has no proved privacy loss"):
        delta_for([NewEvent()], 1.0)  # type: ignore[list-item]


def test_half_the_noise_is_noticed() -> None:
    """The broken twin: an event that claims more noise than there is costs visibly less."""
    honest = epsilon_for([GaussianEvent(noise_multiplier=3.0)], 1e-5)
    broken = epsilon_for([GaussianEvent(noise_multiplier=1.5)], 1e-5)
    assert broken > 1.9 * honest


def test_no_delta_is_enough_where_laws_are_off_and_epsilon_is_beyond_floats():
    off = Gap(loss=0.0, rare=0.0, distance=1e-12)
    assert off.delta(1.0) < 1e-10
    assert off.delta(1600.0) == math.inf
    exact = Gap(loss=0.0, rare=0.0, distance=0.0)
    assert exact.delta(1600.0) == exact.delta(0.0)
