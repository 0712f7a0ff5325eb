"""The benchmark of synthetic rows: codes, measures, and tables that are what they say."""

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.synthetic.codes import Coder
from benchmarks.synthetic.contest import Case, own_study
from benchmarks.synthetic.measures import distance
from benchmarks.synthetic.tables import DRAWN, MixedTable, load_table
from splitmeans.errors import ParameterError
from splitmeans.study import Column

TABLE = MixedTable(
    rows=pa.table({"hours": [0.0, 40.0, 40.0, 60.0], "sex": ["f", "m", "f", "m"]}),
    columns=(
        Column(name="hours", low=0, high=50),
        Column(name="sex", categories=("f", "m")),
    ),
    target="sex",
    splits={2: (0, 1)},
)


def test_codes_are_bins_between_values_and_positions_of_categories() -> None:
    coder = Coder.of(TABLE, TABLE.rows)
    assert coder.sizes == (3, 2)
    # 60 is outside the public bounds and counts as 50; an edge is half way between two values.
    assert coder.edges[0] is not None
    np.testing.assert_allclose(coder.edges[0], [20.0, 45.0])
    np.testing.assert_array_equal(coder.codes(TABLE.rows), [[0, 0], [1, 1], [1, 0], [2, 1]])


def test_distance_of_rows_from_themselves_and_from_one_moved_row() -> None:
    coder = Coder.of(TABLE, TABLE.rows)
    real = np.tile(coder.codes(TABLE.rows), (30, 1))

    def measured(synthetic: np.ndarray) -> tuple[float, float]:
        found = distance(real, synthetic, coder=coder, parties=(0, 1), target=1, held_out=real)
        return found.one_way, found.across

    assert measured(real) == (0, 0)
    moved = real.copy()
    moved[::4, 0] = 2  # a quarter of the rows, in one of two columns and in their pair
    assert measured(moved) == (pytest.approx(0.125), pytest.approx(0.25))


@pytest.mark.parametrize("name", DRAWN)
def test_drawn_tables_have_what_their_columns_say(name: str) -> None:
    table = load_table(name, seed=1, n=2_000, data_dir=None)
    assert table.rows.num_rows == 2_000
    assert set(table.splits[3]) == {0, 1, 2}
    for column in table.columns:
        values = set(table.rows[column.name].to_pylist())
        if column.categories:
            assert values == set(column.categories)
    study = own_study(
        table, Case(data=name, n_parties=3, epsilon=1.0, seed=0), delta=1e-6, rows=2_000
    )
    assert sum(len(party.columns) for party in study.parties) == len(table.columns)


def test_a_table_from_a_file_asks_for_its_folder() -> None:
    with pytest.raises(ParameterError, match=r"needs --data-dir with taxi\.parquet"):
        load_table("taxi-mixed", seed=0, n=10, data_dir=None)
