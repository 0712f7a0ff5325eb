import dataclasses
import json
import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from splitmeans.errors import ParameterError
from splitmeans.study import Column, PartySpec
from splitmeans.study.features import GRID_UNITS, Feature, features_of
from splitmeans.synopsis.build import build_synopsis
from splitmeans.synopsis.synopsis import Synopsis

BANK = PartySpec(
    name="bank",
    columns=(Column(name="income", low=0, high=100), Column(name="age", low=20, high=80, weight=2)),
)
SHOP = PartySpec(name="shop", columns=(Column(name="plan", categories=("a", "b")),))
ONE = GRID_UNITS
HALF = features_of(SHOP)[0].bound

WEIGHTS = np.array([[1.0, 0.0, 3.0], [0.0, 5.0, 0.5]])
CENTRES = [
    np.array([[-ONE, 0], [ONE, 2 * ONE]], dtype=np.int64),
    np.array([[-HALF, HALF], [HALF, -HALF], [0, 0]], dtype=np.int64),
]


@pytest.fixture
def synopsis() -> Synopsis:
    return build_synopsis(WEIGHTS, CENTRES, [BANK, SHOP])


def flat(*weights: float, at: list[float]) -> Synopsis:
    """A synopsis over one column with bounds -1 and 1."""
    return Synopsis(
        scaled_nodes=np.array(at)[:, np.newaxis],
        weights=np.array(weights),
        party_names=("p",),
        features=((Feature(name="x", low=-1.0, high=1.0, weight=1.0),),),
    )


def test_grid_by_hand(synopsis):
    assert synopsis.feature_names == ("bank: income", "bank: age", "shop: plan=a", "shop: plan=b")
    assert synopsis.party_names == ("bank", "shop")
    assert synopsis.total == 9.5
    assert synopsis.weights.tolist() == [1, 0, 3, 0, 5, 0.5]
    np.testing.assert_allclose(
        synopsis.nodes,
        [
            [0, 50, 0, 1],
            [0, 50, 1, 0],
            [0, 50, 0.5, 0.5],
            [100, 80, 0, 1],
            [100, 80, 1, 0],
            [100, 80, 0.5, 0.5],
        ],
    )
    half = HALF / GRID_UNITS
    assert half == pytest.approx(1 / math.sqrt(2), abs=1e-6)
    assert synopsis.scaled_nodes[4].tolist() == [1, 2, half, -half]


@pytest.mark.parametrize(
    "names",
    [
        [f"monthly_value_{number:02}" for number in range(18)],
        [f"{number:02}" + "x" * 198 for number in range(60)],
    ],
)
def test_any_number_of_columns_with_names_of_any_allowed_length(tmp_path, names):
    columns = tuple(Column(name=name, low=0, high=1) for name in names)
    parties = [PartySpec(name=name, columns=columns) for name in ("bank", "shop")]
    centres = [np.zeros((2, len(names)), dtype=np.int64)] * 2
    built = build_synopsis(np.ones((2, 2)), centres, parties)
    assert len(built.feature_names) == 2 * len(names)
    built.to_parquet(tmp_path / "grid.parquet")
    assert Synopsis.from_parquet(tmp_path / "grid.parquet").columns == (columns, columns)


def test_columns_must_be_those_of_the_features(synopsis):
    other = (Column(name="income", low=0, high=99), *BANK.columns[1:])
    with pytest.raises(ParameterError, match="columns and features must describe the same"):
        dataclasses.replace(synopsis, columns=(other, SHOP.columns))


def test_three_parties_keep_the_order_of_the_weights():
    parties = [PartySpec(name=name, columns=(Column(name="x", low=-1, high=1),)) for name in "abc"]
    centres = [np.arange(k)[:, np.newaxis] * 2**10 for k in (2, 3, 4)]
    weights = np.arange(24.0).reshape(2, 3, 4)
    built = build_synopsis(weights, centres, parties)
    for node, weight in zip(built.scaled_nodes, built.weights, strict=True):
        cell = tuple((node * GRID_UNITS / 2**10).astype(int))
        assert weights[cell] == weight


def test_shapes_must_fit():
    with pytest.raises(ParameterError, match="agree on the number of parties, got 2, 2 and 1"):
        build_synopsis(WEIGHTS, CENTRES, [BANK])
    with pytest.raises(ParameterError, match=r"centres of party 'shop' must have the shape \(4, 2"):
        build_synopsis(np.ones((2, 4)), CENTRES, [BANK, SHOP])


def test_bad_synopses_are_refused():
    with pytest.raises(ParameterError, match=r"weights must be >= 0"):
        flat(1.0, -1.0, at=[0.0, 1.0])
    with pytest.raises(ParameterError, match="must be finite"):
        flat(1.0, np.nan, at=[0.0, 1.0])
    with pytest.raises(ParameterError, match=r"scaled_nodes must have the shape .* \(1, 1\)"):
        flat(1.0, at=[0.0, 1.0])
    with pytest.raises(ParameterError, match="scaled_nodes must have the shape"):
        flat(at=[])
    with pytest.raises(ParameterError, match="one entry per party, got 2 and 1"):
        Synopsis(
            scaled_nodes=np.zeros((1, 1)),
            weights=np.ones(1),
            party_names=("p", "q"),
            features=((Feature(name="x", low=-1.0, high=1.0, weight=1.0),),),
        )


def test_cluster_by_hand():
    found = flat(1.0, 3.0, 2.0, 0.0, at=[-0.8, -0.4, 0.6, 0.9]).cluster(2, random_state=0)
    order = np.argsort(found.scaled_centres[:, 0])
    np.testing.assert_allclose(found.scaled_centres[order], [[-0.5], [0.6]])
    np.testing.assert_allclose(found.centres, found.scaled_centres, rtol=1e-12)
    np.testing.assert_allclose(found.sizes[order], [4, 2])
    assert found.loss == pytest.approx((1 * 0.3**2 + 3 * 0.1**2) / 6)


def test_centres_come_in_own_units(synopsis):
    found = synopsis.cluster(1, random_state=0)
    mean = synopsis.weights @ synopsis.nodes / synopsis.total
    np.testing.assert_allclose(found.centres, mean[np.newaxis])
    np.testing.assert_allclose(found.sizes, [9.5])


def test_equal_seeds_give_equal_centres(synopsis):
    first, second = (synopsis.cluster(2, random_state=3) for _ in range(2))
    np.testing.assert_array_equal(first.centres, second.centres)
    third = synopsis.cluster(2, random_state=np.random.default_rng(3))
    np.testing.assert_array_equal(first.centres, third.centres)


def test_only_clusters_with_users_are_named_and_none_twice():
    """Three are asked for where only two different places have users, one of them twice."""
    found = flat(1.0, 2.0, 0.0, 0.5, at=[-0.5, 0.5, 0.1, -0.5]).cluster(3, random_state=0)
    assert found.scaled_centres.tolist() == [[0.5], [-0.5]]
    assert found.sizes.tolist() == [2, 1.5]
    assert found.loss == 0


@pytest.mark.parametrize("k", [1, 2, 3, 5, 8])
def test_clusters_are_largest_first_and_all_have_users(k):
    rng = np.random.default_rng(k)
    some = rng.random(30) * (rng.random(30) < 0.2)
    found = flat(*some, at=list(rng.uniform(-1, 1, 30))).cluster(k, random_state=0)
    assert len(found.sizes) == min(k, np.count_nonzero(some))
    assert (np.diff(found.sizes) <= 0).all()
    assert found.sizes.min() > 0
    assert found.sizes.sum() == pytest.approx(some.sum())
    assert len(np.unique(found.scaled_centres, axis=0)) == len(found.sizes)


def test_where_nobody_is_counted_there_are_no_clusters():
    found = flat(0.0, 0.0, at=[-0.5, 0.5]).cluster(2, random_state=0)
    assert found.loss == 0
    assert found.sizes.tolist() == []
    assert found.centres.shape == found.scaled_centres.shape == (0, 1)


def test_k_must_be_positive(synopsis):
    with pytest.raises(ParameterError, match="k must be a whole number >= 1, got 0"):
        synopsis.cluster(0)


def test_sizes_and_loss_do_not_depend_on_chunks(monkeypatch):
    rng = np.random.default_rng(0)
    many = flat(*rng.random(50), at=list(rng.uniform(-1, 1, 50)))
    whole = many.cluster(4, random_state=0)
    monkeypatch.setattr("splitmeans.synopsis.clustering.CHUNK_ROWS", 7)
    parts = many.cluster(4, random_state=0)
    np.testing.assert_allclose(parts.sizes, whole.sizes)
    assert parts.loss == pytest.approx(whole.loss)


# ---- files ----


def assert_same(first: Synopsis, second: Synopsis) -> None:
    np.testing.assert_array_equal(first.scaled_nodes, second.scaled_nodes)
    np.testing.assert_array_equal(first.weights, second.weights)
    assert first.party_names == second.party_names
    assert first.features == second.features


def test_parquet_round_trip_is_exact(synopsis, tmp_path):
    path = tmp_path / "synopsis.parquet"
    synopsis.to_parquet(path)
    assert_same(Synopsis.from_parquet(path), synopsis)
    assert_same(Synopsis.from_parquet(str(path)), synopsis)


def test_parquet_round_trip_keeps_every_digit(tmp_path):
    rng = np.random.default_rng(1)
    odd = Synopsis(
        scaled_nodes=rng.normal(size=(20, 2)),
        weights=rng.random(20) * 1e-300,
        party_names=("Prüfung", "b: c"),
        features=(
            (Feature(name="x", low=0.1, high=1 / 3, weight=0.7),),
            (Feature(name="y=é", low=-1e-9, high=1e9, weight=math.pi),),
        ),
    )
    odd.to_parquet(tmp_path / "odd.parquet")
    assert_same(Synopsis.from_parquet(tmp_path / "odd.parquet"), odd)


def test_names_that_clash_still_round_trip(tmp_path):
    feature = {"low": 0.0, "high": 1.0, "weight": 1.0}
    clash = Synopsis(
        scaled_nodes=np.array([[0.25, 0.5]]),
        weights=np.ones(1),
        party_names=("a", "a: b"),
        features=((Feature(name="b: c", **feature),), (Feature(name="c", **feature),)),
    )
    assert len(set(clash.feature_names)) == 1
    clash.to_parquet(tmp_path / "clash.parquet")
    assert_same(Synopsis.from_parquet(tmp_path / "clash.parquet"), clash)


def test_file_shows_own_units_first(synopsis, tmp_path):
    synopsis.to_parquet(tmp_path / "s.parquet")
    table = pq.read_table(tmp_path / "s.parquet")
    assert table.column_names[:3] == ["weight", "bank: income", "bank: age"]
    assert table.column("bank: age").to_pylist() == pytest.approx([50, 50, 50, 80, 80, 80])


def test_other_files_are_refused(synopsis, tmp_path):
    missing = tmp_path / "missing.parquet"
    with pytest.raises(ParameterError, match=r"missing\.parquet: cannot be read"):
        Synopsis.from_parquet(missing)
    (tmp_path / "text.parquet").write_text("not parquet at all")
    with pytest.raises(ParameterError, match=r"text\.parquet: not a splitmeans synopsis"):
        Synopsis.from_parquet(tmp_path / "text.parquet")
    pq.write_table(pa.table({"weight": [1.0]}), tmp_path / "plain.parquet")
    with pytest.raises(ParameterError, match=r"plain\.parquet: not a splitmeans synopsis"):
        Synopsis.from_parquet(tmp_path / "plain.parquet")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"format": 1}, "format must be 2, got 1"),
        ({"features": [[]]}, "not a splitmeans synopsis"),
        ({"features": [[{"name": "x"}]]}, "not a splitmeans synopsis"),
        ({"party_names": ["p", "q"]}, "one entry per party"),
        ({"features": 3}, "not a splitmeans synopsis"),
    ],
)
def test_damaged_headers_are_refused(change, problem, tmp_path):
    path = tmp_path / "s.parquet"
    flat(1.0, at=[0.5]).to_parquet(path)
    table = pq.read_table(path)
    key = b"splitmeans synopsis"
    header = json.loads(table.schema.metadata[key]) | change
    pq.write_table(table.replace_schema_metadata({key: json.dumps(header)}), path)
    with pytest.raises(ParameterError, match=problem):
        Synopsis.from_parquet(path)


def test_a_negative_weight_in_a_file_is_refused(tmp_path):
    path = tmp_path / "s.parquet"
    flat(1.0, at=[0.5]).to_parquet(path)
    table = pq.read_table(path)
    pq.write_table(table.set_column(0, "weight", pa.array([-1.0])), path)
    with pytest.raises(ParameterError, match="weights must be >= 0"):
        Synopsis.from_parquet(path)
