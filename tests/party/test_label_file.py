"""Labels join the table that they were made from: every row, with its id as the table has it."""

import dataclasses
import decimal
import uuid
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from splitmeans.errors import DataError
from splitmeans.party.label_file import write_labels
from splitmeans.result.result import Result
from splitmeans.study import IdRules
from splitmeans.table.options import silent
from tests.result.small_result import small_study, write_small_result

UUIDS = [uuid.UUID(int=number) for number in (7, 2**120, 2**64)]

# Ids as real tables have them, by the study's rule.
IDS = {
    "integer: leading zeros": ("integer", pa.array(["000001", "20", "0300"])),
    "integer: signs and blanks": ("integer", pa.array(["+1", " 20 ", "300.0"])),
    "integer: floats": ("integer", pa.array([1.0, 20.0, 300.0])),
    "integer: numbers": ("integer", pa.array([1, 20, 300], pa.int32())),
    "integer: decimals": ("integer", pa.array([decimal.Decimal(n) for n in (1, 20, 300)])),
    "as-is: text": ("as-is", pa.array(["caf\u00e9", "cafe\u0301s", " x"])),
    "as-is: dictionary": ("as-is", pa.array(["b", "a", "c"]).dictionary_encode()),
    "as-is: large text": ("as-is", pa.array(["b", "a", "c"], pa.large_string())),
    "as-is: unsigned": ("as-is", pa.array([3, 2**63, 1], pa.uint64())),
    "text: blanks": ("text", pa.array(["  b", "a ", "c"])),
    "uuid: capitals and braces": (
        "uuid",
        pa.array([str(UUIDS[0]).upper(), f"{{{UUIDS[1]}}}", UUIDS[2].hex]),
    ),
    "uuid: bytes": ("uuid", pa.array([one.bytes for one in UUIDS], pa.binary(16))),
}


def made(tmp_path: Path, rule: str, ids: pa.Array, *, source: str) -> tuple[Result, Path, pa.Table]:
    study = dataclasses.replace(small_study(), ids=IdRules(type=rule))
    result = Result.read(write_small_result(tmp_path / "result", study=study))
    table = pa.table(
        {
            "income": [7000.0, 2000.0, 5000.0],
            "customer": ids,
            "region": ["south", "north", "south"],
        }
    )
    path = tmp_path / f"bank.{source}"
    if source == "csv":
        pyarrow.csv.write_csv(table, path)
    else:
        pq.write_table(table, path)
    return result, path, table


def label(result: Result, path: Path, output: Path, **options: Any) -> int:
    segments = result.published
    return write_labels(
        result, path, output, party="bank", segments=segments, progress=silent, **options
    )


def plain(values: Any) -> Any:
    kind = values.type
    return values.cast(kind.value_type) if pa.types.is_dictionary(kind) else values


@pytest.mark.parametrize("parts", [1, 200_000], ids=["row by row", "at once"])
@pytest.mark.parametrize("name", IDS)
def test_ids_are_as_in_the_table(name, parts, tmp_path, monkeypatch):
    monkeypatch.setattr("splitmeans.party.label_file._BATCH", parts)
    rule, ids = IDS[name]
    result, path, table = made(tmp_path, rule, ids, source="parquet")
    assert label(result, path, tmp_path / "labels.parquet") == 3
    labels = pq.read_table(tmp_path / "labels.parquet")
    found = labels["customer"].combine_chunks()
    assert found.cast(plain(ids).type).equals(plain(ids))
    assert labels["segment"].to_pylist() == ["B", "A", "B"]
    # As an analyst does it: every row of the table finds its label.
    merged = table.to_pandas().merge(labels.to_pandas(), on="customer", validate="one_to_one")
    assert len(merged) == 3


@pytest.mark.parametrize("name", [name for name in IDS if "bytes" not in name])
def test_ids_of_csv_files_join_as_text(name, tmp_path):
    rule, ids = IDS[name]
    result, path, _ = made(tmp_path, rule, ids, source="csv")
    label(result, path, tmp_path / "labels.csv")
    table = pd.read_csv(path, dtype=str)
    labels = pd.read_csv(tmp_path / "labels.csv", dtype=str)
    assert labels["customer"].tolist() == table["customer"].tolist()
    assert len(table.merge(labels, on="customer", validate="one_to_one")) == 3


@pytest.mark.parametrize("name", IDS)
def test_ids_of_any_kind_fit_a_csv_file(name, tmp_path):
    rule, ids = IDS[name]
    result, path, _ = made(tmp_path, rule, ids, source="parquet")
    label(result, path, tmp_path / "labels.csv")
    written = pd.read_csv(tmp_path / "labels.csv", dtype=str)["customer"]
    if "bytes" in name:
        assert written.tolist() == [str(one) for one in UUIDS]
    elif pa.types.is_floating(ids.type):
        assert written.astype(float).tolist() == ids.to_pylist()
    else:
        assert written.tolist() == [str(value) for value in ids.to_pylist()]


def test_a_thousand_ids_with_leading_zeros(tmp_path, monkeypatch):
    monkeypatch.setattr("splitmeans.party.label_file._BATCH", 300)
    ids = [f"{number:06d}" for number in range(1, 1001)]
    result, path, _ = made(tmp_path, "integer", pa.array(ids[:3]), source="parquet")
    table = pa.table({"customer": ids, "income": [1.0] * 1000, "region": ["north"] * 1000})
    pq.write_table(table, path)
    assert label(result, path, tmp_path / "labels.parquet") == 1000
    assert pq.read_table(tmp_path / "labels.parquet")["customer"].to_pylist() == ids


@pytest.mark.parametrize("parts", [1, 200_000], ids=["row by row", "at once"])
def test_a_table_in_other_units_is_refused_and_nothing_is_written(parts, tmp_path, monkeypatch):
    """All rows would get the segment that is nearest to the bounds, without a word."""
    monkeypatch.setattr("splitmeans.party.label_file._BATCH", parts)
    rule, ids = IDS["integer: numbers"]
    result, path, table = made(tmp_path, rule, ids, source="parquet")
    cents = pa.array([700_000.0, 200_000.0, 5000.0])
    pq.write_table(table.set_column(0, "income", cents), path)
    output = tmp_path / "labels.csv"
    expected = rf"{path.name}: party 'bank', column 'income' must have at least half of the values"
    with pytest.raises(DataError, match=expected):
        label(result, path, output)
    assert not output.exists()
    assert label(result, path, output, allow_clipping=True) == 3
