"""The benchmark of synthetic rows: codes, measures, and tables that are what they say."""

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.synthetic.codes import Coder
from benchmarks.synthetic.contest import DETAIL, Case, Row, Setup, own_study, peer_name, run_cases
from benchmarks.synthetic.measures import distances
from benchmarks.synthetic.page import page_lines
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
        found = distances(real, synthetic, coder=coder, splits=[(0, 1)], target=1, held_out=real)[0]
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


def row(contender: str, across: float, auc: float, seconds: float, parties: int = 2) -> Row:
    case = Case(data="made up", n_parties=parties, epsilon=1.0, seed=0)
    measures = {"one_way": 0.01, "within": 0.02, "across": across, "correlation": 0.03, "auc": auc}
    return Row(contender=contender, case=case, measures=measures, processor_seconds=seconds)


def test_the_page_says_in_how_many_lines_the_aim_is_met() -> None:
    mst = peer_name("mst")
    rows = [
        # Error and classifier within the aim, time not.
        *(row(DETAIL, 0.022, 0.8, 2.0), row(mst, 0.02, 0.8, 19.0)),
        # The error is above 1.1 times, the classifier better.
        *(row(DETAIL, 0.023, 0.81, 2.0, parties=3), row(mst, 0.02, 0.8, 21.0, parties=3)),
    ]
    lines = page_lines(rows)
    assert lines[0] == f"| table, parties, epsilon | {DETAIL} | {mst} | seconds |"
    assert lines[2] == (
        "| made up, 2, 1 | .010/.020/.022/.030/.800 | .010/.020/.020/.030/.800 | 2.0 / 19.0 |"
    )
    assert lines[-1] == (
        "Of 2 lines: error across parties at most 1.1 times MST's in 1, classifier at least as "
        "good in 2, both in 1; a tenth of its time in 1."
    )


def test_a_method_that_was_given_up_counts_for_nothing() -> None:
    given_up = Row(
        contender=peer_name("mst"),
        case=row(DETAIL, 0, 0, 0).case,
        measures=None,
        processor_seconds=None,
    )
    lines = page_lines([row(DETAIL, 0.02, 0.8, 2.0), given_up])
    assert lines[-1].endswith("| given up | 2.0 / - |")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:party")
def test_contenders_that_see_pooled_rows_are_the_same_for_two_and_three_parties() -> None:
    cases = [Case(data="census-like", n_parties=number, epsilon=4.0, seed=0) for number in (2, 3)]
    rows = run_cases(cases, Setup(n=1_500))
    found = {(own.contender, own.case.n_parties): own.measures for own in rows}
    assert len(found) == 8
    pooled = [found["pooled rows again", number] for number in (2, 3)]
    assert pooled[0]["auc"] == pooled[1]["auc"]
    assert pooled[0]["across"] != pooled[1]["across"]
    assert found[DETAIL, 2]["auc"] != found[DETAIL, 3]["auc"]
