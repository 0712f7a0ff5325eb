"""The public law: tables against exact fractions, parameters against the paper's formulas."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from splitmeans.errors import ParameterError, PrivacyError
from splitmeans.membership.registers.law import RegisterLaw
from splitmeans.membership.sketch_paper.law import SketchPaperLaw
from splitmeans.privacy.events import PublishedSketchEvent

PAPER = {"epsilon": 0.245, "delta": 2.5e-5, "gamma": 1.0, "repetitions": 4096}


def exact_tail(gamma: float, v: int) -> Fraction:
    return 1 / (1 + Fraction(gamma)) ** v


def threshold(probability: Fraction) -> int:
    return round(probability * 2**64)


def test_values_at_gamma_one_are_powers_of_two() -> None:
    expected = [2**64 - 2 ** (64 - v) for v in range(1, 65)]
    assert RegisterLaw(gamma=1.0).value_table.tolist() == expected


@pytest.mark.parametrize("gamma", [3.0, 0.3, 0.05])
def test_value_table_is_exact(gamma: float) -> None:
    table = RegisterLaw(gamma=gamma).value_table.tolist()
    assert table == [threshold(1 - exact_tail(gamma, v)) for v in range(1, len(table) + 1)]
    assert threshold(1 - exact_tail(gamma, len(table) + 1)) == 2**64


@pytest.mark.parametrize(("gamma", "count"), [(1.0, 1), (1.0, 7), (0.5, 60), (0.1, 2)])
def test_maximum_table_is_exact(gamma: float, count: int) -> None:
    table = RegisterLaw(gamma=gamma).maximum_table(count).tolist()
    exact = [threshold((1 - exact_tail(gamma, v)) ** count) for v in range(1, len(table) + 2)]
    assert table == exact[:-1]
    assert exact[-1] == 2**64


@pytest.mark.parametrize(
    ("gamma", "rows", "floor"), [(1.0, 64, 3), (1.0, 100, 1), (0.5, 40, 6), (0.01, 30, 1)]
)
def test_count_table_is_exact(gamma: float, rows: int, floor: int) -> None:
    p = exact_tail(gamma, floor)
    masses = [math.comb(rows, j) * p**j * (1 - p) ** (rows - j) for j in range(rows + 1)]
    exact = [threshold(total) for total in itertools.accumulate(masses)]
    table = RegisterLaw(gamma=gamma).count_table(repetitions=rows, floor=floor).tolist()
    assert table == [word for word in exact if word < 2**64]


def test_every_row_exceeds_floor_zero() -> None:
    table = RegisterLaw(gamma=1.0).count_table(repetitions=5, floor=0)
    assert table.tolist() == [0] * 5


def test_tables_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="read-only"):
        RegisterLaw(gamma=1.0).value_table[0] = 1


@pytest.mark.parametrize("gamma", [0.01, 0.1, 1.0, 3.0])
@pytest.mark.parametrize("epsilon", [1e-9, 0.01, 1.0])
def test_tables_are_small_sorted_and_registers_fit_16_bits(gamma: float, epsilon: float) -> None:
    law = SketchPaperLaw(epsilon=epsilon, delta=1e-5, gamma=gamma, repetitions=4096)
    counts = law.registers.count_table(repetitions=4096, floor=law.floor)
    for table in (law.phantom_table, law.registers.value_table, counts):
        assert table.dtype == np.uint64
        assert table.size < 8_000
        assert (table[1:] >= table[:-1]).all()
    assert law.largest_register < 8_000


def test_parameters_of_the_paper_at_two_parties_and_epsilon_one() -> None:
    law = SketchPaperLaw(**PAPER)
    assert law.phantoms == 3401
    assert law.floor == 12
    assert law.event == PublishedSketchEvent(
        repetitions=4096,
        gamma=1.0,
        phantoms=3401,
        floor=12,
        claimed_epsilon=0.245,
        claimed_delta=2.5e-5,
    )


@settings(max_examples=50, deadline=None)
@given(
    epsilon=st.floats(1e-4, 4.0),
    delta=st.floats(1e-9, 0.1),
    gamma=st.floats(0.05, 3.0),
    rows=st.integers(1, 65_536),
)
def test_parameters_meet_their_definitions(
    epsilon: float, delta: float, gamma: float, rows: int
) -> None:
    law = SketchPaperLaw(epsilon=epsilon, delta=delta, gamma=gamma, repetitions=rows)
    cost = epsilon / (4 * math.sqrt(rows * math.log(1 / delta)))
    slack = 1 + 1e-9  # floats here, 60 digits there
    assert law.phantoms * math.expm1(cost) * slack >= 1 > (law.phantoms - 1) * math.expm1(cost)
    bound = -math.expm1(-cost)
    assert (1 + gamma) ** -law.floor <= bound * slack
    assert (1 + gamma) ** -(law.floor - 1) * slack > bound
    assert law.floor >= 1


def test_less_budget_never_means_fewer_phantoms_or_a_lower_floor() -> None:
    laws = [SketchPaperLaw(**{**PAPER, "epsilon": e}) for e in np.geomspace(1e-4, 4, 40)]
    for tighter, looser in itertools.pairwise(laws):
        assert tighter.phantoms >= looser.phantoms
        assert tighter.floor >= looser.floor


def test_numpy_numbers_are_as_good_as_python_ones() -> None:
    law = SketchPaperLaw(
        epsilon=np.float64(0.245), delta=np.float64(2.5e-5), gamma=1, repetitions=np.int64(4096)
    )
    assert (law.phantoms, law.floor) == (3401, 12)


def test_epsilon_beyond_the_lemma_is_refused() -> None:
    most = 2 * math.log(1 / 0.01)
    SketchPaperLaw(**{**PAPER, "delta": 0.01, "epsilon": most - 1e-9})
    with pytest.raises(PrivacyError, match=r"must be <= 2 ln\(1/delta\) = 9.21 .* got 9.3"):
        SketchPaperLaw(**{**PAPER, "delta": 0.01, "epsilon": 9.3})


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"epsilon": 0.0}, "epsilon must be > 0"),
        ({"epsilon": 1e-10}, "epsilon must be >= 1e-09"),
        ({"delta": 1.0}, "delta must be between 0 and 1"),
        ({"gamma": 0.005}, "gamma must be between 0.01 and 3.0, got 0.005"),
        ({"gamma": 4.0}, "gamma must be between 0.01 and 3.0"),
        ({"gamma": math.nan}, "gamma must be a finite number"),
        ({"repetitions": 0}, "repetitions must be a whole number >= 1"),
        ({"repetitions": 65_537}, "repetitions must be <= 65536"),
    ],
)
def test_wrong_parameters_are_refused(change: dict[str, float], rule: str) -> None:
    with pytest.raises(ParameterError, match=rule):
        SketchPaperLaw(**{**PAPER, **change})


def test_wrong_table_requests_are_refused() -> None:
    law = RegisterLaw(gamma=1.0)
    with pytest.raises(ParameterError, match="count must be a whole number >= 1"):
        law.maximum_table(0)
    with pytest.raises(ParameterError, match="floor must be a whole number >= 0"):
        law.count_table(repetitions=8, floor=-1)
    with pytest.raises(ParameterError, match="repetitions must be a whole number >= 1"):
        law.count_table(repetitions=0, floor=1)
