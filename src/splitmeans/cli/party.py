"""`splitmeans party`: check your data, and take part in a run over a mailbox."""

import contextlib
import json as json_format
from dataclasses import asdict
from functools import partial
from pathlib import Path

import typer

from splitmeans.cli.console import Quiet
from splitmeans.cli.data_options import (
    ALLOW_CLIPPING,
    DATA,
    QUERY,
    QUERY_FILE,
    SOURCE,
    chosen_query,
    source_name,
)
from splitmeans.cli.home import HOME_OPTION, KEY_OPTION, load_identity
from splitmeans.cli.json_log import LOG_FORMAT, LogFormat, json_log
from splitmeans.cli.passphrase import FD_OPTION, FILE_OPTION
from splitmeans.cli.progress import rows_progress
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
from splitmeans.run.charged_data import GivenName, would_charge
from splitmeans.run.home import SPOOL, make_folders
from splitmeans.run.notes import Note
from splitmeans.run.party import run_party
from splitmeans.run.party_run import PartyRun
from splitmeans.run.preflight import Preflight
from splitmeans.run.records import RunKey
from splitmeans.run.series import choose_run
from splitmeans.study import Study
from splitmeans.table.checks.facts import TableFacts, clipping_warning, refuse_clipped, rows_note
from splitmeans.table.options import SourceOptions
from splitmeans.table.sources.open import open_source
from splitmeans.table.sources.place import find_place

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Take part in a run as a party.")

_PARTY = typer.Option(..., "--party", help="Your name in the study.")
_REFUSE_CLIPPING = typer.Option(
    False,
    "--refuse-clipping",
    help="Do not join if more than half of a column's values lie outside the bounds, instead of a "
    "warning. Whether you join then follows from your rows.",
)
_WORKERS = typer.Option(None, "--workers", help="Processes for a large table.")


@app.command("check")
def check_data(
    study: Path = STUDY,
    party: str = _PARTY,
    data: str = DATA,
    source: str | None = SOURCE,
    query: str | None = QUERY,
    query_file: Path | None = QUERY_FILE,
    workers: int | None = _WORKERS,
    allow_clipping: bool = ALLOW_CLIPPING,
    mailbox: str | None = typer.Option(
        None, "--mailbox", help="Also check that this mailbox takes what a run would send."
    ),
    home: Path = HOME_OPTION,
    key: Path | None = KEY_OPTION,
    passphrase_file: Path | None = FILE_OPTION,
    passphrase_fd: int | None = FD_OPTION,
    result: Path | None = RESULT,
    patience: float = PATIENCE,
    ca: Path | None = CA,
    use_proxy: bool = USE_PROXY,
    ssh_key: Path | None = SSH_KEY,
    known_hosts: Path | None = KNOWN_HOSTS,
    json: bool = typer.Option(False, "--json", help="Print JSON."),
    quiet: Quiet = False,
) -> None:
    """Check your data as a run would: columns, values, ids. Sends nothing and spends nothing.

    Tells how many rows there are, how many ids look odd and how many values lie outside the study's
    bounds. Keep the numbers to yourself: they are exact. With --mailbox everything else that a run
    needs is checked as well: sizes of messages, room, disks, the result folder, the clock.

    Examples: splitmeans party check study.toml --party bank --data bank.parquet

    splitmeans party check study.toml --party bank --data bank.parquet --mailbox shared
    """
    agreed = Study.read(study)
    spec = agreed.party(party)
    # A run on a database without a name needs --source; the table can be checked without.
    has_name = source is not None or find_place(data).source
    charged_to = source_name(source, data) if has_name else None
    with (
        rows_progress() as progress,
        open_source(
            spec,
            data,
            query=chosen_query(query, query_file),
            options=SourceOptions(
                rules=agreed.id_rules,
                expected_users=agreed.assumed_users,
                notice=partial(_report, study=agreed, party=party, source=charged_to, as_json=json),
                allow_clipping=allow_clipping,
                workers=workers,
                spool=_spool(home),
                progress=progress,
            ),
        ) as table,
    ):
        rows = len(table)
        if charged_to is not None:
            given = GivenName(name=charged_to, is_chosen=source is not None)
            key_of_run = RunKey(study_hash=agreed.hash, run="1", participant=party)
            charged_to = would_charge(home.expanduser(), key_of_run, given, table)
    if mailbox is not None:
        own = home.expanduser()
        identity = load_identity(
            home, key, file=passphrase_file, fd=passphrase_fd, study=agreed, participant=party
        )
        with contextlib.closing(
            open_chosen(
                mailbox,
                participant=party,
                identity=identity,
                ca=ca,
                use_proxy=use_proxy,
                ssh_key=ssh_key,
                known_hosts=known_hosts,
                patience=patience,
            )
        ) as box:
            Preflight(
                study=agreed,
                participant=party,
                home=own,
                result_folder=result_folder(result, own, agreed, "1"),
                mailbox=box,
            ).check(rows=rows)
    if json:
        return
    for line in _to_learn(agreed, party):
        typer.echo(line)
    typer.echo(f"the study takes ids as {agreed.id_rules.type!r}; all checks passed")
    if charged_to is None:
        say("this place has no name of its own: a run needs --source, a name for the ledger")
    else:
        say(f"a run would be charged to {charged_to!r}; --source names another data set")
    say("nothing was sent, nothing was spent; the counts are exact, so keep them to yourself")


def _to_learn(study: Study, party: str) -> list[str]:
    """Say what the run would learn of the party's table, and what the study says instead."""
    from splitmeans.plan.learned import learned_lines
    from splitmeans.plan.settle import make_plan

    if study.all_public:
        return []
    learned = [line for line in learned_lines(make_plan(study)) if line.startswith(f"{party}: ")]
    said = [column.name for column in study.party(party).columns if column.is_settled]
    assumed = f"taken from the study: bounds or categories of {', '.join(said)}"
    return [
        *(f"learned by the run: {line.removeprefix(f'{party}: ')}" for line in learned),
        *([assumed] if said else []),
    ]


def _spool(home: Path) -> Path | None:
    """Return where a large table's blocks go; who has no home yet has none made by a check."""
    own = home.expanduser()
    if not own.is_dir():
        return None
    make_folders(own)
    return own / SPOOL


def _report(
    facts: TableFacts, *, study: Study, party: str, source: str | None, as_json: bool
) -> None:
    """Print how the table looks, also of one that is then refused for its units."""
    note = rows_note(facts.ids.rows, expected=study.expected_users, delta=study.budget.delta)
    if as_json:
        report = {
            "party": party,
            "study_hash": study.hash,
            "source": source,
            "rows": facts.ids.rows,
            "expected_users": study.expected_users,
            "ids": {
                "kind": facts.ids.kind,
                "type": study.id_rules.type,
                "n_odd": facts.ids.n_odd,
                "odd": facts.ids.odd,
            },
            "outside_bounds": [asdict(column) for column in facts.clipped],
            "notes": [] if note is None else [note],
        }
        typer.echo(json_format.dumps(report, indent=1))
        return
    typer.echo(f"{facts}")
    if note is not None:
        typer.echo(note)


@app.command("run")
def run_as_party(
    study: Path = STUDY,
    party: str = _PARTY,
    data: str = DATA,
    mailbox: str = MAILBOX,
    run: str | None = RUN,
    previous: Path | None = PREVIOUS,
    home: Path = HOME_OPTION,
    key: Path | None = KEY_OPTION,
    passphrase_file: Path | None = FILE_OPTION,
    passphrase_fd: int | None = FD_OPTION,
    source: str | None = SOURCE,
    query: str | None = QUERY,
    query_file: Path | None = QUERY_FILE,
    result: Path | None = RESULT,
    timeout: float = TIMEOUT,
    patience: float = PATIENCE,
    ca: Path | None = CA,
    use_proxy: bool = USE_PROXY,
    ssh_key: Path | None = SSH_KEY,
    known_hosts: Path | None = KNOWN_HOSTS,
    quiet: Quiet = False,
    log_format: LogFormat = LOG_FORMAT,
    workers: int | None = _WORKERS,
    refuse_clipping: bool = _REFUSE_CLIPPING,
) -> None:
    """Take part in a run: check the data, agree on keys, release once, fetch the result.

    Stop it at any time; the same command goes on.

    Example: splitmeans party run study.toml --party bank --data bank.parquet --mailbox shared
    """
    goes_on()
    agreed = Study.read(study)
    own = home.expanduser()
    run, chosen = choose_run(agreed, own, party, asked=run)
    json_log.begin(agreed, run=run, participant=party, quiet=quiet)
    spec = agreed.party(party)
    identity = load_identity(
        home, key, file=passphrase_file, fd=passphrase_fd, study=agreed, participant=party
    )
    check_timeout(timeout)
    if chosen:
        say(chosen)
    found: list[TableFacts] = []
    with rows_progress() as progress:
        box = open_chosen(
            mailbox,
            participant=party,
            identity=identity,
            ca=ca,
            use_proxy=use_proxy,
            ssh_key=ssh_key,
            known_hosts=known_hosts,
            patience=patience,
        )
        try:
            folder = run_party(
                PartyRun(
                    study=agreed,
                    party=party,
                    run=run,
                    source=source_name(source, data),
                    is_source_chosen=source is not None,
                    open_table=partial(
                        open_source,
                        spec,
                        data,
                        query=chosen_query(query, query_file),
                        options=SourceOptions(
                            rules=agreed.id_rules,
                            expected_users=agreed.assumed_users,
                            notice=partial(_tell, study=agreed, found=found),
                            allow_clipping=True,
                            workers=workers,
                            spool=own / SPOOL,
                            progress=progress,
                        ),
                    ),
                    identity=identity,
                    mailbox=box,
                    result_folder=result_folder(result, own, agreed, run),
                    previous=previous,
                    say=say,
                    rehearse=partial(rehearse_once, agreed, own, say=say),
                    going_on=check_stopped,
                    before_joining=partial(
                        _look, found, party=party, data=data, refuse=refuse_clipping
                    ),
                ),
                own,
                timeout=timeout,
            )
        finally:
            box.close()
    json_log.write("finished")
    typer.echo(folder)


def _tell(facts: TableFacts, *, study: Study, found: list[TableFacts]) -> None:
    """Say how the table looks; nothing that happens next follows from it."""
    found.append(facts)
    say(Note(f"checked the data: {facts.ids}", event="data_checked"))
    for column in facts.clipped:
        say(str(column))
    note = rows_note(facts.ids.rows, expected=study.expected_users, delta=study.budget.delta)
    if note is not None:
        say(f"note: {note}")
    if (warning := clipping_warning(facts)) is not None:
        say(warning)


def _look(found: list[TableFacts], *, party: str, data: str, refuse: bool) -> None:
    """Do not join with a table that is mostly out of bounds, if that was asked for (rule R12)."""
    if refuse:
        refuse_clipped(found[-1], party=party, where=find_place(data).shown)
