"""Published values as people write them, and never further away than the grid's half step."""

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from splitmeans.study import Column, PartySpec
from splitmeans.study.features import GRID_UNITS, Feature, features_of
from splitmeans.synopsis.build import build_synopsis_from_points
from splitmeans.synopsis.round_values import as_written, is_whole
from splitmeans.synopsis.synopsis import Synopsis


def on_grid(feature, values):
    """Values as they come back from the grid."""
    half = (feature.high - feature.low) / 2
    codes = np.rint(((np.asarray(values) - feature.low) / half - 1) * feature.bound)
    return feature.low + (codes / feature.bound + 1) * half


HOURS = Feature(name="hours", low=0, high=99, weight=1.0)
DEBT = Feature(name="debt", low=0, high=300_000, weight=1.0)


def test_whole_numbers_come_back_whole() -> None:
    values = on_grid(HOURS, [0, 29, 40, 99, 7])
    assert values[1] != 29
    assert is_whole(HOURS, values, np.ones(5))
    assert as_written(HOURS, values, whole=True).tolist() == [0, 29, 40, 99, 7]


def test_a_few_values_in_between_do_not_make_a_column_fractional_and_many_do() -> None:
    values = on_grid(HOURS, np.arange(40.0))
    weights = np.ones(40)
    values[3], weights[3] = 3.4, 1.9
    assert is_whole(HOURS, values, weights)
    assert as_written(HOURS, values, whole=True)[3] == 3
    weights[3] = 2.1
    assert not is_whole(HOURS, values, weights)


def test_numbers_that_chance_brings_near_whole_ones_are_no_sign() -> None:
    rng = np.random.default_rng(0)
    assert not is_whole(HOURS, rng.uniform(0, 99, 1000), np.ones(1000))
    # Steps of 0.14 hold a whole number in every seventh place; steps of 1.4 in all of them.
    assert not is_whole(DEBT, on_grid(DEBT, rng.uniform(0, 300_000, 1000)), np.ones(1000))
    wide = Feature(name="wide", low=0, high=3_000_000, weight=1.0)
    assert not is_whole(wide, on_grid(wide, np.arange(1000.0)), np.ones(1000))
    # One value that all have, and bounds without a whole number between them.
    assert not is_whole(HOURS, np.zeros(10), np.ones(10))
    tight = Feature(name="tight", low=0.1, high=0.9, weight=1.0)
    assert not is_whole(tight, np.linspace(0.1, 0.9, 10), np.ones(10))


def test_round_values_are_written_and_all_stay_within_half_a_step() -> None:
    rng = np.random.default_rng(1)
    given = np.concatenate([[450_000 / 2, 1000, 299_500, 0, 300_000], rng.uniform(0, 3e5, 500)])
    values = on_grid(DEBT, given)
    written = as_written(DEBT, values, whole=False)
    assert written[:5].tolist() == [225_000, 1000, 299_500, 0, 300_000]
    step = 300_000 / (2 * DEBT.bound)
    assert np.abs(written - values).max() <= 0.501 * step
    # A value in a hundred is that near to a multiple of 100 steps by chance.
    assert (written[5:] == values[5:]).mean() > 0.95


def test_tenths_and_negative_numbers() -> None:
    rate = Feature(name="rate", low=-5, high=31, weight=1.0)
    values = on_grid(rate, [-4.5, 0.3, 12.7, -0.1])
    assert as_written(rate, values, whole=False).tolist() == [-4.5, 0.3, 12.7, -0.1]
    zero = as_written(rate, np.array([-1e-9]), whole=False)
    assert zero[0] == 0
    assert not np.signbit(zero[0])


@pytest.mark.parametrize(
    ("low", "high"), [(-1e308, 7e307), (0, 5e-324), (0, 1e-200), (1e19, 1e19 + 1e5)]
)
def test_bounds_at_the_ends_of_floats_do_no_harm(low, high) -> None:
    odd = Feature(name="odd", low=low, high=high, weight=1.0)
    values = np.array([low, high])
    whole = is_whole(odd, values, np.ones(2))
    assert not whole
    assert as_written(odd, values, whole=whole).tolist() == [low, high]


def test_synthetic_rows_have_whole_numbers_where_all_places_do() -> None:
    party = PartySpec(
        name="bank",
        columns=(Column(name="visits", low=0, high=30), Column(name="share", low=0, high=1)),
    )
    other = PartySpec(name="shop", columns=(Column(name="sum", low=0, high=10),))
    features = (*features_of(party), *features_of(other))
    rng = np.random.default_rng(2)
    own = np.column_stack(
        [rng.integers(0, 31, 200), rng.uniform(0, 1, 200), rng.integers(0, 11, 200) / 2]
    )
    nodes = np.column_stack(
        [
            np.rint((2 * (value - one.low) / (one.high - one.low) - 1) * GRID_UNITS)
            for one, value in zip(features, own.T, strict=True)
        ]
    ).astype(np.int64)
    synopsis = build_synopsis_from_points(
        np.zeros((200, 2), dtype=np.int64),
        np.ones(200),
        [np.zeros((1, 2), dtype=np.int64), np.zeros((1, 1), dtype=np.int64)],
        [party, other],
        nodes=nodes,
    )
    rows = synopsis.sample(300, random_state=0)
    assert str(rows["bank: visits"].type) == "int64"
    assert str(rows["bank: share"].type) == "double"
    halves = rows["shop: sum"].to_numpy()
    assert set(halves) <= {number / 2 for number in range(11)}


def visits() -> Synopsis:
    """Users with 0 to 9 visits, ten of each, and one in twenty whose value lies between."""
    party = PartySpec(name="gym", columns=(Column(name="visits", low=0, high=30),))
    other = PartySpec(name="shop", columns=(Column(name="sum", low=0, high=10),))
    counts = np.repeat(np.arange(10), 10).astype(np.float64)
    counts[::25] += 0.3
    nodes = np.column_stack([2 * counts / 30 - 1, np.linspace(-0.9, 0.9, 100) / np.pi])
    return build_synopsis_from_points(
        np.zeros((100, 2), dtype=np.int64),
        np.ones(100),
        [np.zeros((1, 1), dtype=np.int64)] * 2,
        [party, other],
        nodes=np.rint(nodes * GRID_UNITS).astype(np.int64),
    )


def test_places_tables_and_rows_have_the_same_whole_numbers(tmp_path: Path) -> None:
    synopsis = visits()
    assert synopsis.whole_features == {0}
    own = synopsis.nodes[:, 0]
    assert set(own) == set(range(10))
    # 10 of each number; an edge that is a value counts it below.
    assert synopsis.table("visits", bins=[3]).users.tolist() == [40, 60]
    assert set(synopsis.sample(50, random_state=0)["gym: visits"].to_pylist()) <= set(range(10))
    synopsis.to_parquet(tmp_path / "synopsis.parquet")
    again = Synopsis.from_parquet(tmp_path / "synopsis.parquet")
    np.testing.assert_array_equal(again.nodes, synopsis.nodes)
    assert set(pq.read_table(tmp_path / "synopsis.parquet")["gym: visits"].to_pylist()) == set(own)
