"""Options that `party run` and `server run` share."""

from pathlib import Path

import typer

from splitmeans.cli.console import err, print_text
from splitmeans.errors import ParameterError
from splitmeans.study import Study

STUDY = typer.Argument(help="The study file that all participants agreed on.")
MAILBOX = typer.Option(
    ..., "--mailbox", help="Folder, sftp:// or object store URL, or https:// of a relay."
)
RUN = typer.Option("1", "--run", help="Name of the run, the same at all participants.")
RESULT = typer.Option(None, "--result", help="Folder for the result; in the home by default.")
TIMEOUT = typer.Option(
    3600.0, "--timeout", help="Seconds without news after which to stop waiting (exit code 3)."
)
CA = typer.Option(
    None, "--ca", help="PEM file of the authority to trust for a relay; the system's by default."
)


def result_folder(chosen: Path | None, home: Path, study: Study, run: str) -> Path:
    """Return where the result goes."""
    return chosen or home / "results" / f"{study.hash[:12]}-{run}"


def check_timeout(timeout: float) -> None:
    """Check --timeout."""
    if not timeout > 0:
        raise ParameterError(f"--timeout must be > 0, got {timeout!r}")


def say(text: str) -> None:
    """Tell people what happens."""
    print_text(err, text)
