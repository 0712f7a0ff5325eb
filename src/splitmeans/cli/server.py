"""`splitmeans server run`: serve a run over a mailbox."""

from functools import partial
from pathlib import Path

import typer

from splitmeans.cli.console import Quiet
from splitmeans.cli.home import HOME_OPTION, KEY_OPTION, load_identity
from splitmeans.cli.json_log import LOG_FORMAT, LogFormat, json_log
from splitmeans.cli.passphrase import FD_OPTION, FILE_OPTION
from splitmeans.cli.run_options import (
    CA,
    KNOWN_HOSTS,
    MAILBOX,
    PATIENCE,
    PREVIOUS,
    RESULT,
    RUN,
    SSH_KEY,
    STUDY,
    TIMEOUT,
    USE_PROXY,
    check_timeout,
    open_chosen,
    result_folder,
    say,
)
from splitmeans.cli.stopping import check_stopped, goes_on
from splitmeans.rehearsal.passed import rehearse_once
from splitmeans.run.series import choose_run
from splitmeans.run.server import ServerRun, run_server
from splitmeans.study import Study
from splitmeans.wire.slot import SERVER

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Serve a run.")


@app.callback()
def _group() -> None:
    """Keep `run` a subcommand."""


@app.command("run")
def run_as_server(
    study: Path = STUDY,
    mailbox: str = MAILBOX,
    run: str | None = RUN,
    previous: Path | None = PREVIOUS,
    home: Path = HOME_OPTION,
    key: Path | None = KEY_OPTION,
    passphrase_file: Path | None = FILE_OPTION,
    passphrase_fd: int | None = FD_OPTION,
    result: Path | None = RESULT,
    timeout: float = TIMEOUT,
    patience: float = PATIENCE,
    ca: Path | None = CA,
    use_proxy: bool = USE_PROXY,
    ssh_key: Path | None = SSH_KEY,
    known_hosts: Path | None = KNOWN_HOSTS,
    quiet: Quiet = False,
    log_format: LogFormat = LOG_FORMAT,
) -> None:
    """Serve a run: wait for the parties, combine what they release, publish the result.

    Example: splitmeans server run study.toml --mailbox shared
    """
    goes_on()
    agreed = Study.read(study)
    own = home.expanduser()
    run, chosen = choose_run(agreed, own, SERVER, asked=run)
    json_log.begin(agreed, run=run, participant=SERVER, quiet=quiet)
    identity = load_identity(
        home, key, file=passphrase_file, fd=passphrase_fd, study=agreed, participant=SERVER
    )
    check_timeout(timeout)
    if chosen:
        say(chosen)
    box = open_chosen(
        mailbox,
        participant=SERVER,
        identity=identity,
        ca=ca,
        use_proxy=use_proxy,
        ssh_key=ssh_key,
        known_hosts=known_hosts,
        patience=patience,
    )
    try:
        folder = run_server(
            ServerRun(
                study=agreed,
                run=run,
                identity=identity,
                mailbox=box,
                result_folder=result_folder(result, own, agreed, run),
                previous=previous,
                say=say,
                rehearse=partial(rehearse_once, agreed, own, say=say),
                going_on=check_stopped,
            ),
            own,
            timeout=timeout,
        )
    finally:
        box.close()
    json_log.write("finished")
    typer.echo(folder)
