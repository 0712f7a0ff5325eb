"""`splitmeans home`: back up a home, put it back, end a stale run."""

from pathlib import Path

import typer

from splitmeans.cli.console import err, print_text
from splitmeans.cli.home import HOME_OPTION
from splitmeans.errors import ParameterError
from splitmeans.run import backup as backups
from splitmeans.run.ending import abandoned
from splitmeans.run.home import DATABASE
from splitmeans.run.journal import Journal
from splitmeans.run.records import RunKey
from splitmeans.study import Study

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Back up your home, put it back without spending anything twice, end a stale run.",
)


@app.command()
def backup(
    output: Path = typer.Option(..., "--output", "-o", help="File to write; never replaced."),
    without_keys: bool = typer.Option(
        False, "--without-keys", help="Leave private keys out; keep them elsewhere."
    ),
    home: Path = HOME_OPTION,
) -> None:
    """Back up ledger, approvals, results, records of people and keys; runs may go on meanwhile.

    Runs that go on, their secrets and messages that wait are never in it: nothing may go on from
    them twice. Keep the file as you keep the home.

    Example: splitmeans home backup -o bank-2026-11-17.zip --home bank
    """
    own = home.expanduser()
    if not (own / DATABASE).is_file():
        raise ParameterError(f"{own} has no {DATABASE}; --home names the folder of your runs")
    made = backups.backup(own, output.expanduser(), with_keys=not without_keys)
    print_text(
        err,
        f"wrote {output}: {made['ledger_entries']} entries of the ledger, last hash "
        f"{made['ledger_hash']}",
    )


@app.command()
def restore(
    file: Path = typer.Argument(help="What `home backup` wrote."),
    home: Path = HOME_OPTION,
) -> None:
    """Put a backup back into an empty folder, or over a home that is older.

    The home charges nothing until what was released since the backup has been added.

    Example: splitmeans home restore bank-2026-11-17.zip --home bank
    """
    manifest = backups.restore(file.expanduser(), home.expanduser())
    print_text(
        err,
        f"restored the backup of {manifest['time']} with {manifest['ledger_entries']} entries of "
        "the ledger. Nothing is charged until what was released since then is in it: splitmeans "
        "ledger recover --source NAME --results FOLDER --complete --reason WHY",
    )


@app.command()
def abandon(
    study: Path = typer.Argument(help="The study file of the run."),
    participant: str = typer.Option(..., "--party", help="Whose side; `server` for the server."),
    run: str = typer.Option(..., "--run", help="Name of the run."),
    reason: str = typer.Option("it will never be finished", "--reason", help="Why, for `status`."),
    home: Path = HOME_OPTION,
) -> None:
    """End a run that will never be finished, and erase its state and its key.

    It cannot be taken up again. What was charged stays charged.

    Example: splitmeans home abandon study.toml --party bank --run 3 --home bank
    """
    own = home.expanduser()
    if not (own / DATABASE).is_file():
        raise ParameterError(f"{own} has no {DATABASE}; --home names the folder of your runs")
    if not reason.isprintable():
        raise ParameterError("--reason must be printable text")
    agreed = Study.read(study)
    key = RunKey(study_hash=agreed.hash, run=run, participant=participant)
    with Journal.open(own) as journal:
        was_charged = abandoned(journal, key, reason=reason)
    paid = "what it released stays charged" if was_charged else "nothing was charged"
    print_text(err, f"run {run!r} of {participant!r} has ended, and its key is erased; {paid}")
