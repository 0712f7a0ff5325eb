"""Options that `party run`, `party check` and `server run` share, and the mailbox they name."""

import os
from pathlib import Path

import typer

from splitmeans.cli.console import err, print_text
from splitmeans.cli.json_log import json_log
from splitmeans.errors import ParameterError
from splitmeans.mailbox.open import SFTP, Mailbox, open_mailbox, public_url, scheme_of
from splitmeans.mailbox.retries import DEFAULT_PATIENCE, Retries
from splitmeans.study import Study
from splitmeans.wire.identity import Identity

STUDY = typer.Argument(help="The study file that all participants agreed on.")
MAILBOX = typer.Option(
    ..., "--mailbox", help="Folder, sftp:// or object store URL, or https:// of a relay."
)
RUN = typer.Option(
    None,
    "--run",
    help="Name of the run, the same at all participants; 1 by default. Of a series the number of "
    "the run, by default the next one when its time has come.",
)
PREVIOUS = typer.Option(
    None,
    "--previous",
    help="Folder with the result that a run of a series follows; by default the last one that the "
    "home keeps.",
)
RESULT = typer.Option(None, "--result", help="Folder for the result; in the home by default.")
TIMEOUT = typer.Option(
    3600.0, "--timeout", help="Seconds without news after which to stop waiting (exit code 3)."
)
PATIENCE = typer.Option(
    DEFAULT_PATIENCE,
    "--patience",
    help="Seconds to go on trying when the mailbox itself does not answer (exit code 4).",
)
CA = typer.Option(
    None, "--ca", help="PEM file of the authority to trust for a relay; the system's by default."
)
USE_PROXY = typer.Option(
    False, "--use-proxy", help="Reach a relay through the proxy that HTTPS_PROXY names."
)
SSH_KEY = typer.Option(
    None, "--ssh-key", help="Private key for SFTP; those of your agent and ~/.ssh by default."
)
KNOWN_HOSTS = typer.Option(
    None, "--known-hosts", help="File with the host's key for SFTP; ~/.ssh/known_hosts by default."
)
SSH_PASSWORD = "SPLITMEANS_SSH_PASSWORD"
SSH_PASSWORD_FILE = "SPLITMEANS_SSH_PASSWORD_FILE"


def open_chosen(
    url: str,
    *,
    participant: str,
    identity: Identity,
    ca: Path | None,
    use_proxy: bool,
    ssh_key: Path | None,
    known_hosts: Path | None,
    patience: float = DEFAULT_PATIENCE,
) -> Mailbox:
    """Open the mailbox that the options name; an option for another kind of it is refused."""
    scheme = scheme_of(url)
    files = {"key_filename": ssh_key, "known_hosts": known_hosts}
    options: dict[str, object] = {
        name: str(file.expanduser()) for name, file in files.items() if file is not None
    }
    if use_proxy and scheme != "https":
        raise ParameterError(f"--use-proxy is for relays (https://), not for {public_url(url)}")
    is_sftp = scheme in SFTP
    if options and not is_sftp:
        raise ParameterError(
            f"--ssh-key and --known-hosts are for mailboxes of sftp://, not for {public_url(url)}"
        )
    if is_sftp and (password := _ssh_password()) is not None:
        options["password"] = password  # not in the URL, where every user of the machine sees it
    return open_mailbox(
        url,
        participant=participant,
        signer=identity,
        ca=ca,
        use_proxy=use_proxy,
        options=options or None,
        retries=Retries(seconds=patience, say=say),
    )


def _ssh_password() -> str | None:
    """Return the password for SFTP, from a file where one is named, else from the environment."""
    if named := os.environ.get(SSH_PASSWORD_FILE):
        try:
            return Path(named).expanduser().read_text().rstrip("\n")
        except (OSError, UnicodeDecodeError) as problem:
            raise ParameterError(
                f"{named}: the password file that {SSH_PASSWORD_FILE} names cannot be read "
                f"({problem})"
            ) from None
    return os.environ.get(SSH_PASSWORD)


def result_folder(chosen: Path | None, home: Path, study: Study, run: str) -> Path:
    """Return where the result goes."""
    return chosen or home / "results" / f"{study.hash[:12]}-{run}"


def check_timeout(timeout: float) -> None:
    """Check --timeout."""
    if not timeout > 0:
        raise ParameterError(f"--timeout must be > 0, got {timeout!r}")


def say(text: str) -> None:
    """Tell people what happens, or programs if the log is for them."""
    json_log.tell(text)
    print_text(err, text)
