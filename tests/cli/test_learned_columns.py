"""Columns that the run learns, as commands write, check and show them."""

import io

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from typer.testing import CliRunner

from splitmeans.cli import app
from splitmeans.cli.ask_study import ask_for_study
from splitmeans.cli.study import parse_column
from splitmeans.errors import ParameterError
from splitmeans.study import Study

STUDY = """
name = "own units"
n_clusters = 3
expected_users = 20000
bounds = "private"
[budget]
epsilon = {epsilon}
delta = 1e-6
[[parties]]
name = "bank"
[[parties.columns]]
name = "income"
low = 0
[[parties.columns]]
name = "job"
categories = ["nurse"]
others = "open"
[[parties]]
name = "shop"
[[parties.columns]]
name = "visits"
low = 0
high = 30
"""


def run(*arguments):
    return CliRunner().invoke(app, [str(one) for one in arguments])


@pytest.fixture
def study(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(STUDY.format(epsilon=1.0))
    return path


def test_columns_on_a_command_line():
    assert parse_column("bank:income:private") == ("bank", {"name": "income", "bounds": "private"})
    assert parse_column("bank:job:open") == ("bank", {"name": "job", "categories": "open"})
    with pytest.raises(ParameterError, match="PARTY:COLUMN:private"):
        parse_column("bank:income:wide")


def test_show_and_check_say_what_is_learned(study):
    shown = run("study", "show", study).output
    assert "income, bounds learned by the run, from 0" in shown
    assert "job, nurse | others learned by the run" in shown
    checked = run("study", "check", study)
    assert checked.exit_code == 0
    assert (
        "bank: bounds of income, from 2.5 % of the budget; quantiles are off by" in checked.output
    )
    assert "bank: categories of job that more than about" in checked.output


def test_a_party_hears_what_of_its_table_is_learned(study, tmp_path):
    table = pa.table(
        {"id": np.arange(100), "income": np.arange(100.0), "job": ["nurse", "clerk"] * 50}
    )
    pyarrow.csv.write_csv(table, tmp_path / "bank.csv")
    found = run("party", "check", study, "--party", "bank", "--data", tmp_path / "bank.csv")
    assert found.exit_code == 0
    assert "learned by the run: bounds of income, from" in found.output
    assert "learned by the run: categories of job that" in found.output
    pyarrow.csv.write_csv(
        pa.table({"id": np.arange(100), "visits": np.arange(100) % 30}), tmp_path / "shop.csv"
    )
    other = run("party", "check", study, "--party", "shop", "--data", tmp_path / "shop.csv").output
    assert "taken from the study: bounds or categories of visits" in other
    assert "learned by the run" not in other


def test_a_study_says_how_many_users_it_expects(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(STUDY.format(epsilon=1.0).replace("expected_users = 20000\n", ""))
    refused = run("study", "check", path)
    assert refused.exit_code != 0
    assert "must say expected_users" in str(refused.exception)


def test_who_is_asked_for_a_study_is_asked_for_its_users(monkeypatch):
    answers = ["s", "2", "0", "1", "9e-5", "text", "n"]
    answers += ["bank", "id", "income", "", "private", "n"]
    answers += ["shop", "id", "town", "open", "n", "n"]
    answers += ["20000", "1e-6"]
    monkeypatch.setattr("sys.stdin", io.StringIO("\n".join(answers) + "\n"))
    asked = ask_for_study()
    assert (asked.expected_users, asked.budget.delta) == (20_000, 1e-6)
    assert not asked.all_public


def test_too_little_budget_is_refused_and_little_is_warned_of(study):
    study.write_text(STUDY.format(epsilon=0.2))
    assert "the bounds that the run learns will be rough" in run("study", "check", study).output
    study.write_text(STUDY.format(epsilon=0.02))
    refused = run("study", "check", study)
    assert refused.exit_code != 0
    assert not Study.read(study).all_public
