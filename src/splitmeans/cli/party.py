"""`splitmeans party`: check your data, and take part in a run over a mailbox."""

import json as json_format
from functools import partial
from pathlib import Path

import typer

from splitmeans.cli.console import Quiet
from splitmeans.cli.data_options import DATA, QUERY, QUERY_FILE, chosen_query, source_name
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
from splitmeans.party.id_facts import IdFacts
from splitmeans.party.source import open_source
from splitmeans.run.mailbox import open_mailbox
from splitmeans.run.party import PartyRun, run_party
from splitmeans.study import Study

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Take part in a run as a party.")

_PARTY = typer.Option(..., "--party", help="Your name in the study.")
_WORKERS = typer.Option(None, "--workers", help="Processes for a large table.")


@app.command("check")
def check_data(
    study: Path = STUDY,
    party: str = _PARTY,
    data: str = DATA,
    query: str | None = QUERY,
    query_file: Path | None = QUERY_FILE,
    workers: int | None = _WORKERS,
    json: bool = typer.Option(False, "--json", help="Print JSON."),
    quiet: Quiet = False,
) -> None:
    """Check your data as a run would: columns, values, ids. Sends nothing and spends nothing.

    Tells how many rows there are and how many ids look odd. Keep the numbers to yourself: they are
    exact.

    Example: splitmeans party check study.toml --party bank --data bank.parquet
    """
    agreed = Study.read(study)
    spec = agreed.party(party)
    rules = agreed.id_rules
    found: list[IdFacts] = []
    with (
        rows_progress() as progress,
        open_source(
            spec,
            data,
            query=chosen_query(query, query_file),
            rules=rules,
            notice=found.append,
            workers=workers,
            progress=progress,
        ),
    ):
        (facts,) = found
    if json:
        ids = {"kind": facts.kind, "type": rules.type, "n_odd": facts.n_odd, "odd": facts.odd}
        report = {"party": party, "study_hash": agreed.hash, "rows": facts.rows, "ids": ids}
        typer.echo(json_format.dumps(report, indent=1))
        return
    typer.echo(f"{facts}")
    typer.echo(f"the study takes ids as {rules.type!r}; all checks passed")
    say("nothing was sent, nothing was spent; the counts are exact, so keep them to yourself")


@app.command("run")
def run_as_party(
    study: Path = STUDY,
    party: str = _PARTY,
    data: str = DATA,
    mailbox: str = MAILBOX,
    run: str = RUN,
    home: Path = HOME_OPTION,
    key: Path | None = KEY_OPTION,
    source: str | None = typer.Option(
        None,
        "--source",
        help="What the ledger calls this data, the same in every run on it; default: from --data.",
    ),
    query: str | None = QUERY,
    query_file: Path | None = QUERY_FILE,
    result: Path | None = RESULT,
    timeout: float = TIMEOUT,
    ca: Path | None = CA,
    quiet: Quiet = False,
    workers: int | None = _WORKERS,
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
                    source=source_name(source, data),
                    open_table=partial(
                        open_source,
                        spec,
                        data,
                        query=chosen_query(query, query_file),
                        rules=agreed.id_rules,
                        notice=lambda facts: say(f"checked the data: {facts}"),
                        workers=workers,
                        progress=progress,
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
