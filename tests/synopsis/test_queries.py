"""Tables and correlations of a synopsis, by hand on a few nodes."""

import dataclasses

import numpy as np
import pytest

from splitmeans.errors import ParameterError
from splitmeans.study import Column, PartySpec
from splitmeans.study.features import GRID_UNITS
from splitmeans.synopsis.build import build_synopsis_from_points

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
    halves = synopsis.table("income: net", bins={"income: net": 2})
    assert halves.users.tolist() == pytest.approx([60, 40], abs=1e-3)
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
    with pytest.raises(ParameterError, match="has categories, not numbers"):
        synopsis.correlation("visits", "plan")
    alike = dataclasses.replace(synopsis, weights=np.array([0.0, 0.0, 30.0, 40.0]))
    assert np.isnan(alike.correlation().values[0, 1])


def test_intervals_hold_the_figure_and_stay_possible(synopsis):
    from splitmeans.synopsis.precision import Precision

    known = Precision(
        shape=(1, 1), groups=((0, 1),), deviations=(5.0,), resolutions=(1 / 16, 0, 0, 1 / 16)
    )
    exact = dataclasses.replace(synopsis, precision=known)
    table = exact.table("plan", "visits", bins=[4])
    assert (table.low >= 0).all()
    assert (table.low <= table.users).all()
    assert (table.users <= table.high).all()
    # One cell of noise 5: the total is that of all users, 1.96 deviations and a little more.
    everyone = exact.table("visits", bins=1)
    assert (everyone.high[0] - everyone.low[0]) / 2 == pytest.approx(
        2 * 5, rel=0.45
    )  # four standard errors of 50 draws
