"""The `splitmeans` command: data to stdout, progress and messages to stderr, exit 0, 1 or 2."""

import sys

import typer

from splitmeans._version import __version__
from splitmeans.cli import audit, bench, demo
from splitmeans.cli.console import err
from splitmeans.errors import DataError, ParameterError, SplitmeansError

app = typer.Typer(
    name="splitmeans",
    help="Find common customer segments across organisations without pooling data.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
)
app.command("demo")(demo.demo)
app.command("audit")(audit.audit)
app.add_typer(bench.app, name="bench")


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
    try:
        app()
    except (ParameterError, DataError) as problem:
        err.print(f"error: {problem}", style="bold red", markup=False, soft_wrap=True)
        err.print("hint: try the command with --help", markup=False, soft_wrap=True)
        sys.exit(2)
    except SplitmeansError as problem:
        err.print(f"error: {problem}", style="bold red", markup=False, soft_wrap=True)
        sys.exit(1)
