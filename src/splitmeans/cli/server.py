"""`splitmeans server run`: serve a run over a mailbox."""

from functools import partial
from pathlib import Path

import typer

from splitmeans.cli.console import Quiet
from splitmeans.cli.home import HOME_OPTION, KEY_OPTION, load_identity
from splitmeans.cli.run_options import (
    CA,
    MAILBOX,
    RESULT,
    RUN,
    STUDY,
    TIMEOUT,
    check_timeout,
    result_folder,
    say,
)
from splitmeans.cli.stopping import check_stopped, goes_on
from splitmeans.rehearsal.passed import rehearse_once
from splitmeans.run.mailbox import open_mailbox
from splitmeans.run.server import ServerRun, run_server
from splitmeans.study import SERVER_NAME, Study

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Serve a run.")


@app.callback()
def _group() -> None:
    """Keep `run` a subcommand."""


@app.command("run")
def run_as_server(
    study: Path = STUDY,
    mailbox: str = MAILBOX,
    run: str = RUN,
    home: Path = HOME_OPTION,
    key: Path | None = KEY_OPTION,
    result: Path | None = RESULT,
    timeout: float = TIMEOUT,
    ca: Path | None = CA,
    quiet: Quiet = False,
) -> None:
    """Serve a run: wait for the parties, combine what they release, publish the result.

    Example: splitmeans server run study.toml --mailbox shared
    """
    goes_on()
    agreed = Study.read(study)
    own = home.expanduser()
    identity = load_identity(home, key)
    check_timeout(timeout)
    box = open_mailbox(mailbox, participant=SERVER_NAME, signer=identity, ca=ca)
    try:
        folder = run_server(
            ServerRun(
                study=agreed,
                run=run,
                identity=identity,
                mailbox=box,
                result_folder=result_folder(result, own, agreed, run),
                say=say,
                rehearse=partial(rehearse_once, agreed, own, say=say),
                going_on=check_stopped,
            ),
            own,
            timeout=timeout,
        )
    finally:
        box.close()
    typer.echo(folder)
