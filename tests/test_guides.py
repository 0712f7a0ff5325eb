"""The guides stay true: their commands are run as they are pasted, in a folder of their own."""

import contextlib
import csv
import dataclasses
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import splitmeans
from splitmeans.study import Budget, Column, DecoyOptions, PartySpec, SketchOptions, Study

ROOT = Path(__file__).parents[1]
GUIDES = ROOT / "docs" / "guides"
REFERENCE = ROOT / "docs" / "reference"
SOURCES = Path(splitmeans.__file__).parents[1]

BLOCK = re.compile(r"^```(bash|python)\n(.*?)^```$", flags=re.DOTALL | re.MULTILINE)
FILE_NAME = re.compile(r"# (\w+\.py)\n")
SECONDS = 600  # only ends a guide that waits for ever

# The segments of the invented customers: income, savings, visits, basket.
TYPICAL = [[2000, 3000, 2, 20], [3500, 30000, 12, 35], [5000, 25000, 20, 60], [6500, 12000, 4, 120]]
BOUNDS = [9000, 50000, 30, 200]

COMMANDS = {
    "keys": ("new", "show"),
    "study": ("new", "check", "show", "approve"),
    "party": ("run",),
    "server": ("run",),
    "relay": ("serve",),
    "ledger": ("show", "verify", "limit"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """The folder of the first guide after its last command, with `python` and `splitmeans`."""
    place = tmp_path_factory.mktemp("guide")
    (place / "bin").mkdir()
    for name, arguments in (("python", ""), ("splitmeans", " -m splitmeans")):
        shim = place / "bin" / name
        shim.write_text(f'#!/bin/sh\nexec "{sys.executable}"{arguments} "$@"\n')
        shim.chmod(0o700)
    _paste(GUIDES / "two-companies.md", place)
    return place


def test_two_companies(folder):
    _check_results(folder, "bank-result", "shop-result")
    # What the guide says about the mailbox and the ledger.
    assert list((folder / "shared").iterdir())
    shown = (folder / "output.txt").read_text()
    assert re.search(r"^bank-customers +1 +1e-06 +3, 1e-05", shown, flags=re.MULTILINE)
    assert re.search(r"^2 entries, sound; head [0-9a-f]{64}$", shown, flags=re.MULTILINE)


def test_https(folder):
    if shutil.which("openssl") is None:
        pytest.skip("openssl, with which the guide makes its certificates, is not installed")
    for package in ("fastapi", "uvicorn", "httpx"):
        pytest.importorskip(package)
    _paste(GUIDES / "https.md", folder, port=_free_port())
    _check_results(folder, "bank-result-2", "shop-result-2")
    shown = (folder / "output.txt").read_text()
    assert "relay.pem: OK" in shown
    assert re.search(r"^shop-customers +2 +2e-06 +3, 1e-05", shown, flags=re.MULTILINE)
    assert "relay at https://127.0.0.1:" in (folder / "relay.log").read_text()


@pytest.mark.parametrize("group", COMMANDS)
def test_every_option_is_in_the_reference(group):
    from typer.main import get_command

    from splitmeans.cli import app

    text = (REFERENCE / "cli.md").read_text()
    commands: Any = get_command(app).get_command(None, group)  # type: ignore[attr-defined]
    assert set(commands.commands) == set(COMMANDS[group])
    for name, command in commands.commands.items():
        heading = f"## `{group} {name}`\n"
        assert heading in text
        section = text.split(heading)[1].split("\n## ")[0]
        for parameter in command.params:
            for option in parameter.opts:
                if option.startswith("--"):
                    assert f"`{option}" in section, f"{option} of {group} {name}"


@pytest.mark.parametrize("kind", [Study, Budget, PartySpec, Column, SketchOptions, DecoyOptions])
def test_every_key_of_a_study_is_in_the_reference(kind):
    text = (REFERENCE / "study.md").read_text()
    for item in dataclasses.fields(kind):
        assert f"| `{item.name}` |" in text, item.name


def _paste(page: Path, folder: Path, *, port: int = 8443) -> None:
    """Run a guide's shell blocks in order in one shell; Python blocks are saved as files."""
    script = []
    for language, block in BLOCK.findall(page.read_text()):
        if language == "bash":
            script.append(block.replace("8443", str(port)))
            continue
        name = FILE_NAME.match(block)
        assert name, "a Python block begins with the name of its file"
        (folder / name[1]).write_text(block)
    assert script
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("SPLITMEANS_")
    } | {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": str(SOURCES)}
    with (folder / "output.txt").open("w") as output:
        shell = subprocess.Popen(
            ["bash", "-e", "-c", "".join(script)],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # so that all that it started can be ended with it
        )
        try:
            code = shell.wait(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            code = None
        if code != 0:  # a script that came to its end has waited for all that it started
            with contextlib.suppress(ProcessLookupError):
                os.killpg(shell.pid, signal.SIGKILL)
            shell.wait()
    logs = [path.read_text() for path in sorted(folder.glob("*.log"))]
    assert code == 0, "\n".join([(folder / "output.txt").read_text(), *logs])


def _check_results(folder: Path, *names: str) -> None:
    results = [json.loads((folder / name / "result.json").read_text()) for name in names]
    assert results[0]["result_hash"] == results[1]["result_hash"]
    with (folder / names[0] / "centres.csv").open() as file:
        rows = sorted([float(value) for value in row[2:]] for row in list(csv.reader(file))[1:])
    for row, typical in zip(rows, TYPICAL, strict=True):
        # The noise of a run moves a centre by less than a hundredth of a column's range; the
        # segments themselves are a fifth apart.
        for value, expected, bound in zip(row, typical, BOUNDS, strict=True):
            assert abs(value - expected) < 0.05 * bound


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
