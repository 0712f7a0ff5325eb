"""`splitmeans report` and `splitmeans result`: what they print, write and refuse."""

import csv
import dataclasses
import json
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from splitmeans.cli import main
from splitmeans.cli.result_options import parse_ks
from splitmeans.errors import ParameterError
from splitmeans.study import Column
from tests.result.small_result import small_study, write_small_result


class Finished(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def run(monkeypatch, capsys, tmp_path) -> Callable[..., Finished]:
    """Run a command in this process, in a folder that has a small result."""
    write_small_result(tmp_path / "result")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setenv("TERM", "dumb")

    def call(*arguments: str) -> Finished:
        monkeypatch.setattr(sys, "argv", ["splitmeans", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        return Finished(int(ended.value.code or 0), captured.out, captured.err)

    return call


# Two users of the first bank cluster, one of the second.
BANK = pa.table(
    {
        "customer": [7, 8, 9],
        "income": [2000.0, 2100.0, 6000.0],
        "region": ["north", "north", "south"],
        "unused": ["a", "b", "c"],
    }
)


# ---- help ----


@pytest.mark.parametrize(
    ("command", "example"),
    [
        (("report",), "Example: splitmeans report my-result -o report.html"),
        (("result", "show"), "Example: splitmeans result show my-result"),
        (("result", "explore"), "splitmeans result explore my-result --synthetic 10000"),
        (("result", "label"), "splitmeans result label my-result --party bank"),
    ],
    ids=" ".join,
)
def test_help_has_an_example(run, command, example):
    done = run(*command, "--help")
    assert done.code == 0
    assert example in " ".join(done.out.split())


# ---- result show ----


@pytest.mark.parametrize(
    "command", [("show", "result"), ("show", "result", "--k", "3"), ("explore", "result", "--k=3")]
)
def test_sizes_come_with_what_their_intervals_are_for(run, command):
    done = run("result", *command)
    assert "95 % from" in done.out
    assert "for the number of users who are nearer to the segment's centre" in done.out
    record = json.loads(run("result", *command, "--json").out)
    assert "nearer to the segment's centre" in record["intervals"]
    for segment in record["segments"]:
        low, high = segment["size_interval"]
        assert low <= segment["size"] <= high
    low, high = record["users_interval"]
    assert low < record["users"] < high


def test_show_prints_segments_largest_first(run):
    done = run("result", "show", "result")
    assert done.code == 0, done.err
    lines = [line.split() for line in done.out.splitlines()]
    assert ["column", "mean", "A", "B"] in lines
    assert ["users", "(noisy)", "900", "600", "300"] in lines
    assert ["bank:", "income", "3,333", "2,000", "6,000"] in lines
    assert ["insurer:", "age", "56", "48", "72"] in lines
    # Not a terminal: no lines around cells.
    assert "│" not in done.out


def test_show_as_json(run):
    done = run("result", "show", "result", "--json")
    assert done.code == 0
    read = json.loads(done.out)
    assert read["published"] is True
    assert [item["segment"] for item in read["segments"]] == ["A", "B"]
    assert [item["size"] for item in read["segments"]] == [600, 300]
    assert read["segments"][0]["centre"] == pytest.approx([2000, 1, 0, 48], abs=1e-6)


@pytest.mark.parametrize(
    ("low", "high"), [(0.0, 1.7e308), (-8e307, 9e307), (1e-300, 2e-300), (1e16, 1e16 + 1024)]
)
@pytest.mark.filterwarnings("error")
def test_means_of_columns_at_the_ends_of_floats(run, tmp_path, low, high):
    """Sums of users times values overflow long before the values do."""
    study = small_study()
    bank = dataclasses.replace(
        study.parties[0],
        columns=(Column(name="income", low=low, high=high), *study.parties[0].columns[1:]),
    )
    changed = dataclasses.replace(study, parties=(bank, *study.parties[1:]))
    write_small_result(tmp_path / "wide", study=changed)

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    done = run("result", "show", "wide", "--json")
    read = json.loads(done.out, parse_constant=refuse)
    # 600 users at a quarter of the range, 300 at three quarters.
    share = (600 / 4 + 300 * 3 / 4) / 900
    assert read["means"] == pytest.approx(
        [low * (1 - share) + high * share, 2 / 3, 1 / 3, 56], rel=1e-12
    )
    for command in (("result", "show"), ("result", "explore"), ("report",)):
        assert run(*command, "wide").code == 0


def test_show_another_number(run):
    read = json.loads(run("result", "show", "result", "--k", "3", "--json").out)
    assert read["published"] is False
    assert [item["size"] for item in read["segments"]] == [400, 300, 200]


# ---- result explore ----


def test_explore_compares_numbers(run):
    done = run("result", "explore", "result", "--ks", "2-3")
    assert done.code == 0
    rows = [line.split() for line in done.out.splitlines()]
    assert [row[0] for row in rows if row and row[0].isdigit()] == ["2", "3"]
    assert "published" in done.out
    assert "suggested" in done.out
    read = json.loads(run("result", "explore", "result", "--ks", "2,3", "--json").out)
    assert read["ks"] == [2, 3]
    assert read["published"] == 2
    assert read["suggested"] in (2, 3)


def test_explore_one_number_says_where_its_users_come_from(run):
    done = run("result", "explore", "result", "--k", "3")
    assert done.code == 0
    lines = [line.split() for line in done.out.splitlines()]
    # C was split off A.
    assert ["C", "100%"] in lines
    assert json.loads(run("result", "explore", "result", "--k", "3", "--json").out)["k"] == 3


@pytest.mark.parametrize("name", ["rows.parquet", "rows.csv"])
def test_synthetic_rows(run, tmp_path, name):
    done = run("result", "explore", "result", "--synthetic", "50", "-o", name, "--seed", "1")
    assert (done.code, done.out) == (0, f"{name}\n")
    path = tmp_path / name
    rows = pq.read_table(path) if name.endswith("parquet") else pyarrow.csv.read_csv(path)
    assert rows.column_names == ["bank: income", "bank: region", "insurer: age"]
    assert rows.num_rows == 50
    assert set(rows["bank: region"].to_pylist()) <= {"north", "south"}


# ---- result label ----


def labels_of(path: Path) -> dict[str, dict[str, str]]:
    if path.suffix == ".csv":
        with path.open() as file:
            return {row["customer"]: row for row in csv.DictReader(file)}
    return {str(row["customer"]): row for row in pq.read_table(path).to_pylist()}


@pytest.mark.parametrize("source", ["bank.parquet", "bank.csv", "bank.feather"])
@pytest.mark.parametrize("target", ["labels.parquet", "labels.csv"])
def test_label_gives_probabilities(run, tmp_path, source, target):
    path = tmp_path / source
    if source.endswith("parquet"):
        pq.write_table(BANK, path)
    elif source.endswith("csv"):
        pyarrow.csv.write_csv(BANK, path)
    else:
        pyarrow.feather.write_feather(BANK, path, compression="uncompressed")
    done = run("result", "label", "result", "--party", "bank", "--data", source, "-o", target)
    assert done.code == 0, done.err
    assert done.out == f"{target}\n"
    assert "labelled 3 rows" in done.err
    rows = labels_of(tmp_path / target)
    assert set(rows) == {"7", "8", "9"}
    assert [rows[key]["segment"] for key in ("7", "8", "9")] == ["A", "A", "B"]
    for row in rows.values():
        shares = [float(row[name]) for name in ("segment A", "segment B")]
        assert sum(shares) == pytest.approx(1)
        assert float(row["probability"]) == max(shares)
    # As sensitive as the rows.
    assert stat.S_IMODE((tmp_path / target).stat().st_mode) == 0o600


def test_label_in_parts_is_the_same(run, tmp_path, monkeypatch):
    pq.write_table(BANK, tmp_path / "bank.parquet")
    base = ("result", "label", "result", "--party", "bank", "--data", "bank.parquet", "-o")
    run(*base, "whole.parquet")
    monkeypatch.setattr("splitmeans.party.label_file._BATCH", 2)
    run(*base, "parts.parquet")
    assert pq.read_table("whole.parquet").equals(pq.read_table("parts.parquet"))


def test_label_with_another_number(run, tmp_path):
    pq.write_table(BANK, tmp_path / "bank.parquet")
    run(
        *("result", "label", "result", "--party", "bank", "--data", "bank.parquet"),
        *("-o", "labels.parquet", "--k", "3"),
    )
    rows = labels_of(tmp_path / "labels.parquet")
    # Of the first bank cluster's 600 users, 400 are young (A) and 200 old (C).
    assert float(rows["7"]["segment A"]) == pytest.approx(2 / 3)
    assert float(rows["7"]["segment C"]) == pytest.approx(1 / 3)


def test_bad_rows_are_named_by_number_never_by_value(run, tmp_path):
    bad = BANK.set_column(1, "income", pa.array([2000.0, None, 6000.0]))
    pq.write_table(bad, tmp_path / "bank.parquet")
    (tmp_path / "labels.parquet").write_text("older labels")
    done = run(
        *("result", "label", "result", "--party", "bank", "--data", "bank.parquet"),
        *("-o", "labels.parquet"),
    )
    assert done.code == 2
    assert "bank.parquet: party 'bank', column 'income' must not have missing values" in done.err
    assert "2000" not in done.err
    # Nothing half-written, and what was there is still there.
    assert (tmp_path / "labels.parquet").read_text() == "older labels"
    assert not list(tmp_path.glob(".labels*"))


# ---- report ----


def test_report_writes_one_page_and_its_data(run, tmp_path):
    done = run(
        *("report", "result", "-o", "page.html", "--json", "data.json", "--ks", "2-3"),
        *("--name", "A=saving north", "--title", "Our segments", "--quiet"),
    )
    assert done.code == 0, done.err
    assert (done.out, done.err) == ("page.html\n", "")
    page = (tmp_path / "page.html").read_text()
    assert "<h1>Our segments</h1>" in page
    assert "saving north" in page
    data = json.loads((tmp_path / "data.json").read_text())
    assert data["title"] == "Our segments"
    assert [item["k"] for item in data["segmentations"]] == [2, 3]


# ---- bad arguments ----


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("result", "show", "nowhere"), "error: nowhere/result.json: there is no such file"),
        (("result", "explore", "result", "--ks", "1-3"), "error: --ks must be from 2 to 200"),
        (("result", "explore", "result", "--synthetic", "5"), "error: --synthetic and --output"),
        (("result", "explore", "result", "-o", "rows.csv"), "error: --synthetic and --output"),
        (
            ("result", "explore", "result", "--synthetic", "5", "-o", "rows.xlsx"),
            "error: rows.xlsx: the file must end in .parquet or .csv",
        ),
        (
            ("result", "label", "result", "--party", "bank", "--data", "x.parquet", "-o", "l.csv"),
            "error: x.parquet: ",
        ),
        (
            ("result", "label", "result", "--party", "shop", "--data", "x.csv", "-o", "l.csv"),
            "error: study 'bank and insurer' has no party 'shop'",
        ),
        (("report", "result", "-o", "no/where.html"), "error: no/where.html: cannot be written"),
        (("result", "explore", "result", "--k", "500"), "error: k must be at most"),
        (("report", "result", "--name", "families"), "error: --name must be a letter and a name"),
        (("report", "result", "--name", "Z=nobody"), "error: there is no segment 'Z' to name"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_is_refused_is_one_line_and_exit_2(run, tmp_path, arguments, message):
    done = run(*arguments)
    assert done.code == 2
    assert done.out == ""
    lines = done.err.strip().splitlines()
    assert any(line.startswith(message) for line in lines), done.err
    assert {path.name for path in tmp_path.iterdir()} == {"result"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [("2-4", [2, 3, 4]), ("8,4", [4, 8]), ("2-3, 3-5", [2, 3, 4, 5]), ("7", [7])],
)
def test_numbers_of_segments(text, expected):
    assert parse_ks(text) == expected


@pytest.mark.parametrize("text", ["", "a", "2-", "-3", "5-2", "0", "2-9999", "2;3", "1e3"])
def test_numbers_that_are_none(text):
    with pytest.raises(ParameterError, match="--ks must be"):
        parse_ks(text)
