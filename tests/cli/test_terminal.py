"""How commands behave on a terminal, in a pipe, for scripts, and under completion."""

import json
import os
import pty
import re
import select
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import splitmeans
from splitmeans.cli import main
from splitmeans.privacy.ledger import Ledger
from splitmeans.privacy.limits import Limit
from splitmeans.run.journal import Journal
from tests.result.small_result import small_study, write_small_result

SOURCES = Path(splitmeans.__file__).parents[1]

# Colour codes and the characters of which lines and boxes are drawn.
DECORATION = re.compile("\x1b\\[|[\u2500-\u259f]")


class Finished(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str


def environment(**more: str) -> dict[str, str]:
    unset = ("NO_COLOR", "FORCE_COLOR", "SPLITMEANS_HOME", "TTY_COMPATIBLE", "PY_COLORS")
    kept = {name: value for name, value in os.environ.items() if name not in unset}
    return kept | {"PYTHONPATH": str(SOURCES), "TERM": "xterm-256color"} | more


@pytest.fixture
def piped(monkeypatch, capsys, folder) -> Callable[..., Finished]:
    """Run a command in this process, whose output is no terminal."""
    monkeypatch.chdir(folder)
    for name in ("NO_COLOR", "FORCE_COLOR", "SPLITMEANS_HOME", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)

    def call(*arguments: str) -> Finished:
        monkeypatch.setattr(sys, "argv", ["splitmeans", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capsys.readouterr()
        return Finished(int(ended.value.code or 0), captured.out, captured.err)

    return call


def on_a_terminal(*arguments: str, folder: Path, columns: int = 100, code: int = 0) -> str:
    """Return what a person would see who has a terminal of the usual size."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "splitmeans", *arguments],
        cwd=folder,
        env=environment(COLUMNS=str(columns), LINES="40"),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    shown = b""
    while True:
        ready, _, _ = select.select([ours], [], [], 120)
        try:
            part = os.read(ours, 65536) if ready else b""
        except OSError:  # the other side was closed
            part = b""
        if not part:
            break
        shown += part
    os.close(ours)
    assert process.wait(timeout=60) == code
    return shown.decode()


def all_commands() -> dict[str, Any]:
    """Every command by its full name."""
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


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A result, a study and a home with a ledger, with names that look like markup."""
    place = tmp_path_factory.mktemp("terminal")
    study = small_study(name="[red]customers[/blue]")
    write_small_result(place / "result", study=study)
    (place / "study.toml").write_text(study.to_toml())
    with Journal.open(place / "home") as journal, journal.transaction():
        Ledger(journal.connection).set_limit("[red]crm[/blue]", Limit(epsilon=1.0, delta=1e-5))
    return place


SHOWN = [
    (("--help",), 0),
    (("party", "run", "--help"), 0),
    (("party", "run"), 2),
    (("nonsense",), 2),
    (("result", "show", "result"), 0),
    (("result", "explore", "result", "--ks", "2,3"), 0),
    (("study", "show", "study.toml"), 0),
    (("ledger", "show", "--home", "home"), 0),
    (("report", "result", "-o", "report.html"), 0),
]


@pytest.mark.parametrize(
    ("arguments", "code"),
    SHOWN,
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_pipe_gets_plain_text(piped, arguments, code):
    done = piped(*arguments)
    assert done.code == code, done.err
    assert not DECORATION.search(done.out + done.err)
    assert done.out if code == 0 else "--help" in done.err


def test_a_terminal_gets_lines_and_colours(folder):
    shown = on_a_terminal("result", "show", "result", folder=folder)
    assert "━" in shown
    assert "\x1b[" in shown
    assert "╭" in on_a_terminal("study", "--help", folder=folder)


def test_names_that_look_like_markup_are_text(piped):
    assert "study [red]customers[/blue]" in piped("study", "show", "study.toml").out
    assert "[red]crm[/blue]" in piped("ledger", "show", "--home", "home").out
    assert "'[red]customers[/blue]'" in piped("result", "show", "result").out


# ---- for scripts ----


def test_study_show_as_json(piped):
    shown = json.loads(piped("study", "show", "study.toml", "--json").out)
    study = splitmeans.Study.from_mapping(shown["study"])
    assert study.hash == shown["hash"]
    assert re.fullmatch(r"(\d{5} ){7}\d{5}", shown["digits"])


def test_study_check_as_json(piped):
    done = piped("study", "check", "study.toml", "--json")
    shown = json.loads(done.out)
    assert shown["total"]["epsilon"] <= 1
    assert "the study has no keys" in done.err


def test_ledger_verify_as_json(piped):
    shown = json.loads(piped("ledger", "verify", "--home", "home", "--json").out)
    assert shown["entries"] == 1
    assert re.fullmatch("[0-9a-f]{64}", shown["head"])


def test_what_shows_progress_can_be_quiet():
    quiet = {name for name, command in all_commands().items() if _has(command, "--quiet")}
    assert quiet >= {
        *("demo", "party run", "server run", "relay serve", "report", "result label"),
    }
    # Everything that prints data and is read by programs can print JSON, or writes it to a file.
    tables = {"study show", "study check", "result show", "result explore", "ledger show"}
    tables |= {"ledger verify", "report"}
    assert {name for name in tables if not _has(all_commands()[name], "--json")} == set()


def _has(command: Any, option: str) -> bool:
    return any(option in parameter.opts for parameter in command.params)


def test_quiet_silences_progress_and_not_errors(piped):
    done = piped("report", "result", "-o", "quiet.html", "--quiet")
    assert (done.code, done.err, done.out) == (0, "", "quiet.html\n")
    done = piped("report", "nowhere", "--quiet")
    assert done.code == 2
    assert "error: nowhere/result.json: there is no such file" in done.err


def test_quiet_does_not_outlive_its_command(piped):
    assert piped("report", "result", "-o", "quiet.html", "--quiet").err == ""
    assert "the study has no keys" in piped("study", "check", "study.toml").err


def test_an_interrupted_command_says_so_by_its_code(piped, monkeypatch):
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("splitmeans.result.result.Result.read", interrupted)
    assert piped("result", "show", "result").code == 130


# ---- completion ----


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("splitmeans stu", "study"),
        ("splitmeans result e", "explore"),
        ("splitmeans party run --mai", "--mailbox"),
    ],
)
def test_completion_finds_commands_and_options(piped, monkeypatch, line, expected):
    monkeypatch.setenv("_SPLITMEANS_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(line.split()) - 1))
    done = piped()
    assert (done.code, done.out.split()) == (0, [expected])


def test_completion_can_be_shown_by_the_root_command_only(tmp_path):
    shell = shutil.which("bash")
    assert shell is not None
    shim = tmp_path / "splitmeans"
    shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m splitmeans "$@"\n')
    shim.chmod(0o700)
    done = subprocess.run(
        # The second command keeps the shell from being replaced by the first.
        [shell, "-c", "splitmeans --show-completion; code=$?; exit $code"],
        env=environment(PATH=f"{tmp_path}:{os.environ['PATH']}"),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "complete -o default -F _splitmeans_completion splitmeans" in done.stdout
    assert "_SPLITMEANS_COMPLETE=complete_bash" in done.stdout
    with_completion = {
        name for name, command in all_commands().items() if _has(command, "--show-completion")
    }
    assert with_completion == set()
