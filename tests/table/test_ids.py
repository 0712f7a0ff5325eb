"""Canonical ids: one form for every kind of input, errors with row numbers and no values."""

import time

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from splitmeans.errors import DataError
from splitmeans.table.checks.problems import name_row_numbers
from splitmeans.table.columns import read_array
from tests.table.id_lists import canonical_ids

TEXT_INPUTS = [
    ["a", "b"],
    ("a", "b"),
    np.array(["a", "b"]),
    np.array(["a", "b"], dtype=object),
    pd.Series(["a", "b"]),
    pd.Series(["a", "b"], dtype=object),
    pd.Series(["a", "b"], index=[7, 7]),
    pd.Index(["a", "b"]),
    pd.Categorical(["a", "b"]),
    pd.Series(["a", "b"], dtype="category"),
    pa.array(["a", "b"]),
    pa.array(["a", "b"], pa.large_string()),
    pa.array(["a", "b"]).dictionary_encode(),
    pa.chunked_array([["a"], ["b"]]),
    pa.chunked_array([pa.array(["a"]).dictionary_encode(), pa.array(["b"]).dictionary_encode()]),
    pl.Series(["a", "b"]),
    pl.Series(["a", "b"], dtype=pl.Categorical),
]


@pytest.mark.parametrize("values", TEXT_INPUTS, ids=lambda values: type(values).__name__)
def test_every_kind_of_text_input(values):
    ids = canonical_ids(values)
    assert ids.type == pa.large_string()
    assert ids.to_pylist() == ["a", "b"]


@pytest.mark.parametrize(
    "values",
    [
        [42, -7],
        np.array([42, -7], dtype=np.int16),
        np.array([42, -7], dtype=object),
        pd.Series([42, -7], dtype="Int64"),
        pa.array([42, -7]),
        ["42", "-7"],
    ],
    ids=lambda values: type(values).__name__,
)
def test_a_number_is_its_decimal_text(values):
    assert canonical_ids(values).to_pylist() == ["42", "-7"]


def test_the_largest_numbers():
    assert canonical_ids(np.array([2**64 - 1], dtype=np.uint64)).to_pylist() == [str(2**64 - 1)]


def test_text_is_normalised_but_neither_folded_nor_trimmed():
    assert canonical_ids(["e\u0301", "\u00c9", " x", "x", "X"]).to_pylist() == [
        "\u00e9",
        "\u00c9",
        " x",
        "x",
        "X",
    ]


MISSING = r"ids must not be missing; see row number 1 \(counting from 0\)"
ONE_KIND = "ids must be one list of values of one kind"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["secret", None], MISSING),
        ([17, None], MISSING),
        (np.array(["secret", np.nan], dtype=object), MISSING),
        (pd.Series(["secret", None]), MISSING),
        (pd.Series([17, None], dtype="Int64"), MISSING),
        (np.ma.array([17, 18], mask=[False, True]), MISSING),
        ([None, None], r"ids must not be missing; see row numbers 0, 1 \(counting from 0\)"),
        (["secret", ""], r"ids must not be empty text; see row number 1 \(counting from 0\)"),
        (["s", "secret", "s"], r"an earlier row has the same id as row number 2 \(counting from 0"),
        (["\u00e9", "e\u0301"], "Unicode normal form C.*same id as row number 1"),
        ([17, 17], "same id as row number 1"),
        ([17.0, 18.0], "ids must be text or whole numbers, got double"),
        ([True, False], "ids must be text or whole numbers, got bool"),
        ([b"secret"], "ids must be text or whole numbers, got binary"),
        (pd.to_datetime(["2020-01-01"]), "ids must be text or whole numbers, got timestamp"),
        ([["secret"]], "ids must be text or whole numbers, got list"),
        (["secret", 17], ONE_KIND),
        ([2**70], ONE_KIND),
        (["secret\ud800"], ONE_KIND),
        (np.array([["secret"]]), ONE_KIND),
        (pd.DataFrame({"id": ["secret"]}), ONE_KIND),
        ("secret", ONE_KIND),
        ({"secret": 1}, ONE_KIND),
        (17, ONE_KIND),
        (pa.array([b"\xff"]).view(pa.string()), "ids must be valid UTF-8 text"),
    ],
)
def test_errors_name_rows_and_no_values(values, message):
    with pytest.raises(DataError, match=message) as caught:
        canonical_ids(values)
    assert "secret" not in str(caught.value)
    assert "17" not in str(caught.value)
    # Arrow's own message holds the value; a traceback must not show it either.
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None or caught.value.__suppress_context__


def test_only_the_first_few_rows_are_named():
    assert name_row_numbers(np.arange(8)) == (
        "row numbers 0, 1, 2, 3, 4 and 3 more (counting from 0)"
    )


def test_read_array_keeps_numbers_and_writes_out_dictionaries():
    assert read_array(np.array([1.5, 2.5]), what="x").to_pylist() == [1.5, 2.5]
    assert read_array(pa.array([3, 3]).dictionary_encode(), what="x").to_pylist() == [3, 3]


@given(st.lists(st.text(min_size=1), min_size=1, max_size=20))
@settings(max_examples=50, deadline=None)
def test_canonical_form_is_a_fixed_point_and_duplicates_are_found(texts):
    try:
        ids = canonical_ids(texts)
    except DataError:
        return
    assert canonical_ids(ids).equals(ids)
    assert len(set(ids.to_pylist())) == len(texts)


def test_a_million_ids_take_no_python_loop():
    numbers = pa.array(np.arange(1_000_000))
    start = time.process_time()
    ids = canonical_ids(numbers)
    # About 0.25 s; a Python loop over normalisation takes ten times as long.
    assert time.process_time() - start < 3
    assert ids[999_999].as_py() == "999999"
