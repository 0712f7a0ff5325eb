"""`splitmeans result ask`, `table` and `correlate`: what they print and refuse."""

import csv
import io
import json

import pytest

from splitmeans.cli.result_ask import _read_bins
from splitmeans.errors import ParameterError
from splitmeans.study import DetailOptions
from tests.cli.test_result_commands import run
from tests.result.small_result import small_study, write_small_result

__all__ = ["run"]


@pytest.mark.parametrize(
    ("command", "example"),
    [
        (("result", "ask"), "splitmeans result ask my-result 'SELECT segment"),
        (("result", "table"), "splitmeans result table my-result"),
        (("result", "correlate"), "splitmeans result correlate my-result"),
    ],
    ids=" ".join,
)
def test_help_has_an_example(run, command, example):
    done = run(*command, "--help")
    assert done.code == 0
    assert example in " ".join(done.out.split())


def test_ask_prints_a_table_csv_and_json(run):
    pytest.importorskip("duckdb")
    query = "SELECT segment, sum(weight) AS users FROM synopsis GROUP BY segment ORDER BY segment"
    shown = run("result", "ask", "result", query)
    assert shown.code == 0, shown.err
    assert "users low" in shown.out
    rows = list(csv.reader(io.StringIO(run("result", "ask", "result", query, "--csv").out)))
    assert rows[0] == ["segment", "users", "users low", "users high"]
    found = json.loads(run("result", "ask", "result", query, "--json").out)["rows"]
    assert [row["segment"] for row in found] == [row[0] for row in rows[1:]]
    refused = run("result", "ask", "result", "DROP TABLE synopsis")
    assert refused.code != 0
    assert "one SELECT" in refused.err


def test_table_and_correlate(run):
    cells = list(csv.DictReader(io.StringIO(run("result", "table", "result", "age", "--csv").out)))
    assert sum(float(row["users"]) for row in cells) > 0
    two = run("result", "table", "result", "bank: income", "age", "--bins", "2", "--json")
    assert {"bank: income", "users", "low", "high"} < set(json.loads(two.out)["rows"][0])
    assert "correlation" in run("result", "correlate", "result").out
    unknown = run("result", "table", "result", "height")
    assert unknown.code != 0
    assert "there is no column 'height'; the synopsis has" in unknown.err


def test_bins_are_numbers_or_edges():
    assert _read_bins(["5"], ["a", "b"]) == {"a": 5, "b": 5}
    assert _read_bins(["4", "b=1,2.5"], ["a", "b"]) == {"a": 4, "b": [1.0, 2.5]}
    assert _read_bins(["3.5"], ["a"]) == {"a": [3.5]}
    with pytest.raises(ParameterError, match="--bins must be a number of bins, or edges"):
        _read_bins(["many"], ["a"])


def test_a_table_without_intervals_says_why(run, tmp_path):
    write_small_result(tmp_path / "detailed", study=small_study(detail=DetailOptions()))
    shown = run("result", "table", "detailed", "age")
    assert shown.code == 0, shown.err
    assert "so none has an interval: the study has [detail]" in shown.out
    assert "95 %" not in shown.out
    note = json.loads(run("result", "correlate", "detailed", "--json").out)["note"]
    assert "the study has [detail]" in note
    assert "95 %" in run("result", "table", "result", "age").out
