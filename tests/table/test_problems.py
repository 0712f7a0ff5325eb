"""All that is wrong with a table is said at once: which rows, what kind, never the value."""

import datetime
import re
import sqlite3
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from splitmeans.errors import DataError
from splitmeans.study import Column, PartySpec
from splitmeans.table.checks.problems import ROWS, Problem, refuse, rows_problem, together
from splitmeans.table.checks.rows import check_rows
from splitmeans.table.options import SourceOptions
from splitmeans.table.prepare import prepare_table
from splitmeans.table.sources.open import open_source
from splitmeans.table.walk import stream

SPEC = PartySpec(
    name="bank",
    columns=(
        Column(name="age", low=0, high=100),
        Column(name="income", low=0, high=9000, missing="midpoint"),
        Column(name="region", categories=["north", "south"]),
    ),
)

KINDS = {
    "hunter2": "text that is no number",
    "1234,5": "a number with a decimal comma",
    "1.234,50": "a number with a decimal comma",
    "1,234,567": "a number with separators of thousands",
    "1,234.5": "a number with separators of thousands",
    "": "an empty text",
    "  ": "an empty text",
    "NaN": "a word for a missing value",
    "n/a": "a word for a missing value",
    "-": "a word for a missing value",
    "inf": "a word for infinity",
    "2020-02-01": "a date",
    "1.2.2020": "a date",
    "yes": "true or false",
    "12 kg": "a number with a unit or another sign",
    "€12": "a number with a unit or another sign",
    "+5": "a number with a unit or another sign",
    "12": "numbers kept as text",
    "-1e5": "numbers kept as text",
}


@pytest.mark.parametrize("text", KINDS, ids=repr)
def test_text_in_a_number_column_is_named_by_its_kind(text):
    table = {"age": ["7", text], "income": [1, 2], "region": ["north"] * 2}
    rule = f"party 'bank', column 'age' must hold numbers, found {KINDS[text]}; see row number"
    with pytest.raises(DataError, match=re.escape(rule)) as caught:
        prepare_table(SPEC, table)
    if KINDS[text] != "numbers kept as text":
        assert "see row number 1 (counting from 0)" in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("hunter2", "text that is no number"),
        ("1,5", "a number with a decimal comma"),
        (datetime.date(2020, 2, 1), "a date"),
        (pd.Timestamp("2020-02-01"), "a date"),
        (b"12", "a value that is neither number nor text"),
    ],
    ids=repr,
)
def test_one_wrong_value_in_a_column_of_objects_is_found(value, kind):
    frame = pd.DataFrame({"age": [1.5, None, value, 3], "income": 1.0, "region": "north"})
    frame["id"] = range(4)
    for check in (
        lambda: prepare_table(SPEC, frame),
        lambda: open_source(SPEC, frame, options=SourceOptions(workers=1)),
    ):
        with pytest.raises(DataError, match="2 problems") as caught:
            check()
        assert f"column 'age' must hold numbers, found {kind}; see row number 2 (" in str(
            caught.value
        )
        assert "column 'age' must not have missing values; see row number 1 (" in str(caught.value)


EVERYTHING = [
    ("id", "age", "income", "region"),
    ("u1", "41", "1000", "north"),
    ("u2", "hunter2", "1200,50", "south"),
    ("u3", "33", "", "North"),
    ("u1", "", "900", " "),
    ("u5", "34,5", "12 kEUR", "hunter2"),
]
# Each line of the error, in any order.
SAID = [
    "ids must be different .*earlier row has the same id as row number 3 ",
    "column 'age' must hold numbers, found text that is no number; see row number 1 ",
    "column 'age' must hold numbers, found a number with a decimal comma; see row number 4 ",
    "column 'age' must not have missing values; see row number 3 ",
    "column 'income' must hold numbers, found a number with a decimal comma; see row number 1 ",
    "column 'income' must hold numbers, found a number with a unit or another sign; .*number 4 ",
    "column 'region' must hold only categories .*found an empty text; see row number 3 ",
    "column 'region' must hold only categories .*differs in case or spaces alone; .*number 2 ",
    "column 'region' must hold only categories .*found another; see row number 4 ",
]


def as_csv(path: Path) -> str:
    lines = [",".join(f'"{cell}"' if "," in cell else cell for cell in row) for row in EVERYTHING]
    path.with_suffix(".csv").write_text("\n".join(lines) + "\n")
    return str(path.with_suffix(".csv"))


def as_table() -> pa.Table:
    """As text throughout; NULL where a csv file has an empty number."""
    names, *rows = EVERYTHING
    columns = [list(column) for column in zip(*rows, strict=True)]
    for number in (1, 2):
        columns[number] = [value or None for value in columns[number]]
    return pa.table([pa.array(column) for column in columns], names=list(names))


def as_parquet(path: Path) -> str:
    pq.write_table(as_table(), path.with_suffix(".parquet"), row_group_size=1)
    return str(path.with_suffix(".parquet"))


def as_arrow(path: Path) -> str:
    with pa.ipc.new_file(path.with_suffix(".arrow"), as_table().schema) as file:
        file.write_table(as_table(), max_chunksize=2)
    return str(path.with_suffix(".arrow"))


def as_sqlite(path: Path) -> str:
    with sqlite3.connect(path.with_suffix(".sqlite")) as base:
        base.execute("create table t (id text, age text, income text, region text)")
        rows = zip(*(column.to_pylist() for column in as_table().columns), strict=True)
        base.executemany("insert into t values (?, ?, ?, ?)", list(rows))
    base.close()
    return str(path.with_suffix(".sqlite"))


SOURCES = {"csv": as_csv, "parquet": as_parquet, "arrow": as_arrow, "sqlite": as_sqlite}


@pytest.fixture(params=["memory", "disk"])
def place(request, monkeypatch):
    """Small tables in memory, and as if they were large: in blocks of two rows."""
    if request.param == "disk":
        monkeypatch.setattr(stream, "ROWS_IN_MEMORY", 2)
        monkeypatch.setattr(stream, "BLOCK_ROWS", 2)
    return request.param


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.usefixtures("place")
def test_all_problems_are_said_at_once(source, tmp_path):
    data = SOURCES[source](tmp_path / "table")
    query = "select * from t" if source == "sqlite" else None
    with pytest.raises(DataError) as caught:
        open_source(SPEC, data, query=query, options=SourceOptions(workers=1))
    first, *lines = str(caught.value).splitlines()
    assert first.endswith(f"party 'bank': the table has {len(SAID)} problems:")
    for rule in SAID:
        assert sum(bool(re.match(f"- {rule}", line)) for line in lines) == 1, rule
    assert len(lines) == len(SAID)
    assert "hunter2" not in str(caught.value)


@pytest.mark.usefixtures("place")
def test_columns_that_are_wrong_hide_no_wrong_ids(tmp_path):
    table = pa.table(
        {
            "id": ["a", None, "", "a"],
            "age": [1.0, float("inf"), 2.0, None],
            "income": [1.0] * 4,
            "region": ["north"] * 4,
        }
    )
    path = tmp_path / "t.parquet"
    pq.write_table(table, path)
    with pytest.raises(DataError) as caught:
        open_source(SPEC, str(path), options=SourceOptions(workers=1))
    for rule in (
        "ids must not be missing; see row number 1 (",
        "ids must not be empty text; see row number 2 (",
        "column 'age' must hold finite numbers; see row number 1 (",
        "column 'age' must not have missing values; see row number 3 (",
    ):
        assert f"- {rule}" in str(caught.value)


def test_units_are_told_beside_other_problems(tmp_path):
    table = {
        "id": [1, 2, 3],
        "age": [400, 500, 6],
        "income": [1, 2, 3],
        "region": ["x", "north", "south"],
    }
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table(table), path)
    with pytest.raises(DataError, match="column 'age' must have at least half") as caught:
        open_source(SPEC, str(path))
    assert "column 'region' must hold only categories" in str(caught.value)
    with pytest.raises(DataError, match="column 'region' must") as caught:
        open_source(SPEC, str(path), options=SourceOptions(allow_clipping=True))
    assert "age" not in str(caught.value)


# ---- columns that are not there ----


def test_a_missing_column_lists_those_there_the_nearest_first(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("customer,Income (EUR),  region,AGE\n1,hunter2,north,5\n")
    with pytest.raises(DataError) as caught:
        open_source(SPEC, str(path))
    text = str(caught.value)
    assert "the table has 4 problems" in text
    assert re.search(r"must have the column 'age' of the study; .* it has 'AGE', ", text)
    assert re.search(
        r"must have the column 'income' of the study; .* it has 'Income \(EUR\)', ", text
    )
    assert re.search(r"must have the column 'region' of the study; .* it has '  region', ", text)
    assert "must have the id column 'id' of the study" in text
    assert "hunter2" not in text


def test_a_missing_column_hides_no_wrong_value(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("id,age,incomes,region\n1,x,5,north\n2,6,5,east\n")
    with pytest.raises(DataError, match="3 problems") as caught:
        open_source(SPEC, str(path))
    assert "it has 'incomes', " in str(caught.value)
    assert "column 'age' must hold numbers, found text" in str(caught.value)
    assert "column 'region' must hold only" in str(caught.value)


def test_a_file_without_a_line_of_names_shows_no_value(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("hunter2,41,1000,north\nhunter3,33,900,south\n")
    with pytest.raises(
        DataError, match="look like values: is the line with the names missing"
    ) as no:
        open_source(SPEC, str(path))
    assert "hunter" not in str(no.value)


def test_many_columns_are_not_all_listed():
    names = {f"column{number:03d}": [1.0] for number in range(500)}
    with pytest.raises(DataError, match="and 480 more") as caught:
        prepare_table(SPEC, names)
    assert len(str(caught.value)) < 3000


# ---- problems as such ----


@given(flags=st.lists(st.booleans(), max_size=60), cut=st.integers(0, 60))
@settings(max_examples=100, deadline=None)
def test_problems_of_parts_are_those_of_the_whole(flags, cut):
    rule = f"is wrong; see {ROWS}"
    parts = [flags[:cut], flags[cut:]]
    found = [
        problem
        for part, start in zip(parts, (0, len(parts[0])), strict=True)
        for problem in rows_problem(part, rule, first_row=start, column="x")
    ]
    assert together(found) == rows_problem(flags, rule, column="x")


def test_a_minor_problem_goes_without_saying_beside_another_of_its_column():
    minor = Problem(column="x", rule="is text", minor=True)
    other = Problem(column="x", rule="is wrong")
    elsewhere = Problem(column="y", rule="is wrong")
    assert together([minor, other]) == [other]
    assert together([minor, elsewhere]) == [minor, elsewhere]


def test_no_problem_is_no_error():
    refuse([], party="bank")
    assert check_rows(SPEC, {"age": [1], "income": [2], "region": ["north"]}).problems == ()


def test_names_with_braces_are_names():
    spec = PartySpec(name="bank", columns=(Column(name="{rows}", low=0, high=1),))
    with pytest.raises(DataError, match=r"column '\{rows\}' must not have missing .*row number 0 "):
        prepare_table(spec, {"{rows}": [None]})
