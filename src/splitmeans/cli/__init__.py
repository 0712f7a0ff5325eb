"""The `splitmeans` command: data to stdout, progress and messages to stderr.

Exit codes are in `errors.exit_code` and docs/reference/cli.md.

A command's module is loaded when the command is used: much of what they need takes long to load.
"""

import importlib
import os
import sys
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from splitmeans._version import __version__
from splitmeans.cli.console import alarm, check_text, print_text
from splitmeans.cli.environment import check_variables, name_variables
from splitmeans.cli.json_log import LogFormat, json_log
from splitmeans.cli.stopping import stop_signals
from splitmeans.errors import (
    FINAL,
    LATER,
    STOPPED,
    WAITED,
    ParameterError,
    SplitmeansError,
    exit_code,
)

_NO_MEMORY = (
    "error: there is not enough memory on this machine, or less is allowed to this process; allow "
    "more, or use --workers 1 for a large table"
)

# The commands in the order of the help, each an `app` in the module of its name, with the words
# that the help has for it. They stand here too, because loading all modules takes a second.
_COMMANDS = {
    "demo": "Show a bank, an insurer and a retailer finding segments of the same customers.",
    "study": "Write, check, rehearse, show and approve a study.",
    "plan": "Expected errors, message sizes and noise of a study, before any data is touched.",
    "simulate": "Run a whole study here, with the tables of all parties, and measure what it "
    "gives.",
    "keys": "Make, show, renew and revoke your identity.",
    "party": "Take part in a run as a party.",
    "server": "Serve a run.",
    "relay": "Pass messages between participants over HTTPS.",
    "report": "Write a report: segments, sizes, map, all columns, how many segments, privacy.",
    "result": "Look at a result, explore it, label your rows.",
    "archive": "File a run away as one signed bundle, and verify such a bundle.",
    "status": "Show who is missing in which study and run, at which stage, since when.",
    "ledger": "What was spent on which data, and limits on it.",
    "home": "Back up your home, put it back without spending anything twice, end a stale run.",
}

# Commands whose processes have no work for the threads of NumPy's linear algebra: rows are shared
# among workers and by kernels. Starting such threads, and their waiting for more to do by turning
# in circles, took a tenth of a run's processor time.
_OF_RUNS = ("party", "server", "relay")

# Commands whose module has another name.
_MODULES = {"home": "home_backup"}


class _Commands(TyperGroup):
    """Finds commands by name in their modules."""

    _is_listing = False

    def list_commands(self, ctx: Any) -> list[str]:
        return list(_COMMANDS)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self._is_listing = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self._is_listing = False

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in _COMMANDS:
            return None
        if self._is_listing:
            return TyperCommand(cmd_name, help=_COMMANDS[cmd_name])
        if cmd_name in _OF_RUNS:
            os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        module = importlib.import_module(f"splitmeans.cli.{_MODULES.get(cmd_name, cmd_name)}")
        module.app.rich_markup_mode = app.rich_markup_mode
        command = typer.main.get_command(module.app)
        command.name = cmd_name
        name_variables(command, (cmd_name,))
        check_variables(command, (cmd_name,), os.environ)
        return command


app = typer.Typer(
    name="splitmeans",
    cls=_Commands,
    help="Find common customer segments across organisations without pooling data.",
    epilog="Exit codes: 0 done; 1 final, read the message; 2 mend what you gave; 3 waited too long "
    "for others; 4 may pass, try again later; 130 stopped by Ctrl-C. After 3, 4 and 130 the same "
    "command goes on.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
)


def _show_version(value: bool) -> None:
    if value:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _root(
    version: bool = typer.Option(
        False, "--version", callback=_show_version, is_eager=True, help="Show the version."
    ),
) -> None:
    pass


def main() -> None:
    """Run the command line."""
    run_app(app, "splitmeans")


def run_app(app: typer.Typer, name: str) -> None:
    """Run a command line; an error of ours becomes one line and an exit code."""
    json_log.choose(LogFormat.TEXT)
    # Boxes and colours are for people; help and usage errors are plain text in a pipe or a file.
    app.rich_markup_mode = "rich" if sys.stdout.isatty() and sys.stderr.isatty() else None
    with stop_signals() as stop:
        # What reads a table or talks to a store may turn a signal into an error of its own, so the
        # signal counts and not what came of it.
        try:
            _check_surroundings()
            app(prog_name=name)
        except SplitmeansError as problem:
            if stop.code is None:
                _show(problem)
                sys.exit(exit_code(problem))
        except SystemExit as ended:
            if stop.code is None and ended.code != STOPPED:
                raise
        except KeyboardInterrupt:
            pass
        except MemoryError as problem:
            if stop.code is None:
                _show_text(_NO_MEMORY, problem)
                sys.exit(FINAL)
        except Exception as problem:
            if stop.code is None:
                if not json_log.is_on:
                    raise
                json_log.failed(problem, code=FINAL)
                sys.exit(FINAL)
        code = stop.code or STOPPED
        if json_log.is_on:
            json_log.write("stopped", level="warning", exit_code=code)
        else:
            print_text(alarm, stop.words, style="bold yellow")
        sys.exit(code)


def _check_surroundings() -> None:
    """Refuse, in one sentence each, what would end in a traceback or in no end at all."""
    for argument in sys.argv[1:]:
        check_text("every argument", argument)
    if not {"--help", "--version"} & set(sys.argv):
        _check_current_folder()


def _check_current_folder() -> None:
    """Relative paths, of a home or a file to write, start there."""
    try:
        folder = os.getcwd()
    except FileNotFoundError:
        raise ParameterError(
            "the current folder must exist, and it was removed or moved; change to another one"
        ) from None
    check_text("the current folder", folder)


def _show(problem: SplitmeansError) -> None:
    code = exit_code(problem)
    opening, style = "error", "bold red"
    if code == WAITED:
        opening, style = "stopped waiting", "bold yellow"
    _show_text(f"{opening}: {problem}", problem, style=style)
    if code == LATER and not json_log.is_on:
        print_text(alarm, "this may pass: try the same command again later")


def _show_text(text: str, problem: BaseException, *, style: str = "bold red") -> None:
    if json_log.is_on:
        code = exit_code(problem) if isinstance(problem, SplitmeansError) else FINAL
        json_log.failed(problem, code=code)
    else:
        print_text(alarm, text, style=style)
