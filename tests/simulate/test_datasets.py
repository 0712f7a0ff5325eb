"""Generated data: sizes, ranges, seeds, and that the demonstration needs all three parties."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from splitmeans.errors import ParameterError
from splitmeans.paper.metrics import v_score
from splitmeans.simulate.baselines import central_kmeans
from splitmeans.simulate.datasets import (
    DEPARTMENTS,
    SEGMENTS,
    demo_customers,
    demo_parties,
)
from splitmeans.simulate.evaluation import assign_labels
from splitmeans.study import Budget, Study
from splitmeans.study.features import GRID_UNITS
from splitmeans.table.prepare import prepare_table


@pytest.fixture(scope="module")
def demo():
    return demo_customers(4_000)


def test_demo_tables_match_the_public_columns(demo):
    assert [party.name for party in demo.parties] == ["bank", "insurer", "retailer"]
    for party, table in zip(demo.parties, demo.tables, strict=True):
        assert table.column_names == ["id", *(column.name for column in party.columns)]
        assert table.num_rows == 4_000
        assert table["id"].type == pa.string()


def test_demo_ids_agree_but_orders_differ(demo):
    ids = [table["id"].to_pylist() for table in demo.tables]
    assert sorted(ids[0]) == sorted(ids[1]) == sorted(ids[2])
    assert ids[0] != ids[1] != ids[2] != ids[0]
    assert demo.segments["id"].to_pylist() == sorted(ids[0])
    assert demo.segments["id"][122].as_py() == "C-000123"
    assert set(demo.segments["segment"].to_pylist()) == set(SEGMENTS)


def test_demo_is_the_same_for_the_same_seed(demo):
    again = demo_customers(4_000)
    assert again.parties == demo.parties
    assert all(a.equals(b) for a, b in zip(again.tables, demo.tables, strict=True))
    assert again.segments.equals(demo.segments)
    assert not demo_customers(4_000, seed=1).tables[0].equals(demo.tables[0])


def test_demo_values_are_rounded_as_in_real_tables(demo):
    bank, insurer, retailer = demo.tables
    assert not np.any(np.mod(bank["monthly_income"].to_numpy(), 10))
    assert not np.any(np.mod(bank["loan_debt"].to_numpy(), 100))
    for column in (bank["account_balance"], insurer["yearly_premium"], retailer["basket_value"]):
        cents = column.to_numpy() * 100
        assert np.allclose(cents, np.rint(cents), atol=1e-6)
    for name in ("age", "claims_in_five_years", "policies_held"):
        assert pa.types.is_integer(insurer[name].type)
    assert set(retailer["favourite_department"].to_pylist()) == set(DEPARTMENTS)


def test_demo_columns_move_together_across_parties(demo):
    income = demo.tables[0].sort_by("id")["monthly_income"].to_numpy()
    basket = demo.tables[2].sort_by("id")["basket_value"].to_numpy()
    truth = demo.segments["segment"].to_numpy(zero_copy_only=False)
    for segment in SEGMENTS:
        chosen = truth == segment
        # True correlation about 0.4; the standard error with 500 rows is 0.04.
        assert np.corrcoef(income[chosen], basket[chosen])[0, 1] > 0.15


def test_demo_bounds_clip_few_values(demo):
    for party, table in zip(demo.parties, demo.tables, strict=True):
        for column in party.columns:
            if not column.categories:
                above = pc.greater(table[column.name], column.high)
                assert pc.mean(above.cast(pa.int8())).as_py() < 0.06, column.name


def test_demo_segments_need_all_three_parties():
    demo = demo_customers(1_200)
    truth = demo.segments["segment"].to_pylist()
    blocks = [
        prepare_table(party, table.sort_by("id")).raw_rows / GRID_UNITS
        for party, table in zip(demo.parties, demo.tables, strict=True)
    ]

    def agreement(*parties):
        rows = np.hstack([blocks[party] for party in parties])
        return v_score(truth, assign_labels(rows, central_kmeans(rows, 5, random_state=0)))

    assert agreement(0, 1, 2) > 0.97
    assert max(agreement(0, 1), agreement(0, 2), agreement(1, 2)) < 0.9
    assert max(agreement(0), agreement(1), agreement(2)) < 0.72


def test_demo_parties_make_a_study():
    study = Study(
        name="demo", parties=demo_parties(), n_clusters=5, budget=Budget(epsilon=1, delta=1e-5)
    )
    assert Study.from_toml(study.to_toml()).hash == study.hash


def test_demo_with_one_customer_and_with_many_digits():
    assert demo_customers(1).tables[0]["id"].to_pylist() == ["C-000001"]
    with pytest.raises(ParameterError, match="n must be a whole number >= 1, got 0"):
        demo_customers(0)
