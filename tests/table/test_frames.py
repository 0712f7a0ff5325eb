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
from splitmeans.table.frames import (
    as_stream,
    is_pandas,
    listed_names,
    named_columns,
    without_polars,
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
    assert as_stream(table, where="party") is None
    assert is_pandas(table) is (kind == "pandas")
    assert isinstance(without_polars(table), pa.Table) is (kind in ("polars", "arrow"))


def _plain(value: Any) -> Any:
    return value.as_py() if isinstance(value, pa.Scalar) else value


def test_a_reader_is_a_stream() -> None:
    reader = pa.table(COLUMNS).to_reader()
    assert listed_names(reader) == ["age", "id"]
    assert as_stream(reader, where="party") is reader
    found = named_columns(reader, where="party")
    assert found is not None
    assert [name for name, _ in found] == ["age", "id"]


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
