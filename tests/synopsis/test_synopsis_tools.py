import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from splitmeans.errors import ParameterError
from splitmeans.study import Column, PartySpec
from splitmeans.study.features import GRID_UNITS, Feature, features_of
from splitmeans.synopsis.build import build_synopsis, build_synopsis_from_points
from splitmeans.synopsis.synopsis import Synopsis

BANK = PartySpec(
    name="bank",
    columns=(Column(name="income", low=0, high=100), Column(name="age", low=20, high=80, weight=2)),
)
SHOP = PartySpec(
    name="shop",
    columns=(Column(name="plan", categories=("a", "b", "c")), Column(name="visits", low=0, high=8)),
)
ONE = GRID_UNITS
HALF = features_of(SHOP)[0].bound
CENTRES = [
    np.array([[-ONE, 0], [ONE, 2 * ONE]], dtype=np.int64),
    # All "a" with no visits; half "b", half "c" with four; all "c" with eight.
    np.array([[HALF, -HALF, -HALF, -ONE], [-HALF, 0, 0, 0], [-HALF, -HALF, HALF, ONE]]),
]
WEIGHTS = np.array([[1.0, 0.0, 3.0], [0.0, 5.0, 0.5]])


def line(*weights, at, **options):
    """A synopsis over one column with bounds -1 and 1."""
    return Synopsis(
        scaled_nodes=np.array(at)[:, np.newaxis],
        weights=np.array(weights),
        party_names=("p",),
        features=((Feature(name="x", low=-1.0, high=1.0, weight=1.0),),),
        **options,
    )


@pytest.fixture
def synopsis():
    return build_synopsis(WEIGHTS, CENTRES, [BANK, SHOP], weight_deviation=0.5)


# ---- building ----


def test_the_grid_knows_labels_and_columns(synopsis):
    assert synopsis.labels.tolist() == [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]
    assert synopsis.columns == (BANK.columns, SHOP.columns)
    assert synopsis.labels_of("shop").tolist() == [0, 1, 2, 0, 1, 2]
    assert synopsis.columns_of("bank") == slice(0, 2)
    assert synopsis.columns_of("shop") == slice(2, 6)


def test_local_centres_are_restored(synopsis):
    for party, local in zip(("bank", "shop"), CENTRES, strict=True):
        assert (synopsis.local_centres(party) * GRID_UNITS).tolist() == local.tolist()


def test_points_are_cells_of_the_grid(synopsis):
    labels = np.array([[1, 2], [0, 0], [1, 1]])
    weights = np.array([0.5, 1.0, 5.0])
    some = build_synopsis_from_points(labels, weights, CENTRES, [BANK, SHOP])
    np.testing.assert_array_equal(some.scaled_nodes, synopsis.scaled_nodes[[5, 0, 4]])
    assert some.weights.tolist() == [0.5, 1, 5]
    assert some.labels.tolist() == labels.tolist()
    assert some.features == synopsis.features


def test_pseudo_users_are_where_they_are_put(synopsis):
    labels, weights = np.array([[0, 0], [0, 0], [1, 1]]), np.array([0.5, 0.5, 5.0])
    nodes = np.array([[-ONE, 0, HALF, -HALF, -HALF, 7], [5, 6, HALF, -HALF, -HALF, -ONE]] * 2)[:3]
    some = build_synopsis_from_points(labels, weights, CENTRES, [BANK, SHOP], nodes=nodes)
    assert (some.scaled_nodes * GRID_UNITS).tolist() == nodes.tolist()
    assert some.has_places
    assert not synopsis.has_places
    assert (some.local_centres("bank") * GRID_UNITS).tolist() == CENTRES[0].tolist()


def test_local_centres_of_absent_clusters_are_known():
    some = build_synopsis_from_points(np.array([[1, 2], [1, 0]]), np.ones(2), CENTRES, [BANK, SHOP])
    assert (some.local_centres("shop") * GRID_UNITS).tolist() == CENTRES[1].tolist()
    assert some.choose_k([2], random_state=0).ks == (2,)


def test_wrong_points_are_refused():
    with pytest.raises(ParameterError, match="agree on the number of parties, got 3, 2 and 2"):
        build_synopsis_from_points(np.zeros((1, 3), dtype=int), np.ones(1), CENTRES, [BANK, SHOP])
    with pytest.raises(ParameterError, match="labels of party 'shop' must be between 0 and 2"):
        build_synopsis_from_points(np.array([[0, 3]]), np.ones(1), CENTRES, [BANK, SHOP])
    with pytest.raises(ParameterError, match="centres of party 'bank' must have 2 columns"):
        build_synopsis_from_points(np.array([[0, 0]]), np.ones(1), CENTRES[::-1], [BANK, SHOP])


def test_wrong_fields_are_refused():
    with pytest.raises(ParameterError, match=r"labels must have the shape .* = \(1, 1\)"):
        line(1.0, at=[0.0], labels=np.zeros((2, 1), dtype=np.int32))
    with pytest.raises(ParameterError, match="and be >= 0"):
        line(1.0, at=[0.0], labels=np.full((1, 1), -1, dtype=np.int32))
    with pytest.raises(ParameterError, match="one entry per party, and need labels"):
        line(1.0, at=[0.0], centres=(np.ones((1, 1)),))
    zero = np.zeros((1, 1), dtype=np.int32)
    for bad in (np.ones((0, 1)), np.array([[np.nan]]), np.ones((1, 2)), np.ones(1)):
        with pytest.raises(ParameterError, match="centres of party 'p' must be 1 numbers per"):
            line(1.0, at=[0.0], labels=zero, centres=(bad,))
    with pytest.raises(ParameterError, match="weight_deviation must be >= 0, got -1"):
        line(1.0, at=[0.0], weight_deviation=-1.0)
    with pytest.raises(ParameterError, match="weight_deviation must be a finite number"):
        line(1.0, at=[0.0], weight_deviation=math.inf)
    with pytest.raises(ParameterError, match="columns and features must describe the same"):
        line(1.0, at=[0.0], columns=((Column(name="y", low=-1, high=1),),))


def test_unknown_parties_and_labels_are_named(synopsis):
    with pytest.raises(ParameterError, match="party must be one of bank, shop, got 'x'"):
        synopsis.columns_of("x")
    with pytest.raises(ParameterError, match="does not say which node has which local cluster"):
        line(1.0, at=[0.0]).labels_of("p")
    with pytest.raises(ParameterError, match="does not say where local clusters are"):
        line(1.0, at=[0.0]).local_centres("p")


# ---- choosing k ----


def test_choose_k_guesses_the_spread_of_bare_nodes_alone():
    """Six nodes in two groups: as points six clusters are perfect, as whole cells two are."""
    at = [-0.9, -0.7, -0.5, 0.5, 0.7, 0.9]
    plain = line(*[1.0] * 6, at=at)
    assert plain.choose_k(range(2, 7), random_state=0).suggested == 6
    labels = np.arange(6, dtype=np.int32)[:, np.newaxis]
    cells = line(*[1.0] * 6, at=at, labels=labels, centres=(np.array(at)[:, np.newaxis],))
    assert cells.choose_k(range(2, 7), random_state=0).suggested == 2
    one_cluster = {"labels": 0 * labels, "centres": (np.zeros((1, 1)),)}
    users = line(*[1.0] * 6, at=at, **one_cluster)
    assert users.choose_k(range(2, 7), random_state=0).suggested == 6


def test_the_fit_of_centres_is_that_of_choose_k(synopsis):
    centres = synopsis.cluster(3, random_state=4).scaled_centres
    found = synopsis.choose_k([3], random_state=4)
    assert synopsis.fit_of(centres) == pytest.approx((found.losses[0], found.silhouettes[0]))


def test_choose_k_is_reproducible(synopsis):
    assert synopsis.choose_k([2, 3], random_state=4) == synopsis.choose_k([2, 3], random_state=4)


# ---- estimated loss ----


def test_loss_by_hand():
    found = line(1.0, 3.0, 0.0, at=[-0.5, 0.5, 0.9], weight_deviation=0.2).estimated_loss([[0.3]])
    distances = np.array([0.64, 0.04])
    value = (0.64 + 3 * 0.04) / 4
    assert found.value == pytest.approx(value)
    assert found.standard_error == pytest.approx(0.2 * np.linalg.norm(distances - value) / 4)


def test_loss_of_a_clustering_is_its_own():
    plain = line(1.0, 3.0, 2.0, at=[-0.8, -0.4, 0.6])
    clustering = plain.cluster(2, random_state=0)
    expected = (pytest.approx(clustering.loss), None)
    assert plain.estimated_loss(clustering) == expected
    assert plain.estimated_loss(clustering.centres) == expected
    assert plain.estimated_loss(clustering.scaled_centres, scaled=True) == expected


def test_own_units_and_distance_units_agree(synopsis):
    clustering = synopsis.cluster(3, random_state=0)
    np.testing.assert_allclose(
        synopsis.scaled_centres(clustering.centres), clustering.scaled_centres, atol=1e-12
    )


def test_loss_error_matches_simulation():
    """Noisy weights move the loss by as much as the standard error says."""
    rng = np.random.default_rng(0)
    at, weights = list(rng.uniform(-1, 1, 40)), rng.uniform(100, 300, 40)
    exact = line(*weights, at=at, weight_deviation=5.0)
    centres = [[-0.5], [0.5]]
    seen = [
        line(*(weights + 5 * rng.standard_normal(40)), at=at).estimated_loss(centres).value
        for _ in range(400)
    ]
    # The standard deviation of 400 values has a relative error of 3.5 %; 5 of those are 18 %.
    assert np.std(seen) == pytest.approx(exact.estimated_loss(centres).standard_error, rel=0.18)


def test_wrong_centres_are_refused(synopsis):
    with pytest.raises(ParameterError, match=r"centres must have the shape \(k, 6\), got \(1, 2\)"):
        synopsis.estimated_loss([[0.0, 1.0]])
    with pytest.raises(ParameterError, match="must count at least one user to estimate a loss"):
        line(0.0, at=[0.0]).estimated_loss([[0.0]])


# ---- synthetic rows ----


def test_rows_have_the_columns_of_the_study(synopsis):
    rows = synopsis.sample(500, random_state=0)
    assert rows.column_names == ["bank: income", "bank: age", "shop: plan", "shop: visits"]
    assert rows.num_rows == 500
    assert rows.schema.field("shop: plan").type == pa.string()
    assert set(rows["shop: plan"].to_pylist()) == {"a", "b", "c"}
    for name, low, high in (("bank: income", 0, 100), ("bank: age", 20, 80)):
        values = rows[name].to_numpy()
        assert values.min() >= low
        assert values.max() <= high


def test_numbers_are_those_of_the_nodes():
    rows = build_synopsis(WEIGHTS, CENTRES, [BANK, SHOP]).sample(2000, random_state=0)
    seen = {(row["bank: age"], row["shop: visits"]) for row in rows.to_pylist()}
    assert seen == {(50.0, 0.0), (50.0, 8.0), (80.0, 4.0), (80.0, 8.0)}
    # The share of the heaviest node is 5 / 9.5; five standard errors of 2000 draws are 0.056.
    share = np.mean(rows["shop: visits"].to_numpy() == 4)
    assert share == pytest.approx(5 / 9.5, abs=0.056)


def test_categories_follow_the_centre():
    rows = build_synopsis(WEIGHTS, CENTRES, [BANK, SHOP]).sample(2000, random_state=1)
    plans = np.array(rows["shop: plan"].to_pylist())
    visits = rows["shop: visits"].to_numpy()
    assert set(plans[visits == 0]) == {"a"}
    assert set(plans[visits == 8]) == {"c"}
    middle = plans[visits == 4]
    assert set(middle) == {"b", "c"}
    # About 1050 draws of two equal categories; five standard errors are 0.077.
    assert np.mean(middle == "b") == pytest.approx(0.5, abs=0.077)


def test_without_columns_every_feature_is_a_number():
    rows = line(1.0, at=[0.25]).sample(3, random_state=0)
    assert rows.column_names == ["p: x"]
    assert rows["p: x"].to_pylist() == pytest.approx([0.25] * 3)


def test_equal_seeds_give_equal_rows(synopsis):
    assert synopsis.sample(50, random_state=3).equals(synopsis.sample(50, random_state=3))
    assert not synopsis.sample(50, random_state=3).equals(synopsis.sample(50, random_state=4))


def test_impossible_samples_are_refused(synopsis):
    with pytest.raises(ParameterError, match="n must be a whole number >= 1, got 0"):
        synopsis.sample(0)
    with pytest.raises(ParameterError, match="must count at least one user to draw rows"):
        line(0.0, at=[0.0]).sample(1)


# ---- files ----


def test_new_fields_survive_a_file(synopsis, tmp_path):
    path = tmp_path / "synopsis.parquet"
    synopsis.to_parquet(path)
    restored = Synopsis.from_parquet(path)
    assert restored.columns == synopsis.columns
    assert restored.weight_deviation == 0.5
    np.testing.assert_array_equal(restored.labels, synopsis.labels)
    assert restored.labels.dtype == np.int32
    for found, expected in zip(restored.centres, synopsis.centres, strict=True):
        np.testing.assert_array_equal(found, expected)
    assert pq.read_table(path).column_names[-2:] == [
        "bank (local cluster)",
        "shop (local cluster)",
    ]
    assert restored.sample(20, random_state=0).equals(synopsis.sample(20, random_state=0))


def test_unknown_fields_stay_unknown(tmp_path):
    path = tmp_path / "plain.parquet"
    line(1.0, at=[0.5]).to_parquet(path)
    restored = Synopsis.from_parquet(path)
    assert restored.columns is None
    assert restored.labels is None
    assert restored.centres is None
    assert restored.weight_deviation is None


def test_a_file_with_wrong_labels_is_refused(synopsis, tmp_path):
    path = tmp_path / "damaged.parquet"
    synopsis.to_parquet(path)
    table = pq.read_table(path)
    last = table.num_columns - 1
    pq.write_table(table.set_column(last, table.field(last), pa.array([-1] * 6, pa.int32())), path)
    with pytest.raises(ParameterError, match=r"damaged\.parquet: not a splitmeans synopsis"):
        Synopsis.from_parquet(path)
