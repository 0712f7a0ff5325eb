"""A party's table on the grid: quantisation by hand, every input form, every error."""

import ast
import inspect
import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from splitmeans._types import NO_VALUE
from splitmeans.errors import DataError
from splitmeans.simulate.evaluation import assign_labels, normalised_loss
from splitmeans.simulate.pooling import pooled_rows
from splitmeans.study import Column, PartySpec
from splitmeans.study.features import GRID_UNITS, bounds_of, features_of
from splitmeans.table import prepare as table
from splitmeans.table.ids import canonical as ids
from splitmeans.table.prepare import prepare_table

G = GRID_UNITS
ONE_HOT = 741_455  # round(2^20 / sqrt(2))


def party(*columns):
    return PartySpec(name="bank", columns=columns)


def number(name="x", low=0, high=10, **rest):
    return Column(name=name, low=low, high=high, **rest)


def branch(**rest):
    return Column(name="branch", categories=("north", "south"), **rest)


def grid(spec, data, **rest):
    return prepare_table(spec, data, **rest).features


def test_quantisation_by_hand():
    # 10 units onto [-2^20, 2^20]: 2.5 is a quarter of the way up, 1 is 0.2 -> -0.8 * 2^20.
    rows = grid(party(number()), np.array([[0.0], [2.5], [5.0], [1.0], [10.0], [-3.0], [99.0]]))
    assert rows.dtype == np.int64
    assert rows.shape == (7, 1)
    # -0.8 * 1048576 = -838860.8
    assert rows[:, 0].tolist() == [-G, -G // 2, 0, -838_861, G, -G, G]


def test_halves_are_rounded_to_even():
    # A bound of 1 grid unit per own unit: own value v lands on v - 2^20, so halves stay halves.
    rows = grid(party(number(high=2 * G)), np.array([[0.5], [1.5], [2.5], [2 * G - 0.5]]))
    assert (rows[:, 0] + G).tolist() == [0, 2, 2, 2 * G]


def test_weight_stretches_the_grid():
    rows = grid(party(number(weight=3), number("y", weight=0.5)), np.array([[10, 10], [0, 2.5]]))
    assert rows.tolist() == [[3 * G, G // 2], [-3 * G, -G // 4]]


def test_categories_are_one_hot():
    rows = grid(party(branch(), number()), {"branch": ["south", "north"], "x": [0, 5]})
    assert rows.tolist() == [[-ONE_HOT, ONE_HOT, -G], [ONE_HOT, -ONE_HOT, 0]]


def test_a_missing_category_is_a_level_of_its_own_or_spread():
    data = {"branch": ["south", None], "x": [0, 5]}
    rows = grid(party(branch(missing="level"), number()), data)
    assert rows.tolist() == [[-ONE_HOT, ONE_HOT, -ONE_HOT, -G], [-ONE_HOT, -ONE_HOT, ONE_HOT, 0]]
    three = Column(name="branch", categories=("east", "north", "south"), missing="spread", weight=2)
    rows = grid(party(three, number()), data)
    # A third of 2 * 1482910 from the bottom up; the one step that is over goes to the first.
    assert rows[1].tolist() == [988_607 - 1_482_910, 988_607 - 1_482_910, 988_606 - 1_482_910, 0]


def test_missing_rules():
    data = {"x": [np.nan, 5.0], "y": [None, 5.0], "z": [None, 5.0]}
    spec = party(
        number(missing="midpoint", low=0.1, high=0.7),
        number("y", missing=7.5),
        number("z", missing=-100),
    )
    # A number is clipped like any other value, and the midpoint is exactly 0.
    assert grid(spec, data)[0].tolist() == [0, G // 2, -G]


MIXED = party(number(), branch(missing="spread"))
EXPECTED = [[-G, ONE_HOT, -ONE_HOT], [G, -ONE_HOT, ONE_HOT]]


COLUMNS = {"x": [0, 10], "branch": ["north", "south"], "id": ["a", "b"]}


class StreamOnly:
    """Some other table that only offers the Arrow stream interface."""

    def __arrow_c_stream__(self, requested_schema=None):
        return pa.table(COLUMNS).__arrow_c_stream__(requested_schema)


FRAME = pd.DataFrame({"branch": ["north", "south"], "note": [1, "x"], "x": [0, 10]})


@pytest.mark.parametrize(
    "data",
    [
        {"x": [0, 10], "branch": ["north", "south"]},
        {"x": np.array([0, 10], dtype=np.int8), "branch": np.array(["north", "south"])},
        FRAME,
        FRAME.astype({"branch": "category"}),
        FRAME.astype({"x": "Int64"}),
        FRAME.set_axis([5, 5]),
        pa.table({"branch": ["north", "south"], "x": [0, 10]}),
        pa.record_batch({"branch": ["north", "south"], "x": [0, 10]}),
        pa.table({"branch": pa.array(["north", "south"]).dictionary_encode(), "x": [0, 10]}),
        pa.table({"branch": ["north", "south"], "x": pa.array([0, 10], pa.decimal128(5, 2))}),
        np.array([[0, "north"], [10, "south"]], dtype=object),
        [[0, "north"], [10, "south"]],
        pl.DataFrame(COLUMNS),
        pl.DataFrame(COLUMNS, schema_overrides={"branch": pl.Categorical}),
        StreamOnly(),
    ],
    ids=lambda data: type(data).__name__,
)
def test_every_kind_of_input(data):
    assert grid(MIXED, data).tolist() == EXPECTED


def test_booleans_are_zero_and_one():
    spec = party(number(high=1), number("y", high=1))
    assert grid(spec, np.array([[True, False]])).tolist() == [[G, -G]]
    data = {"x": [True, False, None], "y": pd.Series([True, False, None], dtype="boolean")}
    filled = party(number(high=1, missing=1), number("y", high=1, missing="midpoint"))
    assert grid(filled, data).tolist() == [[G, G], [-G, -G], [G, 0]]


@pytest.mark.parametrize(
    "values",
    [
        [1, 2, None],
        ["1", "2", None],
        np.array([1.0, 2.0, np.nan]),
        pd.Series([1, 2, None]),
        pd.Categorical([1, 2, None]),
        pa.array([1, 2, None], pa.uint8()),
    ],
    ids=lambda values: type(values).__name__,
)
def test_whole_numbers_are_compared_with_categories_as_text(values):
    spec = party(Column(name="c", categories=("1", "2"), missing="spread"))
    assert np.sign(grid(spec, {"c": values})).tolist() == [[1, -1], [-1, 1], [0, 0]]


def test_categories_are_compared_in_normal_form():
    spec = party(Column(name="c", categories=("caf\u00e9", "bar")))
    assert np.sign(grid(spec, {"c": ["cafe\u0301"]})).tolist() == [[1, -1]]


def test_large_integers_and_all_missing_columns():
    spec = party(number(high=2**60), number("y", missing="midpoint"))
    assert grid(spec, {"x": [2**60 - 1], "y": [None]}).tolist() == [[G, 0]]
    assert grid(spec, {"x": pa.array([2**60 - 1]), "y": [None]}).tolist() == [[G, 0]]


def test_masked_values_are_missing():
    data = np.ma.array([[1.0], [2.0]], mask=[[False], [True]])
    with pytest.raises(DataError, match="must not have missing values; see row number 1"):
        prepare_table(party(number()), data)


def test_columns_with_number_names_are_found_as_text():
    frame = pd.DataFrame(np.array([[0.0, 10.0]]))
    assert grid(party(number("0"), number("1")), frame).tolist() == [[-G, G]]


def test_ids_are_given_or_found_or_counted():
    spec = party(number())
    assert prepare_table(spec, np.zeros((2, 1))).ids.to_pylist() == ["0", "1"]
    assert prepare_table(spec, {"x": [1, 2]}).ids.to_pylist() == ["0", "1"]
    frame = pd.DataFrame({"id": ["u", "v"], "x": [1, 2]})
    assert prepare_table(spec, frame).ids.to_pylist() == ["u", "v"]
    assert prepare_table(spec, frame, ids=[8, 9]).ids.to_pylist() == ["8", "9"]
    named = PartySpec(name="bank", columns=(number(),), id_column="customer")
    assert prepare_table(named, {"customer": ["c"], "x": [1]}).ids.to_pylist() == ["c"]


def test_repr_shows_sizes_only():
    prepared = prepare_table(party(number()), {"id": ["secret", "other"], "x": [1, 2]})
    assert repr(prepared) == "<PartyTable party='bank' rows=2 columns=1>"
    assert len(prepared) == 2


def test_rows_are_contiguous():
    rows = grid(party(number(), number("y")), np.ones((5, 2), order="F"))
    assert rows.flags.c_contiguous


X = party(number())
IN_X = "party 'bank', column 'x' "
SECRET = 987_654.5


@pytest.mark.parametrize(
    ("spec", "data", "message"),
    [
        (X, {"x": [1, None]}, IN_X + r"must not have missing values; see row number 1 \(counting"),
        (X, np.array([[1.0], [np.nan]]), IN_X + "must not have missing values; see row number 1"),
        (X, {"x": [None, None]}, IN_X + "must not have missing values; see row numbers 0, 1"),
        (X, {"x": [SECRET, np.inf]}, IN_X + "must hold finite numbers; see row number 1"),
        (X, {"x": [-np.inf, SECRET]}, IN_X + "must hold finite numbers; see row number 0"),
        (X, {"x": ["secret"]}, IN_X + "must hold numbers, found text that is no number; see row"),
        (X, np.array([["1.5"]]), IN_X + "must hold numbers, found numbers kept as text"),
        (
            X,
            {"x": pd.to_datetime(["2020-01-01"])},
            IN_X + "must hold numbers, found dates or times .*row number 0",
        ),
        (X, {"x": [1.0, "secret"]}, IN_X + "must hold numbers, found text .*see row number 1 "),
        (X, {"x": [1j]}, IN_X + "must hold numbers, found a value that is neither number nor text"),
        (X, {"x": np.zeros((2, 2))}, IN_X + "must be one list of values of one kind"),
        (X, {"x": 3}, IN_X + "must be one list of values of one kind"),
        (X, {"X": [1]}, r"party 'bank' must have the column 'x' of the study; .*\(case and spaces"),
        (X, pa.table({"y": [1]}), "party 'bank' must have the column 'x' of the study"),
        (X, pa.table([[1], [2]], names=["x", "x"]), "must have column 'x' once"),
        (X, pd.DataFrame([[1, 2]], columns=["x", "x"]), "must have column 'x' once"),
        (X, pa.table([[1], [2], [3]], names=["x", "id", "id"]), "must have column 'id' once"),
        (X, {"x": []}, "party 'bank': the table must have at least one row, got none"),
        (X, np.empty((0, 1)), "party 'bank': the table must have at least one row, got none"),
        (X, np.ones((3, 2)), r"must have the study's 1 columns in the study's order \(x\), got 2"),
        (X, np.ones(3), r"2 dimensions \(rows, columns\), got 1; a single column is X.reshape"),
        (X, np.ones((3, 1, 1)), r"array with 2 dimensions \(rows, columns\), got 3"),
        (X, None, r"array with 2 dimensions \(rows, columns\), got 0"),
        (X, [[1], [2, 3]], "party 'bank': the rows must all have 1 values"),
        (X, pa.chunked_array([[1]]), "party 'bank': the data must be a table, got one column"),
        (
            party(number(), number("y")),
            {"x": [1, 2], "y": [1]},
            "column 'y' must have as many rows as column 'x', got 1 and 2",
        ),
        (X, {"x": [1, 2], "id": ["s", "s"]}, "party 'bank': ids must be different.*row number 1"),
        (X, {"x": [1, 2], "id": ["s"]}, "ids must have one id for each of 2 rows, got 1"),
        (party(branch()), {"branch": ["north", None]}, "column 'branch' must not have missing"),
        (
            party(branch()),
            {"branch": ["north", "secret", "other"]},
            "column 'branch' must hold only categories that the study lists .*row numbers 1, 2",
        ),
        (party(branch()), {"branch": [1.5]}, "must hold text or whole numbers; see row number 0"),
        (party(branch()), {"branch": [True]}, "must hold text or whole numbers, got bool"),
        (party(branch()), {"branch": [["north"]]}, "must hold text or whole numbers, got list"),
    ],
)
def test_errors_name_party_column_rule_and_rows_but_no_values(spec, data, message):
    with pytest.raises(DataError, match=message) as caught:
        prepare_table(spec, data)
    assert "secret" not in str(caught.value)
    assert str(SECRET) not in str(caught.value)
    assert caught.value.__context__ is None or caught.value.__suppress_context__


def test_given_ids_must_match_the_rows():
    with pytest.raises(DataError, match="party 'bank': ids must have one id for each of 2 rows"):
        prepare_table(X, {"x": [1, 2]}, ids=["a", "b", "c"])


SPEC = party(number(low=-1.3, high=7.7, missing="midpoint"), number("y", low=1e-3, high=0.3))
value = st.floats(allow_nan=False, allow_infinity=False, width=64)


@given(
    rows=st.lists(st.tuples(st.one_of(st.just(np.nan), value), value), min_size=1, max_size=40),
    data=st.data(),
)
@settings(max_examples=50, deadline=None)
def test_a_row_does_not_depend_on_other_rows(rows, data):
    array = np.array(rows)
    whole = grid(SPEC, array)
    bounds = bounds_of(features_of(SPEC))
    assert (np.abs(whole) <= bounds).all()
    chosen = data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1, max_size=len(rows)))
    assert grid(SPEC, array[chosen]).tolist() == whole[chosen].tolist()
    order = data.draw(st.permutations(range(len(rows))))
    assert grid(SPEC, array[order]).tolist() == whole[order].tolist()
    # And the same by column, from Arrow.
    by_column = pa.table({"x": array[:, 0], "y": array[:, 1]})
    assert grid(SPEC, by_column).tolist() == whole.tolist()


@given(st.lists(st.floats(-5, 15), min_size=2, max_size=20))
@settings(max_examples=50, deadline=None)
def test_the_grid_keeps_the_order_of_values(values):
    ordered = np.sort(np.array(values))
    assert (np.diff(grid(X, ordered[:, np.newaxis])[:, 0]) >= 0).all()


@pytest.mark.parametrize("module", [ids, table])
def test_pandas_and_polars_need_not_be_installed(module):
    tree = ast.walk(ast.parse(inspect.getsource(module)))
    imports = [ast.unparse(node) for node in tree if isinstance(node, ast.Import | ast.ImportFrom)]
    assert imports
    assert not any("pandas" in line or "polars" in line for line in imports)


def test_skipped_values_have_no_value():
    spec = PartySpec(
        name="bank",
        columns=(
            Column(name="x", low=0, high=2, missing="skip"),
            Column(name="kind", categories=("a", "b"), missing="skip"),
            Column(name="y", low=0, high=2),
        ),
    )
    table = prepare_table(spec, {"x": [None, 2.0], "kind": ["b", None], "y": [1.0, 0.0]})
    assert table.raw_rows.tolist() == [[NO_VALUE, 1, 0], [2**20, NO_VALUE, -(2**20)]]
    assert (table.features == NO_VALUE).sum(axis=1).tolist() == [1, 2]
    rows, _ = pooled_rows([table])
    assert np.isnan(rows).sum(axis=1).tolist() == [1, 2]
    # Distances are over what is there: y alone, and x with y, each at its own centre.
    half = 1 / math.sqrt(2)
    centres = np.array([[-1, half, -half, -1], [0.5, -half, half, 0.5]])
    assert assign_labels(rows, centres).tolist() == [1, 1]
    assert normalised_loss(rows, centres) == pytest.approx((0.25 + 0.25 + 2.25) / 2)
