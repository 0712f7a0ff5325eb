"""`splitmeans keys`: make and show a participant's identity."""

from pathlib import Path

import typer

from splitmeans.cli.console import err
from splitmeans.cli.home import (
    HOME_OPTION,
    KEY_FILE,
    KEY_OPTION,
    key_file,
)
from splitmeans.cli.key_changes import refuse, renew, revoke
from splitmeans.cli.passphrase import FD_OPTION, FILE_OPTION, new_passphrase
from splitmeans.errors import ParameterError
from splitmeans.wire.identity import Identity

app = typer.Typer(
    no_args_is_help=True, add_completion=False, help="Make, show, renew and revoke your identity."
)
for _command in (renew, revoke, refuse):
    app.command()(_command)


@app.command()
def new(
    home: Path = HOME_OPTION,
    key: Path | None = KEY_OPTION,
    passphrase: bool = typer.Option(
        False, "--passphrase", help="Protect the file with a passphrase; asks for it."
    ),
    passphrase_file: Path | None = FILE_OPTION,
    passphrase_fd: int | None = FD_OPTION,
) -> None:
    """Make a key pair; prints the public key that goes into the study.

    Example: splitmeans keys new --home bank > bank.pub
    """
    path = key or home.expanduser() / KEY_FILE
    if path.exists():
        raise ParameterError(
            f"key file {path} exists and is never replaced; `splitmeans keys show` prints its "
            "public key; `--key FILE` makes another identity that shares the home and its ledger"
        )
    is_protected = passphrase or passphrase_file is not None or passphrase_fd is not None
    text = new_passphrase(file=passphrase_file, fd=passphrase_fd) if is_protected else None
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as problem:
        raise ParameterError(f"{path.parent}: cannot be made ({problem.strerror})") from problem
    identity = Identity.new()
    identity.save(path, passphrase=text)
    err.print(f"key file     {path}  (keep it to yourself)", markup=False, soft_wrap=True)
    err.print(f"fingerprint  {identity.public.fingerprint}", markup=False, soft_wrap=True)
    typer.echo(identity.public.to_text())


@app.command()
def show(
    home: Path = HOME_OPTION,
    key: Path | None = KEY_OPTION,
) -> None:
    """Print your public key; the fingerprint, for the phone, goes to stderr. Asks no passphrase.

    Example: splitmeans keys show --home bank
    """
    public = Identity.load_public(key_file(home, key))
    err.print(f"fingerprint  {public.fingerprint}", markup=False, soft_wrap=True)
    typer.echo(public.to_text())
