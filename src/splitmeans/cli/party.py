"""`splitmeans party run` and `splitmeans server run`: take part in a run over a mailbox."""

from functools import partial
from pathlib import Path

import typer

from splitmeans.cli.console import err
from splitmeans.cli.home import HOME_OPTION, KEY_OPTION, load_identity
from splitmeans.cli.progress import rows_progress
from splitmeans.errors import ParameterError
from splitmeans.party.source import open_source
from splitmeans.run.mailbox import open_mailbox
from splitmeans.run.party import PartyRun, run_party
from splitmeans.run.server import ServerRun, run_server
from splitmeans.study import SERVER_NAME, Study

party_app = typer.Typer(no_args_is_help=True, help="Take part in a run as a party.")
server_app = typer.Typer(no_args_is_help=True, help="Serve a run.")

_STUDY = typer.Argument(help="The study file that all participants agreed on.")
_MAILBOX = typer.Option(
    ..., "--mailbox", help="Folder, sftp:// or object store URL, or https:// of a relay."
)
_RUN = typer.Option("1", "--run", help="Name of the run, the same at all participants.")
_RESULT = typer.Option(None, "--result", help="Folder for the result; in the home by default.")
_TIMEOUT = typer.Option(
    3600.0, "--timeout", help="Seconds without news after which to stop waiting (exit code 3)."
)
_CA = typer.Option(None, "--ca", help="Certificates that a relay's certificate must come from.")


@party_app.command("run")
def run_as_party(
    study: Path = _STUDY,
    party: str = typer.Option(..., "--party", help="Your name in the study."),
    data: Path = typer.Option(..., "--data", help="Your table: .parquet, .csv, .arrow, .feather."),
    mailbox: str = _MAILBOX,
    run: str = _RUN,
    home: Path = HOME_OPTION,
    key: Path | None = KEY_OPTION,
    source: str | None = typer.Option(
        None, "--source", help="What the ledger calls this data; its file name by default."
    ),
    result: Path | None = _RESULT,
    timeout: float = _TIMEOUT,
    ca: Path | None = _CA,
    workers: int | None = typer.Option(None, "--workers", help="Processes for a large table."),
) -> None:
    """Take part in a run: check the data, agree on keys, release once, fetch the result.

    Stop it at any time; the same command goes on.

    Example: splitmeans party run study.toml --party bank --data bank.parquet --mailbox shared
    """
    agreed = Study.read(study)
    spec = agreed.party(party)
    own = home.expanduser()
    identity = load_identity(home, key)
    _check_timeout(timeout)
    with rows_progress() as progress:
        box = open_mailbox(mailbox, participant=party, signer=identity, ca=ca)
        try:
            folder = run_party(
                PartyRun(
                    study=agreed,
                    party=party,
                    run=run,
                    source=source or data.name,
                    open_table=partial(
                        open_source, spec, data, workers=workers, spool=None, progress=progress
                    ),
                    identity=identity,
                    mailbox=box,
                    result_folder=_result_folder(result, own, agreed, run),
                    say=_say,
                ),
                own,
                timeout=timeout,
            )
        finally:
            box.close()
    typer.echo(folder)


@server_app.command("run")
def run_as_server(
    study: Path = _STUDY,
    mailbox: str = _MAILBOX,
    run: str = _RUN,
    home: Path = HOME_OPTION,
    key: Path | None = KEY_OPTION,
    result: Path | None = _RESULT,
    timeout: float = _TIMEOUT,
    ca: Path | None = _CA,
) -> None:
    """Serve a run: wait for the parties, combine what they release, publish the result.

    Example: splitmeans server run study.toml --mailbox shared
    """
    agreed = Study.read(study)
    own = home.expanduser()
    identity = load_identity(home, key)
    _check_timeout(timeout)
    box = open_mailbox(mailbox, participant=SERVER_NAME, signer=identity, ca=ca)
    try:
        folder = run_server(
            ServerRun(
                study=agreed,
                run=run,
                identity=identity,
                mailbox=box,
                result_folder=_result_folder(result, own, agreed, run),
                say=_say,
            ),
            own,
            timeout=timeout,
        )
    finally:
        box.close()
    typer.echo(folder)


def _result_folder(chosen: Path | None, home: Path, study: Study, run: str) -> Path:
    return chosen or home / "results" / f"{study.hash[:12]}-{run}"


def _check_timeout(timeout: float) -> None:
    if not timeout > 0:
        raise ParameterError(f"--timeout must be > 0, got {timeout!r}")


def _say(text: str) -> None:
    err.print(text, markup=False, soft_wrap=True)
