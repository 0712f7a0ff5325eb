"""`splitmeans party run`: take part in a run over a mailbox."""

from functools import partial
from pathlib import Path

import typer

from splitmeans.cli.console import Quiet
from splitmeans.cli.home import HOME_OPTION, KEY_OPTION, load_identity
from splitmeans.cli.progress import rows_progress
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
from splitmeans.party.source import open_source
from splitmeans.run.mailbox import open_mailbox
from splitmeans.run.party import PartyRun, run_party
from splitmeans.study import Study

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Take part in a run as a party.")


@app.callback()
def _group() -> None:
    """Keep `run` a subcommand."""


@app.command("run")
def run_as_party(
    study: Path = STUDY,
    party: str = typer.Option(..., "--party", help="Your name in the study."),
    data: Path = typer.Option(..., "--data", help="Your table: .parquet, .csv, .arrow, .feather."),
    mailbox: str = MAILBOX,
    run: str = RUN,
    home: Path = HOME_OPTION,
    key: Path | None = KEY_OPTION,
    source: str | None = typer.Option(
        None,
        "--source",
        help="What the ledger calls this data, the same in every run on it; default: file name.",
    ),
    result: Path | None = RESULT,
    timeout: float = TIMEOUT,
    ca: Path | None = CA,
    quiet: Quiet = False,
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
    check_timeout(timeout)
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
                    result_folder=result_folder(result, own, agreed, run),
                    say=say,
                ),
                own,
                timeout=timeout,
            )
        finally:
            box.close()
    typer.echo(folder)
