"""What the commands that act as a participant share: home folder, key file, passphrase."""

import os
import sys
from functools import partial
from pathlib import Path

import typer

from splitmeans.cli.console import check_text
from splitmeans.cli.stopping import asked
from splitmeans.errors import ParameterError
from splitmeans.wire.identity import Identity

KEY_FILE = "key.json"
PASSPHRASE = "SPLITMEANS_PASSPHRASE"


def _check_home(home: Path) -> Path:
    check_text("the home folder", str(home.expanduser()))
    return home


HOME_OPTION = typer.Option(
    Path("~/.splitmeans"),
    "--home",
    callback=_check_home,
    envvar="SPLITMEANS_HOME",
    help="Your own folder: key, ledger, and what must survive a crash.",
)
KEY_OPTION = typer.Option(None, "--key", help="Key file; key.json in the home folder by default.")


def key_file(home: Path, key: Path | None) -> Path:
    """Return the participant's key file, which must be there."""
    path = key or home.expanduser() / KEY_FILE
    if not path.exists():
        raise ParameterError(
            f"{path}: there is no key file; make one with `splitmeans keys new`, or name its "
            "folder with --home"
        )
    return path


def load_identity(home: Path, key: Path | None) -> Identity:
    """Read the participant's key file."""
    path = key_file(home, key)
    return Identity.load(path, passphrase=given_passphrase(path))


def given_passphrase(path: Path) -> str | None:
    """Return the passphrase of a key file that has one, from the environment or from a person."""
    if not Identity.is_protected(path):
        return None
    text = os.environ.get(PASSPHRASE)
    if text is not None:
        return text
    if not sys.stdin.isatty():
        raise ParameterError(f"{path} has a passphrase; set the variable {PASSPHRASE}")
    ask = partial(typer.prompt, f"Passphrase of {path}", hide_input=True, err=True)
    given: str = asked(ask, instead=f"no passphrase of {path}; or set the variable {PASSPHRASE}")
    return given


def new_passphrase() -> str:
    """Return a passphrase for a new key file."""
    text = os.environ.get(PASSPHRASE)
    if text is not None:
        return text
    if not sys.stdin.isatty():
        raise ParameterError(f"--passphrase needs a terminal or the variable {PASSPHRASE}")
    ask = partial(typer.prompt, "Passphrase", hide_input=True, confirmation_prompt=True, err=True)
    chosen: str = asked(ask, instead=f"no passphrase; or set the variable {PASSPHRASE}")
    return chosen
