"""The law of the cell sketch: pmfs against 80-digit decimals, phantoms and floors by definition."""

import itertools
import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from splitmeans.errors import ParameterError, PrivacyError
from splitmeans.membership.sketch.law import SketchLaw, floor_for, phantoms_for
from splitmeans.privacy.events import CellSketchEvent
from splitmeans.privacy.register_law import (
    log_cdf,
    log_cdf_step,
    register_pmfs,
    row_divergences,
    table_slack,
)

LAW = {"repetitions": 4096, "gamma": 1.0, "phantoms": 85, "floor": 11}
EVENTS = [
    CellSketchEvent(repetitions=4096, gamma=gamma, phantoms=phantoms, floor=floor)
    for gamma, phantoms, floor in [
        (1.0, 85, 11),
        (1.0, 1, 0),
        (3.0, 7, 2),
        (0.5, 3, 1),
        (0.1, 86, 80),
        (0.02, 400, 0),
        (1.0, 10**6, 11),
        (1.0, 5, 60),
    ]
]


def exact_pmf(event: CellSketchEvent, count: int, values: np.ndarray) -> list[Decimal]:
    """P(floored maximum of `count` values = v), the last one for all from there on."""
    ratio = 1 / (1 + Decimal(event.gamma))

    def cdf(v: int) -> Decimal:
        return (1 - ratio**v) ** count if v >= max(event.floor, 1) else Decimal(0)

    masses = [cdf(v) - cdf(v - 1) for v in values.tolist()]
    return [*masses[:-1], 1 - cdf(int(values[-1]) - 1)]


@pytest.mark.parametrize("event", EVENTS, ids=str)
def test_pmfs_and_divergences_are_exact(event: CellSketchEvent) -> None:
    values, p, q = register_pmfs(event)
    with localcontext() as context:
        context.prec = 80
        exact_p = exact_pmf(event, event.phantoms, values)
        exact_q = exact_pmf(event, event.phantoms + 1, values)
        pairs = list(zip(exact_p, exact_q, strict=True))
        away = sum(a * (a / b).ln() for a, b in pairs)
        there = sum(b * (b / a).ln() for a, b in pairs)
        # The difference of the laws keeps its digits too; it is what privacy loss is made of.
        change = [float(b / a - 1) for a, b in pairs]
    np.testing.assert_allclose(p, [float(a) for a in exact_p], rtol=1e-10)
    np.testing.assert_allclose(q, [float(b) for b in exact_q], rtol=1e-10)
    np.testing.assert_allclose(q / p - 1, change, rtol=1e-8, atol=1e-15)
    np.testing.assert_allclose(row_divergences(event), [float(away), float(there)], rtol=1e-11)
    assert p.sum() == pytest.approx(1, abs=1e-14)
    assert q.sum() == pytest.approx(1, abs=1e-14)


@pytest.mark.parametrize("event", EVENTS, ids=str)
def test_values_run_from_the_floor_without_gaps(event: CellSketchEvent) -> None:
    values, p, _ = register_pmfs(event)
    assert (np.diff(values) == 1).all()
    assert values[0] >= max(event.floor, 1)
    assert p[-1] < 2.0**-63


def test_one_phantom_at_gamma_one_by_hand() -> None:
    event = CellSketchEvent(repetitions=1, gamma=1.0, phantoms=1, floor=2)
    values, p, q = register_pmfs(event)
    # F = 1/2, 3/4, 7/8, ...: floored at 2 the laws start with F(2) and F(2)^2.
    assert values[:3].tolist() == [2, 3, 4]
    np.testing.assert_allclose(p[:3], [3 / 4, 1 / 8, 1 / 16], rtol=1e-14)
    np.testing.assert_allclose(
        q[:3], [9 / 16, 49 / 64 - 36 / 64, 225 / 256 - 196 / 256], rtol=1e-14
    )


@pytest.mark.parametrize("gamma", [3.0, 1.0, 0.1, 0.01])
def test_cdf_is_precise_at_both_ends(gamma: float) -> None:
    values = np.arange(1, 400)
    with localcontext() as context:
        context.prec = 300
        f = [1 - (1 / (1 + Decimal(gamma))) ** v for v in range(400)]
        logs = [float(x.ln()) for x in f[1:]]
        steps = [float((x / y).ln()) for y, x in itertools.pairwise(f[1:])]
    np.testing.assert_allclose(log_cdf(values, gamma=gamma), logs, rtol=1e-12)
    found = log_cdf_step(values, gamma=gamma)
    assert found[0] == math.inf
    np.testing.assert_allclose(found[1:], steps, rtol=1e-12)


def test_slack_of_the_tables_is_negligible_but_not_zero() -> None:
    for event in EVENTS:
        assert 0 < table_slack(event) < 2e-11
    fine = CellSketchEvent(repetitions=4096, gamma=0.1, phantoms=86, floor=80)
    assert table_slack(fine) < 1e-13


def test_slack_covers_the_tables_as_they_are() -> None:
    law = SketchLaw(**LAW)
    counts = law.registers.count_table(repetitions=4096, floor=11)
    draws = 4096 / 2048
    thresholds = 4096 * (law.phantom_table.size + 1) + counts.size + 1
    thresholds += draws * (2 * 4096 + law.registers.value_table.size + 1)
    assert thresholds * 2.0**-65 < table_slack(law.event) < 2 * thresholds * 2.0**-65


def test_event_and_tables() -> None:
    law = SketchLaw(**LAW)
    assert law.event == CellSketchEvent(**LAW)
    np.testing.assert_array_equal(law.phantom_table, law.registers.maximum_table(85))
    assert law.largest_register == 11 + 64 + 1
    assert law.labels_of([3, 4]) == (4, 5)
    assert law.shared_phantoms([3]) == 85 * 4
    assert law.shared_phantoms([]) == 85
    assert law.shared_phantoms([3, 2]) == 85 * 12


# docs/concepts/guarantee.md: the phantoms for (0.49, 5e-5), whose mean loss is that of mu = 0.151.
@pytest.mark.parametrize(("floor", "phantoms"), [(0, 409), (9, 272), (10, 162), (11, 86), (12, 44)])
def test_phantoms_at_a_known_precision(floor: int, phantoms: int) -> None:
    assert phantoms_for(0.151, repetitions=4096, gamma=1.0, floor=floor) == phantoms


def test_phantoms_at_the_same_floor_hardly_depend_on_gamma() -> None:
    # (1+gamma)^floor = 2048: a user shows in two rows of 4096 on average, whatever gamma is.
    fine = phantoms_for(0.151, repetitions=4096, gamma=2**0.1 - 1, floor=110)
    assert fine == pytest.approx(86, abs=2)


@settings(max_examples=50, deadline=None)
@given(
    mu=st.floats(1e-3, 20),
    repetitions=st.integers(1, 65_536),
    gamma=st.floats(0.02, 3),
    size=st.floats(0, 12),
)
def test_phantoms_are_the_fewest_that_fit(
    mu: float, repetitions: int, gamma: float, size: float
) -> None:
    floor = int(size / math.log1p(gamma))
    count = phantoms_for(mu, repetitions=repetitions, gamma=gamma, floor=floor)

    def cost(phantoms: int) -> float:
        event = CellSketchEvent(
            repetitions=repetitions, gamma=gamma, phantoms=phantoms, floor=floor
        )
        return 2 * repetitions * max(row_divergences(event))

    assert count >= 1
    assert cost(count) <= mu**2
    assert count == 1 or cost(count - 1) > mu**2 * (1 - 1e-8)


def test_more_phantoms_and_higher_floors_never_cost_more() -> None:
    for gamma in (1.0, 0.1):
        costs = np.array(
            [
                [
                    row_divergences(
                        CellSketchEvent(repetitions=1, gamma=gamma, phantoms=n, floor=floor)
                    )
                    for n in (1, 2, 3, 10, 100, 10**4, 10**7)
                ]
                for floor in (0, 1, 2, 5, 20, 60)
            ]
        )
        assert (np.diff(costs, axis=1) < 0).all()
        assert (np.diff(costs, axis=0) <= costs[:-1] * 1e-12).all()


def test_phantoms_that_no_run_could_hold_are_refused() -> None:
    with pytest.raises(PrivacyError, match="needs more than 1099511627776 phantoms per cell"):
        phantoms_for(1e-12, repetitions=4096, gamma=1.0, floor=0)
    with pytest.raises(ParameterError, match="mu must be > 0"):
        phantoms_for(0.0, repetitions=4096, gamma=1.0, floor=0)


@pytest.mark.parametrize(
    ("users", "gamma", "floor"),
    [(20_480, 1.0, 11), (20_479, 1.0, 10), (20, 1.0, 1), (19, 1.0, 0), (1, 0.1, 0), (160, 3.0, 2)],
)
def test_floor_by_hand(users: int, gamma: float, floor: int) -> None:
    assert floor_for(users, gamma=gamma) == floor


@settings(max_examples=50, deadline=None)
@given(users=st.floats(1, 1e10), gamma=st.floats(0.01, 3))
def test_floor_meets_its_definition(users: float, gamma: float) -> None:
    floor = floor_for(users, gamma=gamma)
    limit = users / 10
    assert floor == 0 or (1 + gamma) ** floor <= limit * (1 + 1e-9)
    assert (1 + gamma) ** (floor + 1) > limit * (1 - 1e-9)


def test_wrong_floor_requests_are_refused() -> None:
    with pytest.raises(ParameterError, match="expected_users must be > 0"):
        floor_for(0, gamma=1.0)
    with pytest.raises(ParameterError, match="gamma must be between"):
        floor_for(100, gamma=0.001)


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"phantoms": 0}, "phantoms must be a whole number >= 1"),
        ({"repetitions": 0}, "repetitions must be a whole number >= 1"),
        ({"repetitions": 65_537}, "repetitions must be <= 65536"),
        ({"floor": -1}, "floor must be a whole number >= 0"),
        ({"floor": 65_500}, "floor must leave registers within 16 bits, got 65500"),
        ({"gamma": 0.001}, "gamma must be between"),
    ],
)
def test_wrong_parameters_are_refused(change: dict[str, float], rule: str) -> None:
    with pytest.raises(ParameterError, match=rule):
        SketchLaw(**{**LAW, **change})
