"""Questions to a synopsis: by hand on a few nodes, conditions as people write them."""

import dataclasses

import numpy as np
import pytest

from splitmeans.errors import ParameterError
from splitmeans.study import Column, PartySpec
from splitmeans.study.features import GRID_UNITS
from splitmeans.synopsis.build import build_synopsis_from_points
from splitmeans.synopsis.column_places import column_places
from splitmeans.synopsis.queries.conditions import read_condition

HALF = round(GRID_UNITS / np.sqrt(2))
PARTIES = (
    PartySpec(
        name="my bank",
        columns=(
            Column(name="income: net", low=0, high=100),
            Column(name="plan", categories=("gold", "it's basic")),
        ),
    ),
    PartySpec(name="shop", columns=(Column(name="visits", low=0, high=10),)),
)


@pytest.fixture(scope="module")
def synopsis():
    """Four nodes: income 20, 60, 60, 100; plan gold, gold, basic, basic; visits 0, 5, 10, 10."""
    rows = [(20, 1, 0), (60, 1, 5), (60, 0, 10), (100, 0, 10)]
    nodes = [
        [
            (income / 50 - 1) * GRID_UNITS,
            HALF * (2 * gold - 1),
            HALF * (1 - 2 * gold),
            (v / 5 - 1) * GRID_UNITS,
        ]
        for income, gold, v in rows
    ]
    return build_synopsis_from_points(
        np.zeros((4, 2), dtype=np.int64),
        np.array([10.0, 20.0, 30.0, 40.0]),
        [np.zeros((1, 3), dtype=np.int64), np.zeros((1, 1), dtype=np.int64)],
        PARTIES,
        nodes=np.rint(nodes).astype(np.int64),
    )


@pytest.mark.parametrize(
    ("condition", "users"),
    [
        ("my bank: income: net > 50", 90),
        ("income: net >= 60", 90),
        ('"my bank: income: net" < 6e1', 10),
        ("`income: net` <= 60.5 and visits > 4", 50),
        ("50 < income: net", 90),
        ("visits = 10", 70),
        ("visits != 10 and 60 = income: net", 20),
        ("plan = gold", 30),
        ("plan == 'it''s basic'", 70),
        ('plan != "it\'s basic"', 30),
        ("plan in (gold, 'it''s basic')", 100),
        ("plan not in (gold) and not visits < 10", 70),
        ("visits < 1 or visits > 9 and plan = gold", 10),
        ("(visits < 1 or visits > 9) AND PLAN = gold", 10),
        ("not (visits < 1 or plan = gold)", 70),
    ],
)
def test_conditions_choose_users(synopsis, condition, users):
    assert synopsis.count(condition).value == pytest.approx(users, abs=1e-3)
    assert synopsis.share(condition).value == pytest.approx(users / 100, abs=1e-5)


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("age > 3", "there is no column 'age'; the synopsis has 'my bank: income: net', "),
        ("plan > 3", "has categories: compare it by = or != or in, not >"),
        ("3 < plan", "has categories: 'gold', \"it's basic\""),
        ("plan = silver", "has no category 'silver', but 'gold', \"it's basic\""),
        ("visits in (3)", "is a number: compare it by < <= > >="),
        ("visits > many", "expected a number"),
        ("visits > 3 plan = gold", "expected 'and', 'or' or the end, got 'plan = gold'"),
        ("(visits > 3", r"expected '\)', got its end"),
        ("plan in gold", r"expected '\(' and a list"),
        ("plan not gold", "expected 'in'"),
        ("visits", "expected a comparison"),
        ("", "must be a text such as"),
        ("__import__('os').system('ls')", "there is no column '__import__'"),
        ("(" * 60 + "visits > 1" + ")" * 60, "nested at most 50 deep"),
    ],
)
def test_what_is_no_condition_is_named(synopsis, condition, message):
    with pytest.raises(ParameterError, match=message):
        synopsis.count(condition)


def test_the_columns_of_a_condition_are_listed_once(synopsis):
    text = "visits > 1 and (plan = gold or visits < 9)"
    found = read_condition(text, column_places(synopsis))
    assert found.columns == ("shop: visits", "my bank: plan")


def test_means_and_parts_of_parts(synopsis):
    assert synopsis.mean("visits").value == pytest.approx(8.0, abs=1e-4)
    assert synopsis.mean("visits", where="plan = gold").value == pytest.approx(10 / 3, abs=1e-4)
    part = synopsis.where("income: net > 50")
    assert part.total == pytest.approx(90)
    assert part.mean("visits").value == pytest.approx(80 / 9, abs=1e-4)
    assert part.share("plan = gold").value == pytest.approx(2 / 9, abs=1e-5)
    assert part.where("visits > 7").count().value == pytest.approx(70)
    assert part.cluster(2, random_state=0).sizes.sum() == pytest.approx(90)
    with pytest.raises(ParameterError, match="nobody in the synopsis fits"):
        part.where("visits < 1")
    assert part.share("visits < 1").value == 0
    with pytest.raises(ParameterError, match="has categories, not numbers"):
        synopsis.mean("plan")


def test_tables(synopsis):
    found = synopsis.table("plan", "visits", bins=[5])
    assert found.columns == ("my bank: plan", "shop: visits")
    assert found.bins == (("gold", "it's basic"), ("up to 5", "above 5"))
    # A value on an edge is in the bin below, up to the grid's rounding; 5 is a whole grid number.
    np.testing.assert_allclose(found.users, [[30, 0], [0, 70]], atol=1e-3)
    assert next(found.rows()) == {
        "my bank: plan": "gold",
        "shop: visits": "up to 5",
        "users": pytest.approx(30, abs=1e-3),
        "low": None,
        "high": None,
    }
    halves = synopsis.table("income: net", bins={"income: net": 2}, where="plan = gold")
    assert halves.users.sum() == pytest.approx(30, abs=1e-3)
    assert halves.users.tolist() == pytest.approx([30], abs=1e-3) or len(halves.users) == 2
    for bins in ([3, 2], [], 0, [float("nan")]):
        with pytest.raises(ParameterError, match="bins"):
            synopsis.table("visits", bins=bins)
    with pytest.raises(ParameterError, match="two different columns"):
        synopsis.table("visits", "shop: visits")
    with pytest.raises(ParameterError, match="one column or two"):
        synopsis.table()


def test_correlations_are_numpys(synopsis):
    found = synopsis.correlation()
    assert found.columns == ("my bank: income: net", "shop: visits")
    rows = np.repeat([[20, 0], [60, 5], [60, 10], [100, 10]], [10, 20, 30, 40], axis=0)
    assert found.values[0, 1] == pytest.approx(np.corrcoef(rows.T)[0, 1], abs=1e-4)
    assert next(found.rows())["low"] is None
    with pytest.raises(ParameterError, match="two columns of numbers"):
        synopsis.correlation("visits")
    alike = synopsis.where("visits > 9").correlation()
    assert np.isnan(alike.values[0, 1])


def test_without_precision_there_is_no_interval(synopsis):
    answer = synopsis.count()
    assert answer.interval is None
    assert repr(answer) == "100 (no interval)"
    assert float(answer) == 100


def test_intervals_hold_the_figure_and_stay_possible(synopsis):
    from splitmeans.synopsis.precision import Precision

    known = Precision(
        shape=(1, 1), groups=((0, 1),), deviations=(5.0,), resolutions=(1 / 16, 0, 0, 1 / 16)
    )
    exact = dataclasses.replace(synopsis, precision=known)
    for answer, least, most in (
        (exact.count(), 0, 1e9),
        (exact.share("visits > 4"), 0, 1),
        (exact.mean("visits"), 0, 10),
    ):
        low, high = answer.interval
        assert least <= low <= answer.value <= high <= most
        assert low < high
    table = exact.table("plan", "visits", bins=[4])
    assert (table.low >= 0).all()
    assert (table.low <= table.users).all()
    assert (table.users <= table.high).all()
    # One cell of noise 5: the total is that of all users, 1.96 deviations and a little more.
    low, high = exact.count().interval
    assert (high - low) / 2 == pytest.approx(2 * 5, rel=0.45)  # four standard errors of 50 draws
