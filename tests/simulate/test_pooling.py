"""Joining tables by id, on tables of a few rows."""

import numpy as np
import pyarrow as pa
import pytest

from splitmeans.errors import DataError
from splitmeans.simulate.blocks import prepare_blocks, read_blocks
from splitmeans.simulate.pooling import pooled_rows
from splitmeans.study import Budget, Column, PartySpec, Study
from splitmeans.study.features import GRID_UNITS
from splitmeans.table.prepare import PartyTable, prepare_table


def table(name: str, rows: list[list[float]], ids: list) -> PartyTable:
    columns = tuple(Column(name=f"{name}{n}", low=-1, high=1) for n in range(len(rows[0])))
    return prepare_table(PartySpec(name=name, columns=columns), np.array(rows), ids=ids)


def test_rows_are_joined_by_id_in_the_first_table_s_order():
    first = table("a", [[0.5, 0.25], [-0.5, 0.0], [1.0, -1.0]], ["u", "v", "w"])
    second = table("b", [[0.125], [0.75], [-0.25]], ["w", "u", "v"])
    rows, ids = pooled_rows([first, second])
    np.testing.assert_array_equal(rows, [[0.5, 0.25, 0.75], [-0.5, 0.0, -0.25], [1.0, -1.0, 0.125]])
    assert ids.to_pylist() == ["u", "v", "w"]


def test_numbers_and_their_text_are_the_same_user():
    rows, ids = pooled_rows(
        [table("a", [[0.5], [1.0]], [7, 8]), table("b", [[0.25], [0.0]], ["8", "7"])]
    )
    np.testing.assert_array_equal(rows, [[0.5, 0.0], [1.0, 0.25]])
    assert ids.to_pylist() == ["7", "8"]


def test_users_that_some_party_lacks_are_left_out():
    tables = [
        table("a", [[0.0], [0.25], [0.5], [0.75]], ["u", "v", "w", "x"]),
        table("b", [[-0.25], [-0.5], [-0.75]], ["x", "v", "y"]),
        table("c", [[1.0], [-1.0], [0.0]], ["v", "z", "x"]),
    ]
    rows, ids = pooled_rows(tables)
    np.testing.assert_array_equal(rows, [[0.25, -0.5, 1.0], [0.75, -0.25, 0.0]])
    assert ids.to_pylist() == ["v", "x"]


def test_one_table_is_itself_in_distance_units():
    only = table("a", [[0.5, -1.0]], ["u"])
    rows, ids = pooled_rows([only])
    np.testing.assert_array_equal(rows, only.raw_rows / GRID_UNITS)
    assert len(ids) == 1


def test_nobody_in_common_is_an_error_that_names_no_id():
    tables = [table("a", [[0.0]], ["secret-1"]), table("b", [[0.0]], ["secret-2"])]
    with pytest.raises(DataError, match=r"no user in common; .*id_rules.*caseless.*email") as found:
        pooled_rows(tables)
    assert "secret" not in str(found.value)


def test_the_tables_stay_as_they_were():
    first, second = table("a", [[0.5], [0.25]], ["u", "v"]), table("b", [[0.0], [1.0]], ["v", "u"])
    before = first.raw_rows.copy(), second.raw_rows.copy()
    rows, _ = pooled_rows([first, second])
    rows[:] = 9
    np.testing.assert_array_equal(first.raw_rows, before[0])
    np.testing.assert_array_equal(second.raw_rows, before[1])
    assert isinstance(first.ids, pa.LargeStringArray)


def test_row_numbers_are_ids_beside_a_table_that_has_some():
    """An array's rows are users 0, 1 and so on, also where the other table is in another order."""
    party = [
        PartySpec(name=name, columns=(Column(name="x", low=0, high=10),)) for name in ("a", "b")
    ]
    study = Study(
        name="s", parties=tuple(party), n_clusters=2, budget=Budget(epsilon=1.0, delta=1e-5)
    )
    named = pa.table({"id": ["2", "0", "1"], "x": [2.0, 0.0, 1.0]})
    tables = prepare_blocks(study, read_blocks([named, np.array([[0.0], [1.0], [2.0]])]), None)
    rows, ids = pooled_rows(tables)
    np.testing.assert_array_equal(rows[:, 0], rows[:, 1])
    assert ids.to_pylist() == ["2", "0", "1"]
    both = prepare_blocks(study, read_blocks([np.zeros((3, 1)), np.ones((3, 1))]), None)
    assert pooled_rows(both)[1].to_pylist() == ["0", "1", "2"]
