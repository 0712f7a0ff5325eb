"""The `splitmeans` command: data to stdout, progress and messages to stderr, exit 0 to 3."""

import sys

import typer

from splitmeans._version import __version__
from splitmeans.cli import audit, bench, demo, keys, ledger, party, relay, study
from splitmeans.cli.console import err
from splitmeans.errors import DataError, ParameterError, SplitmeansError, WaitingError

app = typer.Typer(
    name="splitmeans",
    help="Find common customer segments across organisations without pooling data.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
)
app.command("demo")(demo.demo)
app.command("audit")(audit.audit)
app.add_typer(keys.app, name="keys")
app.add_typer(study.app, name="study")
app.add_typer(party.party_app, name="party")
app.add_typer(party.server_app, name="server")
app.add_typer(relay.app, name="relay")
app.add_typer(ledger.app, name="ledger")
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
    except WaitingError as problem:
        err.print(f"stopped waiting: {problem}", style="bold yellow", markup=False, soft_wrap=True)
        sys.exit(3)
    except SplitmeansError as problem:
        err.print(f"error: {problem}", style="bold red", markup=False, soft_wrap=True)
        sys.exit(1)
