"""From data frames and what the caller says of their columns to the columns of a study."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from splitmeans import DataError, InsecureSeededNoise, ParameterError, VerticalKMeans
from splitmeans.simulate.blocks import read_blocks, read_ids
from splitmeans.simulate.frame_columns import read_columns
from splitmeans.study import Column, IdRules

BANK = pd.DataFrame({"customer": ["1", "2"], "age": [30.0, None], "region": ["north", None]})
SHOP = pa.table({"customer": [1, 2], "visits": [3, 4]})
BOUNDS = {"age": (17, 90), "visits": (0, 30)}
REGIONS = {"region": ["north", "south"]}


def columns_of(tables=(BANK, SHOP), id_columns=("customer", "customer"), **facts):
    return read_columns(read_blocks(list(tables)), id_columns=id_columns, **facts)


def test_facts_by_column_name():
    found = columns_of(
        bounds=BOUNDS,
        categories=REGIONS,
        missing={"age": 40, "region": "level"},
        weights={"visits": 2},
    )
    assert found == [
        (
            Column(name="age", low=17, high=90, missing=40),
            Column(name="region", categories=("north", "south"), missing="level"),
        ),
        (Column(name="visits", low=0, high=30, weight=2),),
    ]


def test_facts_per_party_are_the_same():
    by_name = columns_of(bounds=BOUNDS, categories=REGIONS, weights={"visits": 2})
    assert by_name == columns_of(
        bounds=[{"age": (17, 90)}, {"visits": (0, 30)}],
        categories=[REGIONS, {}],
        weights=[{}, {"visits": 2}],
    )


@pytest.mark.parametrize(
    ("missing", "age", "region"),
    [
        ("midpoint", "midpoint", "error"),
        ("level", "error", "level"),
        (("midpoint", "spread"), "midpoint", "spread"),
        ([40, "level"], 40, "level"),
        (None, "error", "error"),
    ],
)
def test_one_rule_is_for_the_columns_that_can_have_it(missing, age, region):
    (bank, shop) = columns_of(bounds=BOUNDS, categories=REGIONS, missing=missing)
    assert (bank[0].missing, bank[1].missing, shop[0].missing) == (age, region, age)


def test_one_pair_is_for_the_columns_of_numbers():
    (bank, _) = columns_of(bounds=(0, 100), categories=REGIONS)
    assert (bank[0].low, bank[1].categories) == (0, ("north", "south"))


def test_what_the_run_learns():
    private, age = Column(name="visits", bounds="private"), Column(name="age", bounds="private")
    region = Column(name="region", categories="open")
    assert columns_of(bounds="private", categories="open") == [(age, region), (private,)]
    assert columns_of(bounds=["private", {"visits": (0, 9)}], categories={"region": "open"}) == [
        (age, region),
        (Column(name="visits", low=0, high=9),),
    ]


def test_whole_numbers_may_be_categories():
    (bank, _) = columns_of(bounds={"age": (17, 90)}, categories={**REGIONS, "visits": [3, 4]})
    assert (
        columns_of(bounds={"age": (17, 90)}, categories={**REGIONS, "visits": ["3", "4"]})[0]
        == bank
    )


@pytest.mark.parametrize(
    "bank",
    [BANK, pl.from_pandas(BANK), pa.Table.from_pandas(BANK), BANK.astype({"region": "category"})],
)
def test_what_is_left_out_is_listed_with_the_call_to_write(bank):
    with pytest.raises(ParameterError) as caught:
        columns_of((bank, SHOP), bounds=None)
    text = str(caught.value)
    assert "party 1: age (numbers), region (text); party 2: visits (numbers)" in text
    assert "    bounds={'age': (low, high), 'visits': (low, high)},\n" in text
    assert "    categories={'region': ['...', '...']},\n" in text
    assert "north" not in text  # values are never shown


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"bounds": (0, 100)}, r"party 1: region \(text\)\. Add"),
        ({"bounds": {"age": (1, 2)}, "categories": REGIONS}, r"for party 2: visits \(numbers\)"),
        ({"bounds": BOUNDS, "categories": {"regoin": []}}, "is 'region' meant"),
        ({"bounds": BOUNDS, "categories": [REGIONS]}, "categories must be a dict by column name"),
        ({"bounds": BOUNDS, "categories": [{}, REGIONS]}, "categories of party 2 must name"),
        ({"bounds": BOUNDS, "categories": {"region": "north"}}, "must be a list of all its values"),
        ({"bounds": {**BOUNDS, "region": (0, 1)}, "categories": REGIONS}, "not both"),
        ({"bounds": BOUNDS, "categories": "opn"}, "'open', the only word, .* got 'opn'"),
        ({"bounds": BOUNDS, "categories": REGIONS, "missing": {"x": 1}}, "missing must name"),
        (
            {"bounds": BOUNDS, "categories": REGIONS, "missing": ("midpoint", "skipp")},
            "missing must be 'error' or 'skip' .*'midpoint' .*'level' .*got 'skipp'",
        ),
        (
            {"bounds": BOUNDS, "categories": REGIONS, "missing": {"age": "skipp"}},
            "missing of column 'age' must be .*'skip' .*got 'skipp'",
        ),
        (
            {"bounds": BOUNDS, "categories": REGIONS, "missing": {"region": "skipp"}},
            "missing of column 'region' must be .*'skip' .*got 'skipp'",
        ),
        ({"bounds": BOUNDS, "categories": REGIONS, "weights": 3}, "weights must be a dict"),
    ],
)
def test_what_cannot_be_meant_is_refused(facts, message):
    with pytest.raises(ParameterError, match=message):
        columns_of(**facts)


def test_ids_by_name():
    blocks = read_blocks({"bank": BANK, "shop": SHOP})
    assert blocks.parties == ("bank", "shop")
    assert read_ids("customer", blocks) == (["customer", "customer"], None)
    assert read_ids(["customer", "customer"], blocks) == (["customer", "customer"], None)
    assert read_ids([[1, 2], [1, 2]], blocks) == (None, [[1, 2], [1, 2]])
    with pytest.raises(DataError, match="'custmer' for party 'bank'; its columns: customer, age"):
        read_ids("custmer", blocks)


def messy_customers(n: int = 400) -> dict[str, pd.DataFrame]:
    """Two kinds of customers; ids are written in another way at each party."""
    rng = np.random.default_rng(3)
    kind = rng.integers(2, size=n)
    bank = pd.DataFrame(
        {
            "customer": [f" {number:06d}" for number in range(n)],
            "age": np.array([25.0, 70.0])[kind] + rng.normal(0, 3, n),
            "region": np.array(["north", "south"])[kind],
        }
    )
    bank.loc[::50, "age"] = np.nan
    bank.loc[::40, "region"] = None
    shop = pd.DataFrame({"nr": np.arange(n), "visits": np.array([3.0, 20.0])[kind]})
    return {"bank": bank, "shop": shop.sample(frac=1, random_state=2)}


def mixed_model(**changes) -> VerticalKMeans:
    facts = {
        "epsilon": 8.0,
        "bounds": BOUNDS,
        "categories": REGIONS,
        "missing": ("midpoint", "level"),
        "id_rules": "integer",
        "n_local_clusters": 4,
        "noise": InsecureSeededNoise(1),
        "random_state": 1,
    }
    return VerticalKMeans(2, **facts | changes)


def test_a_fit_on_mixed_frames_with_messy_ids():
    model = mixed_model().fit(messy_customers(), ids=["customer", "nr"])
    assert model.study_.party_names == ("bank", "shop")
    assert model.study_.ids == IdRules(type="integer")
    assert model.synopsis_.feature_names[1:4] == (
        "bank: region=north",
        "bank: region=south",
        "bank: region=(missing)",
    )
    ages = np.sort(model.cluster_centers_[:, 0])
    np.testing.assert_allclose(ages, [25, 70], atol=8)
    # Rows are found again by their ids.
    tables = messy_customers()
    tables["shop"] = tables["shop"][::-1]
    np.testing.assert_array_equal(model.predict(tables), model.labels_)


def test_a_fit_that_learns_bounds_and_categories():
    rng = np.random.default_rng(3)
    segment = rng.integers(2, size=4000)
    ids = [f"u{number}" for number in range(4000)]
    town = np.where(segment == 1, "Bern", "Basel").astype(object)
    town[:30] = [f"hamlet {number}" for number in range(30)]
    bank = pd.DataFrame({"id": ids, "income": 1e6 + 10 * segment + rng.normal(size=4000)})
    shop = pd.DataFrame({"id": ids, "town": town, "visits": 5 * segment + rng.random(4000)})
    model = VerticalKMeans(
        2,
        epsilon=4.0,
        bounds="private",
        categories="open",
        noise=InsecureSeededNoise(1),
        random_state=0,
    ).fit({"bank": bank, "shop": shop}, ids="id")
    learned = model.result_.plan.parties[1].columns[0]
    assert learned.categories == ("Basel", "Bern", "(other)")
    right = np.mean(model.labels_ == segment)
    assert max(right, 1 - right) > 0.98
    assert model.label(shop)["segment"].nunique() == 2


def test_a_fit_that_learns_expects_its_rows():
    rng = np.random.default_rng(4)
    model = VerticalKMeans(2, bounds="private", noise=InsecureSeededNoise(1), random_state=0)
    with pytest.raises(ParameterError, match="expected_users = 300, and bounds learned"):
        model.fit([rng.normal(size=(399, 1)), rng.normal(size=(399, 1))])
    rows = [rng.normal(size=(3999, 1)), rng.normal(size=(3999, 1))]
    with pytest.warns(UserWarning, match="will be rough.* of the 3,000 users expected"):
        model.fit(rows)
    assert model.study_.expected_users == 3000
    # No more than delta allows: a note, as for all studies, says that it is too large.
    model.set_params(delta=9e-5, epsilon=8.0)
    long = [rng.normal(size=(12_000, 1)), rng.normal(size=(12_000, 1))]
    with pytest.warns(UserWarning, match="delta of 9e-05 is not below one over them"):
        model.fit(long)
    assert model.study_.expected_users == 10_000
    # What is said is taken, and of all rows that are far from it a note speaks.
    model.set_params(delta=1e-6, expected_users=30_000)
    with pytest.warns(UserWarning, match="the study's expected_users = 30,000"):
        model.fit(rows)
    assert model.study_.expected_users == 30_000
    assert VerticalKMeans(2, bounds=(-5, 5)).fit(rows).study_.expected_users is None


def test_rules_for_ids_are_checked():
    with pytest.raises(ParameterError, match="id_rules must be one of as-is, text"):
        mixed_model(id_rules=3).fit(messy_customers(), ids=["customer", "nr"])
