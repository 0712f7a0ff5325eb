"""Every option has a variable, by one rule; nothing that looks like a setting is left out."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from splitmeans import cli
from splitmeans.cli.environment import check_variables, long_name, name_variables, variable_of
from splitmeans.errors import ParameterError

GROUPS = list(cli._COMMANDS)


def commands() -> Iterator[tuple[tuple[str, ...], Any]]:
    """All commands that can be run, as the command line itself finds them."""
    group = typer.main.get_command(cli.app)

    def walk(command: Any, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
        if hasattr(command, "commands"):
            for name, one in command.commands.items():
                yield from walk(one, (*words, name))
        else:
            yield words, command

    for name in GROUPS:
        yield from walk(group.get_command(None, name), (name,))


def test_every_option_of_every_command_has_its_variable() -> None:
    n_options, seen = 0, {}
    for words, command in commands():
        for option in command.params:
            name = long_name(option)
            if name is None:
                assert option.param_type_name == "argument" or option.name == "help", option.opts
                continue
            n_options += 1
            variable = "_".join(("splitmeans", *words, name[2:])).replace("-", "_").upper()
            assert option.envvar[0] == variable
            assert seen.setdefault(variable, words) == words, "two options share a variable"
    assert n_options > 100


def run(*arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "splitmeans", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), **env},
    )


def test_a_command_takes_its_options_from_the_environment(tmp_path: Path) -> None:
    home = tmp_path / "bank"
    made = run("keys", "new", SPLITMEANS_KEYS_NEW_HOME=str(home))
    assert made.returncode == 0, made.stderr
    assert (home / "key.json").is_file()
    # The variable of this command goes before the one for all, and the command line before both.
    other = {"SPLITMEANS_HOME": str(tmp_path / "nobody")}
    shown = run("keys", "show", SPLITMEANS_KEYS_SHOW_HOME=str(home), **other)
    assert shown.stdout.strip() in made.stdout
    shown = run("keys", "show", "--home", str(home), SPLITMEANS_KEYS_SHOW_HOME="/nowhere", **other)
    assert shown.stdout.strip() in made.stdout


def test_a_misspelt_setting_is_refused() -> None:
    group = typer.main.get_command(cli.app).get_command(None, "party")
    check_variables(group, ("party",), {"SPLITMEANS_PARTY_RUN_MAILBOX": "x"})
    for name in ("SPLITMEANS_PARTY_RUN_MAILBX", "SPLITMEANS_PARTY_RUN_HELP"):
        with pytest.raises(ParameterError, match=rf"{name}, and `splitmeans party run` has no"):
            check_variables(group, ("party",), {name: "x"})
    # What an orchestrator sets for a service of that name is none of our business.
    check_variables(group, ("party",), {"SPLITMEANS_RELAY_PORT": "tcp://10.0.0.1:8443"})


def test_a_twin_without_names_is_caught() -> None:
    app = typer.Typer()

    @app.command()
    def one(given: str = typer.Option("", "--given-name")) -> None: ...

    command = typer.main.get_command(app)
    assert not command.params[0].envvar
    name_variables(command, ("one",))
    assert command.params[0].envvar == [variable_of(("one",), "--given-name")]
    assert command.params[0].envvar == ["SPLITMEANS_ONE_GIVEN_NAME"]


def test_a_password_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from splitmeans.cli.run_options import SSH_PASSWORD, SSH_PASSWORD_FILE, _ssh_password

    file = tmp_path / "password"
    file.write_text("hunter2 \n")
    monkeypatch.setenv(SSH_PASSWORD, "other")
    monkeypatch.setenv(SSH_PASSWORD_FILE, str(file))
    assert _ssh_password() == "hunter2 "
    monkeypatch.setenv(SSH_PASSWORD_FILE, str(tmp_path / "absent"))
    with pytest.raises(ParameterError, match="absent: the password file that SPLITMEANS_SSH_PASS"):
        _ssh_password()
    monkeypatch.delenv(SSH_PASSWORD_FILE)
    assert _ssh_password() == "other"
