"""The `splitmeans` command: data to stdout, progress and messages to stderr, exit 0 to 3.

A command's module is loaded when the command is used: much of what they need takes long to load.
"""

import importlib
import sys
from typing import Any

import typer
from typer.core import TyperGroup

from splitmeans._version import __version__
from splitmeans.cli.console import alarm, check_text, err, print_text
from splitmeans.cli.limits import check_address_space
from splitmeans.errors import DataError, ParameterError, SplitmeansError, WaitingError

# The modules that have the commands, as an `app` each, in the order of the help.
_COMMANDS = {
    "demo": "demo",
    "study": "study",
    "plan": "plan",
    "keys": "keys",
    "party": "party",
    "server": "server",
    "relay": "relay",
    "report": "report",
    "result": "result",
    "ledger": "ledger",
    "audit": "audit",
    "bench": "bench",
}


class _Commands(TyperGroup):
    """Finds commands by name in their modules."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in _COMMANDS:
            return None
        module = importlib.import_module(f"splitmeans.cli.{_COMMANDS[cmd_name]}")
        module.app.rich_markup_mode = app.rich_markup_mode
        command = typer.main.get_command(module.app)
        command.name = cmd_name
        return command


app = typer.Typer(
    name="splitmeans",
    cls=_Commands,
    help="Find common customer segments across organisations without pooling data.",
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
    """Run the command line; an error of ours becomes one line and an exit code."""
    err.quiet = False
    # Boxes and colours are for people; help and usage errors are plain text in a pipe or a file.
    app.rich_markup_mode = "rich" if sys.stdout.isatty() and sys.stderr.isatty() else None
    try:
        for argument in sys.argv[1:]:
            check_text("every argument", argument)
        if not {"--help", "--version"} & set(sys.argv):
            check_address_space()
        app(prog_name="splitmeans")
    except (ParameterError, DataError) as problem:
        print_text(alarm, f"error: {problem}", style="bold red")
        sys.exit(2)
    except MemoryError:
        print_text(
            alarm,
            "error: there is not enough memory on this machine, or less is allowed to this "
            "process; allow more, or use --workers 1 for a large table",
            style="bold red",
        )
        sys.exit(1)
    except WaitingError as problem:
        print_text(alarm, f"stopped waiting: {problem}", style="bold yellow")
        sys.exit(3)
    except SplitmeansError as problem:
        print_text(alarm, f"error: {problem}", style="bold red")
        sys.exit(1)
