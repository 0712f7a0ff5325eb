"""The reference pages have every option, every key and every file."""

import dataclasses
import json
import re
from typing import Any

import pytest

from splitmeans import VerticalKMeans
from splitmeans.errors import StudyError
from splitmeans.plan.settle import make_plan
from splitmeans.study import (
    DEFAULT_DELTA,
    Budget,
    Column,
    DecoyOptions,
    DetailOptions,
    IdRules,
    PartySpec,
    SketchOptions,
    Study,
)
from tests.result.small_result import write_small_result
from tests.scene import make_study

from .blocks import ROOT, blocks_of

REFERENCE = ROOT / "docs" / "reference"


def all_commands() -> dict[str, Any]:
    from typer.main import get_command

    from splitmeans.cli import app

    found: dict[str, Any] = {}

    def walk(name: str, command: Any) -> None:
        if not hasattr(command, "list_commands"):
            found[name] = command
            return
        for child in command.list_commands(None):
            walk(f"{name} {child}".strip(), command.get_command(None, child))

    walk("", get_command(app))
    return found


@pytest.mark.parametrize("name", all_commands())
def test_every_option_is_in_the_reference(name):
    text = (REFERENCE / "cli.md").read_text()
    heading = f"## `{name}`\n"
    assert heading in text
    section = text.split(heading)[1].split("\n## ")[0]
    for parameter in all_commands()[name].params:
        for option in parameter.opts:
            if option.startswith("--") and option != "--help":
                assert f"`{option}" in section, f"{option} of {name}"


def test_every_command_of_the_reference_exists():
    text = (REFERENCE / "cli.md").read_text()
    headings = {line[4:-1] for line in text.splitlines() if line.startswith("## `")}
    assert headings == set(all_commands())


def test_every_exit_code_is_documented():
    text = (REFERENCE / "cli.md").read_text().split("## Exit codes")[1].split("\n## ")[0]
    for code in (0, 1, 2, 3, 4, 130):
        assert f"| {code} |" in text


@pytest.mark.parametrize(
    "kind", [Study, Budget, PartySpec, Column, SketchOptions, DecoyOptions, DetailOptions, IdRules]
)
def test_every_key_of_a_study_is_in_the_reference(kind):
    text = (REFERENCE / "study.md").read_text()
    for item in dataclasses.fields(kind):
        assert f"| `{item.name}` |" in text, item.name


def test_the_weights_of_the_reference_are_those_that_a_run_takes():
    """The page said up to 100, and a plan refused more than 45."""
    rows = (REFERENCE / "study.md").read_text().splitlines()
    (row,) = (row for row in rows if row.startswith("| `weight` |"))
    low, high = map(float, re.search(r"from ([\d.]+) to ([\d.]+);", row).groups())
    for weight in (low, high):
        make_plan(make_study(columns=(Column(name="x", low=0, high=1, weight=weight),)))
    for weight in (low / 2, high + 1):
        with pytest.raises(StudyError, match=f"between {low:g} and {high:g}"):
            Column(name="x", low=0, high=1, weight=weight)


def test_one_default_delta_everywhere():
    """In the command that writes studies, in the estimator and on the page."""
    assert VerticalKMeans().delta == DEFAULT_DELTA
    (option,) = (one for one in all_commands()["study new"].params if one.name == "delta")
    assert option.default == DEFAULT_DELTA
    text = (REFERENCE / "cli.md").read_text()
    (written,) = re.findall(r"\| `--epsilon`, `--delta` \| 1, (\S+) \|", text)
    assert float(written) == DEFAULT_DELTA


def test_every_file_and_key_of_a_result_is_in_the_reference(tmp_path):
    folder = write_small_result(tmp_path / "result")
    text = (REFERENCE / "files.md").read_text()
    for path in folder.iterdir():
        assert f"`{path.name}`" in text
    saved = json.loads((folder / "result.json").read_text())
    section = text.split("## result.json")[1].split("\n## ")[0]
    for key in saved:
        assert f"`{key}`" in section, key
    facts = json.loads((folder / "certificate.json").read_text())
    page = (ROOT / "docs" / "concepts" / "certificate.md").read_text(encoding="utf-8")
    for key in facts:
        assert f"`{key}`" in page, key
    (example,) = (block for block in blocks_of(REFERENCE / "files.md") if block.language == "json")
    assert set(json.loads(example.text)) <= set(saved)


def test_the_privacy_officer_is_told_the_default_delta() -> None:
    page = (ROOT / "docs" / "guides" / "privacy-officer.md").read_text(encoding="utf-8")
    assert f"The default is {DEFAULT_DELTA:g}," in page
