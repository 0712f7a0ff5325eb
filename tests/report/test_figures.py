"""Numbers as people read them: never -0, never a rounding error, columns as people count them."""

import dataclasses
import re

import numpy as np
import pytest
from typer.testing import CliRunner

from splitmeans import figures
from splitmeans.cli import app
from splitmeans.plan.settle import make_plan
from splitmeans.report.build import build_report
from splitmeans.report.html import render
from splitmeans.result.result import Result
from splitmeans.study import Column
from splitmeans.study.features import Feature, bounds_of, to_own_units
from tests.result.small_result import GRID, small_message, small_study, write_message

# "-0", "-0.00", "-0%", "-1.1e-16": nothing that a person should see.
ODD = re.compile(
    r"(?<![\w.,-])-0(?:[.,]0+)?(?:\s?%)?(?![\d.,]*[1-9])(?![\w.])|\de-1[2-9]|\de-[23]\d"
)


@pytest.mark.parametrize(
    "text", ["-0", "-0.00", " -0%", ">-0\u202f%<", "-1.11e-16", '"x": -0.0,', "2e-17"]
)
def test_the_pattern_finds_what_it_should(text):
    assert ODD.search(text)


@pytest.mark.parametrize("text", ["-0.01", "10-0.5", "2026-01-31", "1e-05", "-0.001 %", "a-0"])
def test_the_pattern_leaves_the_rest(text):
    assert not ODD.search(text)


@pytest.mark.parametrize("value", [-0.0, -1e-17, -1e-300, 0.0])
def test_zero_has_no_sign(value):
    assert figures.fixed(value, 2) == "0.00"
    assert figures.users(value) == "0"
    assert figures.percent(value) == "0%"
    assert figures.percent(value, 1, space=" ") == "0.0 %"
    assert figures.number(-0.0) == figures.digits(-0.0, 4) == "0"


def test_own_units_are_within_bounds_and_without_rounding_errors():
    feature = Feature(name="share", low=0.0, high=1.0, weight=2**-0.5)
    end = bounds_of((feature,))[0] / GRID
    beyond = np.array([[-end * (1 + 1e-15)], [end * (1 + 1e-15)], [-end]])
    assert to_own_units((feature,), beyond).tolist() == [[0.0], [1.0], [0.0]]
    balance = Feature(name="balance", low=-1.0, high=1.0, weight=1.0)
    own = to_own_units((balance,), np.array([[-1.11e-16], [1e-3]]))
    assert own[0, 0] == 0.0
    assert own[1, 0] == pytest.approx(1e-3)
    # In a column of tiny numbers a tiny number is a number.
    tiny = Feature(name="tiny", low=-1e-15, high=1e-15, weight=1.0)
    assert to_own_units((tiny,), np.array([[0.5]]))[0, 0] == pytest.approx(5e-16)


@pytest.fixture
def odd_result(tmp_path):
    """A balance whose mean is a rounding error in A and a little below zero in B."""
    study = small_study()
    bank, insurer = study.parties
    columns = (Column(name="balance", low=-100, high=100), *bank.columns[1:])
    parties = (dataclasses.replace(bank, columns=columns), insurer)
    plan = make_plan(dataclasses.replace(study, parties=parties))
    message = small_message(plan)
    centres = message.centres.copy()
    centres[:, 0] = -1.11e-16, -0.00001
    centres[:, 1] *= 1 + 1e-15  # a share a rounding error beyond its end
    odd = dataclasses.replace(message, centres=centres)
    return Result.read(write_message(tmp_path / "result", plan, odd))


def test_no_odd_number_is_shown_anywhere(odd_result):
    folder = str(odd_result.folder)
    page = render(build_report(odd_result))
    texts = {
        "centres.csv": (odd_result.folder / "centres.csv").read_text(),
        "result.json centres": str(odd_result.published.centres.tolist()),
        "notebook": re.sub(r"<[^>]*>", " ", odd_result._repr_html_()),
        "report": re.sub(r"<(script|style)[^>]*>.*?</\1>|<[^>]*>", " ", page, flags=re.DOTALL),
        "report data": build_report(odd_result).to_json(),
    }
    for arguments in (
        ("show", folder),
        ("show", folder, "--json"),
        ("explore", folder, "--k", "3"),
    ):
        done = CliRunner().invoke(app, ["result", *arguments], env={"COLUMNS": "200"})
        assert done.exit_code == 0, done.output
        texts[" ".join(("result", *arguments))] = done.output
    found = {name: ODD.search(text) for name, text in texts.items()}
    assert {name: hit[0] for name, hit in found.items() if hit} == {}


def test_columns_are_counted_as_people_do(odd_result):
    assert odd_result.synopsis.n_columns == 3
    assert "3 columns of bank, insurer" in repr(odd_result)
    assert "3 columns of 2 parties" in repr(odd_result.synopsis)
    page = render(build_report(odd_result))
    assert "in 3 columns (4 with their categories) of 2 organisations" in page
