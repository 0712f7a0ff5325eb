"""What one user does to all parties' registers, against the pair of laws that is accounted for.

Laws are computed exactly and compared by the hockey-stick divergence, sum max(0, P - e^eps Q), the
smallest delta at that eps, in both directions. Broken twins must be caught by the same means.
"""

import itertools
import math

import numpy as np
import pytest

from splitmeans.errors import ParameterError
from splitmeans.membership.sketch.law import SketchLaw
from splitmeans.paper.dpfm import SketchParameters
from splitmeans.privacy.events import CellSketchEvent
from splitmeans.privacy.register_law import log_cdf, register_pmfs

EPSILONS = (0.0, 0.001, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 1.0)
# Doubles: sums of up to 4,096 masses are off by less.
ROUNDING = 1e-13


def hockey_stick(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


def both_directions(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Deltas at all epsilons, shape (2, epsilons)."""
    return np.array([[hockey_stick(a, b, e) for e in EPSILONS] for a, b in ((p, q), (q, p))])


def pair_of(phantoms: int, floor: int, gamma: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    event = CellSketchEvent(repetitions=1, gamma=gamma, phantoms=phantoms, floor=floor)
    _, p, q = register_pmfs(event)
    return p, q


@pytest.mark.parametrize("gamma", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("floor", [0, 1, 4])
@pytest.mark.parametrize("phantoms", [1, 2, 10])
def test_more_users_in_the_cell_only_lower_the_loss(
    phantoms: int, floor: int, gamma: float
) -> None:
    accounted = both_directions(*pair_of(phantoms, floor, gamma))
    previous = accounted
    for users in (1, 2, 5, 30, 1000):
        found = both_directions(*pair_of(phantoms + users, floor, gamma))
        assert (found <= accounted + ROUNDING).all()
        assert (found <= previous + ROUNDING).all()
        previous = found
    assert accounted[:, 0].min() > 0


# ---- all registers of two parties in one row ----

TOP = 8  # registers above count as this one; the same for both laws, so it is post-processing


def capped_pmf(elements: int, floor: int) -> np.ndarray:
    """Law of the floored and capped maximum of `elements` values at gamma = 1, shape (TOP,)."""
    cdf = np.array(
        [(1 - 2.0**-v) ** elements if v >= floor else 0.0 for v in range(1, TOP)] + [1.0]
    )
    return np.diff(cdf, prepend=0.0)


def joint_law(counts: np.ndarray, floor: int) -> np.ndarray:
    """Law of (A_0, A_1, B_0, B_1) for `counts` elements in cells (2, 2), flat.

    Every cell's maximum is enumerated: each party's register is the maximum over a row or column.
    """
    values = np.array(list(itertools.product(range(TOP), repeat=4)))
    masses = [capped_pmf(int(n), floor) for n in counts.ravel()]
    weights = np.prod([mass[values[:, c]] for c, mass in enumerate(masses)], axis=0)
    z = values.reshape(-1, 2, 2)
    registers = np.concatenate([z.max(axis=2), z.max(axis=1)], axis=1)
    law = np.zeros((TOP,) * 4)
    np.add.at(law, tuple(registers.T), weights)
    return law.ravel()


@pytest.mark.parametrize("floor", [1, 3])
@pytest.mark.parametrize("phantoms", [1, 4])
@pytest.mark.parametrize(
    "others",
    [[[0, 0], [0, 0]], [[3, 0], [0, 0]], [[0, 20], [5, 0]], [[0, 0], [0, 50]], [[2, 1], [7, 9]]],
    ids=str,
)
def test_one_pair_of_laws_covers_all_parties(others, phantoms: int, floor: int) -> None:
    without = np.array(others) + phantoms
    with_user = without + np.array([[1, 0], [0, 0]])
    found = both_directions(joint_law(without, floor), joint_law(with_user, floor))
    accounted = both_directions(*pair_of(phantoms, floor))
    assert (found <= accounted + ROUNDING).all()


# ---- broken twins ----


def shared_key_laws(phantoms: int, floor: int, top: int = 70) -> list[np.ndarray]:
    """One cluster at each of two parties with phantoms of its own, the user's value in both.

    Returns:
        The law of the two registers without the user, with it, and what the published argument
        takes for the latter: values of the user that are independent between the parties.
    """
    values = np.arange(floor, top)
    f = np.exp(log_cdf(values, gamma=1.0))
    g = np.exp(phantoms * log_cdf(values, gamma=1.0))
    lower = np.minimum.outer(f, f)
    corners = [np.outer(g, g), np.outer(g, g) * lower, np.outer(g * f, g * f)]
    # The last value takes the rest, which is below 1e-17.
    return [
        np.diff(np.diff(np.pad(cdf, ((1, 0), (1, 0))), axis=0), axis=1).ravel() for cdf in corners
    ]


def test_phantoms_per_cluster_with_shared_keys_exceed_what_is_claimed() -> None:
    without, shared, independent = shared_key_laws(phantoms=10, floor=1)
    claimed = both_directions(without, independent)[1]
    actual = both_directions(without, shared)[1]
    beyond = [a > 1.5 * c for a, c in zip(actual, claimed, strict=True)]
    assert sum(beyond) >= 3
    # The loss of the claimed law is bounded by 2 log(1 + 1/10) = 0.191; the actual one is not.
    assert claimed[EPSILONS.index(0.2)] == pytest.approx(0, abs=ROUNDING)
    assert actual[EPSILONS.index(1.0)] > 1e-3
    # As many phantoms in the cell itself keep within the loss of one element among them.
    accounted = both_directions(*pair_of(10, 1))[1]
    assert accounted[EPSILONS.index(0.1)] == pytest.approx(0, abs=ROUNDING)


def test_the_published_parameters_fail_for_two_parties() -> None:
    # docs/concepts/published-argument.md: the event
    # "both registers of some row are equal and at least v0".
    published = SketchParameters(epsilon_2=0.245, delta_2=2.5e-5)
    without, shared, _ = shared_key_laws(published.phantoms, published.floor)
    size = math.isqrt(without.size)
    seen = slice(25 - published.floor, None)
    rows = [np.diag(law.reshape(size, size))[seen].sum() for law in (without, shared)]
    away, there = (-math.expm1(4096 * math.log1p(-row)) for row in rows)
    assert away == pytest.approx(5.61e-5, rel=0.005)
    assert there == pytest.approx(3.00e-4, rel=0.005)
    # Both sketches together claim (0.49, 5e-5), and the whole run claims (1, 5e-5).
    assert there - math.e * away > 1.4e-4


def test_no_phantoms_and_no_floor_protect_nothing() -> None:
    with pytest.raises(ParameterError, match="phantoms must be a whole number >= 1, got 0"):
        CellSketchEvent(repetitions=4096, gamma=1.0, phantoms=0, floor=0)
    with pytest.raises(ParameterError, match="phantoms must be a whole number >= 1, got 0"):
        SketchLaw(repetitions=4096, gamma=1.0, phantoms=0, floor=11)
    # An empty register is 0; with the user it never is: delta is 1 at every epsilon.
    empty = np.array([1.0] + [0.0] * TOP)
    one = np.concatenate([[0.0], capped_pmf(1, 1)])
    assert [hockey_stick(one, empty, e) for e in (0, 1, 10, 100)] == [1.0] * 4


# ---- all rows ----


def convolved_epsilon(event: CellSketchEvent, delta: float, *, step: float, up: bool) -> float:
    """Epsilon of M rows by convolving the loss of one row, rounded up or down to a grid.

    The sum has mean 0.01 and deviation 0.15; what wraps around the grid's span of 2, six
    deviations, is far below delta.
    """
    _, p, q = register_pmfs(event)
    size = 2 ** math.ceil(math.log2(2 / step))
    losses = np.fft.fftfreq(size, 1 / size) * step
    found = []
    for upper, lower in ((p, q), (q, p)):
        loss = (np.log(upper) - np.log(lower)) / step
        one = np.zeros(size)
        np.add.at(one, (np.ceil(loss) if up else np.floor(loss)).astype(int), upper)
        law = np.fft.irfft(np.fft.rfft(one) ** event.repetitions, size)
        low, high = 0.0, 1.0
        for _ in range(30):
            middle = (low + high) / 2
            kept = losses > middle
            fits = (law[kept] * -np.expm1(middle - losses[kept])).sum() <= delta
            low, high = (low, middle) if fits else (middle, high)
        found.append(high)
    return max(found)


def test_phantoms_for_half_of_epsilon_one() -> None:
    # 86 phantoms a cell above floor 11 are enough for (0.49, 5e-5), where the published sketch
    # has 3401 a cluster; 80 are not.
    enough = CellSketchEvent(repetitions=4096, gamma=1.0, phantoms=86, floor=11)
    assert convolved_epsilon(enough, 5e-5, step=2e-6, up=True) <= 0.49
    too_few = CellSketchEvent(repetitions=4096, gamma=1.0, phantoms=80, floor=11)
    assert convolved_epsilon(too_few, 5e-5, step=2e-6, up=False) > 0.49
