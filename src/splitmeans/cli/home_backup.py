"""`splitmeans home`: back up a home, and put it back; `ledger recover` and `ledger recovered`."""

from pathlib import Path

import typer

from splitmeans.cli.console import err, print_text
from splitmeans.cli.home import HOME_OPTION
from splitmeans.cli.ledger_limits import writing
from splitmeans.errors import ParameterError, SplitmeansError
from splitmeans.plan.statement import PrivacyReport
from splitmeans.privacy.events import Relation
from splitmeans.privacy.ledger import Charge
from splitmeans.privacy.ledger_rules import RECOVERED
from splitmeans.result.result import Result
from splitmeans.run import backup as backups
from splitmeans.run.abandon import abandoned
from splitmeans.run.home import DATABASE
from splitmeans.run.journal import Journal
from splitmeans.run.records import RunKey
from splitmeans.run.slots import add_run
from splitmeans.study import Study
from splitmeans.wire.slot import SERVER

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
        "ledger recover --results FOLDER, splitmeans ledger add, then splitmeans ledger recovered",
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


def recover(
    results: list[Path] = typer.Option(
        ..., "--results", help="A result folder, or a folder of them; may be repeated."
    ),
    source: str = typer.Option(..., "--source", help="The data set that the runs were on."),
    home: Path = HOME_OPTION,
) -> None:
    """Add runs that the ledger has forgotten, as far as their results tell.

    Runs that failed after a release have no result: ask the others, and use `ledger add`.

    Example: splitmeans ledger recover --results bank/results --source customers --home bank
    """
    found = [one for folder in results for one in _results_in(folder.expanduser())]
    if not found:
        raise ParameterError(f"{', '.join(map(str, results))}: there is no result folder")
    with writing(home) as ledger:
        charges = ledger.book().charges
        for folder, result in found:
            party, run = str(result.facts["participant"]), str(result.facts["run"])
            if party == SERVER or (result.study.hash, run, party) in charges:
                print_text(err, f"{folder}: run {run!r} of {party!r} is in the ledger")
                continue
            if result.study.renewal is not None:
                print_text(
                    err,
                    f"{folder}: run {run!r} of {party!r} is of a series and is NOT added; add it "
                    f"with: splitmeans ledger add {source} --study {folder / 'study.toml'} --run "
                    f"{run} --party {party} --reason WHY",
                )
                continue
            budget = result.study.budget
            cost = Charge(
                relation=Relation.ADD_OR_REMOVE,
                epsilon=budget.epsilon,
                delta=budget.delta,
                towards=PrivacyReport.for_study(result.study).towards,
            )
            what = "recovered from its result"
            entry = add_run(ledger, result.study, source, cost, run=run, party=party, what=what)
            print_text(err, f"{folder}: run {run!r} of {party!r} added as entry {entry.number}")
            charges = ledger.book().charges


def recovered(
    reason: str = typer.Option(..., "--reason", help="How you know; for auditors."),
    home: Path = HOME_OPTION,
) -> None:
    """Say that a restored home has all charges again, so that it may charge.

    Example: splitmeans ledger recovered --reason "compared with the shop's results" --home bank
    """
    with writing(home) as ledger:
        if ledger.book().restored is None:
            raise ParameterError(f"{home} was not restored, or was recovered already")
        entry = ledger.act(RECOVERED, what=reason)
    print_text(err, f"entry {entry.number}: recovered ({reason})")


def _results_in(folder: Path) -> list[tuple[Path, Result]]:
    """Return the results in a folder, which may be one itself."""
    places = [path.parent for path in sorted(folder.rglob("result.json"))]
    read = []
    for place in places:
        try:
            read.append((place, Result.read(place)))
        except (SplitmeansError, OSError) as problem:
            print_text(err, f"{place}: left out ({problem})")
    return read
