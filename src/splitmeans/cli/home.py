"""What the commands that act as a participant share: home folder and key file."""

from pathlib import Path

import typer

from splitmeans.cli.console import check_text
from splitmeans.cli.passphrase import given_passphrase
from splitmeans.errors import ParameterError
from splitmeans.run.own_keys import key_for
from splitmeans.study import Study
from splitmeans.wire.identity import Identity

KEY_FILE = "key.json"


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


def load_identity(
    home: Path,
    key: Path | None,
    *,
    file: Path | None = None,
    fd: int | None = None,
    study: Study | None = None,
    participant: str = "",
) -> Identity:
    """Read the participant's key file; for its passphrase see `given_passphrase`.

    With a study it is the key that the study has for the participant, if the home has it: the
    current one, or one from before a renewal.
    """
    path = key_file(home, key)
    if study is not None:
        path = key_for(path, study, participant)
    return Identity.load(path, passphrase=given_passphrase(path, file=file, fd=fd))
