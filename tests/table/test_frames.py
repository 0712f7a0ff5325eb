"""Tables of other libraries, recognised without importing these."""

import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from splitmeans.errors import DataError
from splitmeans.table.columns import read_array
from splitmeans.table.frames import (
    as_stream,
    is_pandas,
    is_polars,
    listed_names,
    named_columns,
    text_names,
)

COLUMNS = {"age": [1.0, 2.0], "id": ["a", "b"]}
TABLES = {
    "mapping": COLUMNS,
    "pandas": pd.DataFrame(COLUMNS),
    "polars": pl.DataFrame(COLUMNS),
    "arrow": pa.table(COLUMNS),
    "batch": pa.record_batch(COLUMNS),
}


@pytest.mark.parametrize("kind", TABLES)
def test_names_and_columns_of_every_kind(kind: str) -> None:
    table = TABLES[kind]
    assert listed_names(table) == ["age", "id"]
    found = named_columns(table, where="party")
    assert found is not None
    assert {name: [_plain(value) for value in values] for name, values in found} == COLUMNS
    assert (as_stream(table, where="party") is not None) is (kind == "polars")
    assert is_pandas(table) is (kind == "pandas")
    assert is_polars(table) is (kind == "polars")


def _plain(value: Any) -> Any:
    return value.as_py() if isinstance(value, pa.Scalar) else value


class StreamAlone:
    """A table of a library that offers an Arrow stream and nothing else."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("wrap", [pa.Table.to_reader, StreamAlone])
def test_a_stream_is_read_once(wrap: Any) -> None:
    reader = as_stream(wrap(pa.table(COLUMNS)), where="party")
    assert reader is not None
    assert listed_names(reader) == ["age", "id"]
    found = named_columns(reader, where="party")
    assert found is not None
    assert {name: values.to_pylist() for name, values in found} == COLUMNS


def test_text_by_views_becomes_plain_text() -> None:
    """polars hands its text and categories on by views."""
    views = pa.table({"a": [1], "b": pa.array(["x"], pa.string_view())})
    coded = pl.DataFrame({"c": pl.Series(["u", "v", "u"], dtype=pl.Categorical)})
    reader = as_stream(StreamAlone(views), where="party")
    assert reader is not None
    assert text_names(reader) == {"b"}
    assert reader.read_all().schema.types == [pa.int64(), pa.large_string()]
    found = as_stream(coded, where="party")
    assert found is not None
    assert text_names(found) == {"c"}
    column = found.read_all()["c"]
    assert read_array(column, what="c").to_pylist() == ["u", "v", "u"]
    assert read_array(coded["c"], what="c").to_pylist() == ["u", "v", "u"]


def test_an_array_has_no_names() -> None:
    array = np.zeros((2, 2))
    assert listed_names(array) is None
    assert named_columns(array, where="party") is None


def test_one_column_is_no_table() -> None:
    with pytest.raises(DataError, match="party: the data must be a table, got one column of it"):
        as_stream(pa.chunked_array([[1.0, 2.0]]), where="party")


def test_no_library_is_imported() -> None:
    code = (
        "import sys, splitmeans.table.frames; "
        "sys.exit(bool({'pandas', 'polars', 'duckdb'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
