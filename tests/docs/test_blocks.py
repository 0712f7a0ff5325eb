"""Every fenced block is run, checked, or says in the page why it is neither."""

import json
import re
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from splitmeans.study import Study
from splitmeans.wire.identity import Identity

from .blocks import PAGES, REASONS, ROOT, Block, blocks_of, name_of, remark
from .test_pages import RUN_HERE
from .test_reference import all_commands

BLOCKS = [block for page in PAGES for block in blocks_of(page)]
_COMMAND = re.compile(r"(?:splitmeans|pip|make|python3?|openssl|curl|cd|mkdir) ")


def in_language(*languages: str) -> list[Any]:
    return [pytest.param(block, id=str(block)) for block in BLOCKS if block.language in languages]


def test_every_block_is_of_a_known_kind() -> None:
    known = {"bash", "python", "toml", "json", "ini", "text"}
    strange = {str(block): block.language for block in BLOCKS if block.language not in known}
    # Languages of other programs cannot be run here, and say so.
    unexplained = [
        place
        for place, block in zip(map(str, BLOCKS), BLOCKS, strict=True)
        if place in strange and (block.reason is None or not block.language)
    ]
    assert unexplained == []


def test_no_fence_is_missed() -> None:
    for page in PAGES:
        fences = re.findall(r"^ *(?:```|~~~)", page.read_text(), flags=re.MULTILINE)
        assert len(fences) == 2 * len(blocks_of(page)), name_of(page)


def test_reasons_are_few_and_known() -> None:
    given = [block.reason for block in BLOCKS if block.reason is not None]
    assert [reason for reason in given if not _known(reason)] == []
    # A page cannot opt out by a marker that is misspelt or stands elsewhere.
    marks = sum(page.read_text().count("<!-- not run:") for page in PAGES)
    assert marks == len(given)
    counts = Counter(reason.split(" from ")[0] for reason in given)
    assert sum(counts.values()) <= 41, counts


def _known(reason: str) -> bool:
    return any(re.fullmatch(pattern, reason) for pattern in REASONS)


def test_output_hides_no_command() -> None:
    for block in BLOCKS:
        if block.language == "text":
            hidden = [line for line in block.text.splitlines() if _COMMAND.match(line)]
            assert hidden == [], str(block)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_what_can_run_is_run_by_a_test(page: Path) -> None:
    if not any(block.runs for block in blocks_of(page)):
        return
    other = remark(page, "run by")
    if other is None:
        assert name_of(page) in RUN_HERE
        return
    test = ROOT / other
    assert test.is_file()
    assert page.name in test.read_text(), f"{other} does not mention {page.name}"


@pytest.mark.parametrize("block", [block for block in BLOCKS if block.reason], ids=str)
def test_what_is_shortened_is_run_in_full(block: Block) -> None:
    if not (block.reason or "").startswith("shortened from "):
        return
    full = ROOT / (block.reason or "").removeprefix("shortened from ")
    run = " ".join(part.text for part in blocks_of(full) if part.runs)
    for line in block.commands:
        if line.startswith("splitmeans "):
            name = _name(line)
            assert name in run, f"`{name}` is not run in {full.name}"


def _name(line: str) -> str:
    """Return the command of a line without options and arguments."""
    words = line.split()
    groups = {name.split()[0] for name in all_commands() if " " in name}
    return " ".join(words[:3] if words[1] in groups else words[:2])


# ---- blocks that are not run are checked as far as they can be ----


@pytest.mark.parametrize("block", in_language("bash"))
def test_commands_and_options_exist(block: Block) -> None:
    for line in block.commands:
        words = line.split("#")[0].split("|")[0].split(">")[0]
        if (found := re.match(r"\s*(?:\w+=\$\()?splitmeans (.*)", words)) is not None:
            _check_command(found[1].rstrip("&) ").split())
        if (found := re.match(r"make (\w+)", words)) is not None:
            assert re.search(rf"^{found[1]}:", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)


def _check_command(words: list[str]) -> None:
    known_names = all_commands()
    name = next((n for k in (3, 2) if (n := " ".join(words[:k])) in known_names), words[0])
    if name == "archive":  # of a result, without a verb: `cli/archive.py`
        name, words = "archive make", ["archive", "make", *words[1:]]
    if name.startswith("-"):  # options of the root command
        assert name in ("--version", "--help", "--install-completion", "--show-completion")
        return
    assert name in known_names, f"splitmeans {' '.join(words)}: there is no such command"
    command = known_names[name]
    rest = words[len(name.split()) :]
    known = {
        option
        for parameter in command.params
        for option in (*parameter.opts, *parameter.secondary_opts)
    }
    known.add("--help")
    for word in rest:
        if word.startswith("--"):
            assert word.split("=")[0] in known, f"splitmeans {' '.join(words)}: no {word}"


@pytest.mark.parametrize("block", in_language("ini"))
def test_settings_are_of_options_that_exist(block: Block) -> None:
    known = {
        variable
        for command in all_commands().values()
        for parameter in command.params
        for variable in parameter.envvar or ()
    }
    settings = [line.removeprefix("# ") for line in block.text.splitlines() if "=" in line]
    names = [line.split("=")[0] for line in settings]
    assert names
    assert [name for name in names if name not in known] == []


@pytest.mark.parametrize("block", in_language("toml"))
def test_a_study_is_a_study(block: Block) -> None:
    # A public key is too long for a page; each "smid1-..." stands for another one.
    text = re.sub(r'"smid1-\.\.\."', lambda _: f'"{Identity.new().public.to_text()}"', block.text)
    mapping = tomllib.loads(text)
    if "parties" not in mapping:  # a part of a study
        mapping = _SMALL_STUDY | mapping
    study = Study.from_mapping(mapping)
    assert Study.from_toml(study.to_toml()).hash == study.hash


_SMALL_STUDY: dict[str, Any] = {
    "name": "small",
    "n_clusters": 2,
    "budget": {"epsilon": 1.0, "delta": 1e-6},
    "parties": [
        {"name": name, "columns": [{"name": "x", "low": 0, "high": 1}]} for name in ("a", "b")
    ],
}


@pytest.mark.parametrize("block", in_language("json"))
def test_json_is_json(block: Block) -> None:
    json.loads(block.text)
