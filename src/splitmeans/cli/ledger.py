"""`splitmeans ledger`: what was spent on which data, limits on it, and whose data it is."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from splitmeans.cli.console import err, print_text
from splitmeans.cli.home import HOME_OPTION
from splitmeans.cli.ledger_shown import TOWARDS, as_mapping, print_ledger, shown_amount
from splitmeans.errors import ParameterError, SplitmeansError
from splitmeans.plan.costs import towards
from splitmeans.plan.series import run_number
from splitmeans.plan.settle import make_plan
from splitmeans.privacy.events import Relation
from splitmeans.privacy.ledger import Charge, Ledger
from splitmeans.privacy.ledger_rules import RECOVERED
from splitmeans.privacy.limits import Limit
from splitmeans.result.result import Result
from splitmeans.run.home import BUSY_SECONDS, DATABASE
from splitmeans.run.journal import Journal
from splitmeans.run.series import add_run
from splitmeans.study import Study
from splitmeans.wire.slot import SERVER, check_run

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="What was spent on which data, and limits on it.",
)

_JSON = typer.Option(False, "--json", help="Print JSON.")


@app.command()
def show(home: Path = HOME_OPTION, as_json: bool = _JSON) -> None:
    """Show what every data set has spent, and every entry.

    Example: splitmeans ledger show --home bank
    """
    with _reading(home) as ledger:
        head, entries, book = ledger.verify().head, ledger.entries(), ledger.book()
    if as_json:
        typer.echo(json.dumps(as_mapping(book, entries, head), indent=1))
    elif not entries:
        err.print("nothing was spent, and there is no limit", markup=False)
    else:
        print_ledger(book, entries)


@app.command()
def verify(home: Path = HOME_OPTION, as_json: bool = _JSON) -> None:
    """Check that no entry was changed, removed or reordered; exit 1 if one was.

    Example: splitmeans ledger verify --home bank
    """
    with _reading(home) as ledger:
        verified = ledger.verify()
    if as_json:
        typer.echo(json.dumps({"entries": verified.n_entries, "head": verified.head}))
        return
    entries = "1 entry" if verified.n_entries == 1 else f"{verified.n_entries} entries"
    typer.echo(f"{entries}, sound; head {verified.head}")


@app.command()
def limit(
    source: str = typer.Argument(help="Name of the data set, as `ledger source` declared it."),
    epsilon: float = typer.Option(
        ...,
        "--epsilon",
        help="What all runs may cost together, towards server and readers.",
    ),
    delta: float = typer.Option(..., "--delta", help="The same for delta."),
    party_epsilon: float | None = typer.Option(
        None,
        "--party-epsilon",
        help="What they may cost together towards a fellow party; default: no limit.",
    ),
    coalition_epsilon: float | None = typer.Option(
        None, "--coalition-epsilon", help="The same towards a party together with the server."
    ),
    home: Path = HOME_OPTION,
) -> None:
    """Limit what all runs on a data set may cost a user together.

    A new limit takes the place of the whole old one.

    Example: splitmeans ledger limit customers --epsilon 3 --delta 1e-5 --home bank
    """
    further = {"party_epsilon": party_epsilon, "coalition_epsilon": coalition_epsilon}
    given = {name: float(most) for name, most in further.items() if most is not None}
    chosen = Limit(epsilon=float(epsilon), delta=float(delta), **given)
    with _writing(home) as ledger:
        is_new = source not in ledger.sources()
        ledger.set_limit(source, chosen)
        spent = ledger.spent(source)
    most = "".join(f", towards {TOWARDS[name]} {amount:g}" for name, amount in given.items())
    spent_further = "".join(
        f", towards {TOWARDS[name]} {shown_amount(getattr(spent, name))}" for name in given
    )
    print_text(
        err,
        f"limit of {source}: epsilon {epsilon:g}, delta {delta:g}{most}; "
        f"spent so far: epsilon {spent.epsilon:g}, delta {spent.delta:g}{spent_further}",
    )
    if is_new:
        print_text(
            err, f"note: nothing has this name yet; it holds for runs with --source {source}"
        )


@app.command()
def source(
    name: str = typer.Argument(help="What the ledger calls the data set."),
    people: str | None = typer.Option(None, "--people", help="Whose data it is, in words."),
    also: list[str] = typer.Option(
        [], "--also", help="Another name that stands for the same people; may be repeated."
    ),
    apart: str | None = typer.Option(
        None, "--apart", help="A data set that seems to have the same people, and has others."
    ),
    reason: str | None = typer.Option(None, "--reason", help="Why --apart; for auditors."),
    home: Path = HOME_OPTION,
) -> None:
    """Declare a data set: the people whose costs are added up, wherever their rows are.

    With --also it takes over what was charged under other names. With --apart both may be spent
    side by side although a run was refused for it; whoever is in both then has both costs.

    Example: splitmeans ledger source customers --people "retail customers" --home bank
    """
    if not (people or also or apart):
        raise ParameterError("give --people to declare a data set, --also, or --apart")
    if (apart is None) != (reason is None):
        raise ParameterError("--apart needs --reason, and --reason is for --apart")
    with _writing(home) as ledger:
        if people is not None:
            ledger.act("source", source=name, what=people)
        for part in also:
            ledger.act("same", source=part, what=name)
        if apart is not None and reason is not None:
            ledger.act("apart", source=name, what=apart, note=reason)
        sets, spent = ledger.book().data_sets, ledger.spent(name)
    names = "" if not also else f", also called {', '.join(also)}"
    others = "" if apart is None else f", other people than {apart}"
    print_text(
        err,
        f"data set {name}: {sets.people.get(name, 'not declared')}{names}{others}; spent so far: "
        f"epsilon {spent.epsilon:g}, delta {spent.delta:g}",
    )


@app.command()
def recover(
    source: str | None = typer.Option(None, "--source", help="The data set that they were on."),
    results: list[Path] = typer.Option(
        [], "--results", help="A result folder, or a folder of them; may be repeated."
    ),
    study: Path | None = typer.Option(
        None, "--study", help="Study file of a run that has no result, with --run and --party."
    ),
    run: str | None = typer.Option(None, "--run", help="Name of that run."),
    party: str | None = typer.Option(None, "--party", help="Your name in its study."),
    complete: bool = typer.Option(
        False, "--complete", help="Nothing else is missing: a restored home charges again."
    ),
    reason: str | None = typer.Option(
        None, "--reason", help="Why the run is missing, or how you know; for auditors."
    ),
    home: Path = HOME_OPTION,
) -> None:
    """Add runs that were released and are missing, such as after a restored backup.

    From their results, or one by one: a run that failed after a release has no result. Limits do
    not stop it, because what was released cannot be called back.

    Example: splitmeans ledger recover --source customers --results bank/results --home bank
    """
    by_hand = (study, run, party)
    if any(by_hand) and not all(by_hand):
        raise ParameterError("--study, --run and --party go together")
    if (complete or study) and reason is None:
        raise ParameterError("--complete and --study need --reason")
    if source is None and (results or study):
        raise ParameterError("--source must name the data set that the runs were on")
    if not (results or study or complete):
        raise ParameterError("give --results, --study, or --complete if nothing is missing")
    found = [one for folder in results for one in _results_in(folder.expanduser())]
    if results and not found:
        raise ParameterError(f"{', '.join(map(str, results))}: there is no result folder")
    with _writing(home) as ledger:
        for folder, result in found:
            _add_result(ledger, folder, result, source=str(source))
        if study is not None:
            _add_by_hand(ledger, study, str(run), str(party), source=str(source), what=str(reason))
        if complete:
            if ledger.book().restored is None:
                raise ParameterError(f"{home} was not restored, or is complete already")
            entry = ledger.act(RECOVERED, what=str(reason))
            print_text(err, f"entry {entry.number}: nothing is missing ({reason})")


def _add_result(ledger: Ledger, folder: Path, result: Result, *, source: str) -> None:
    party, run = str(result.facts["participant"]), str(result.facts["run"])
    if party == SERVER or (result.study.hash, run, party) in ledger.book().charges:
        print_text(err, f"{folder}: run {run!r} of {party!r} is in the ledger")
        return
    _add(ledger, result.study, run, party, source=source, what="recovered from its result")


def _add_by_hand(
    ledger: Ledger, study: Path, run: str, party: str, *, source: str, what: str
) -> None:
    agreed = Study.read(study)
    agreed.party(party)
    check_run(run)
    _add(ledger, agreed, run, party, source=source, what=what)


def _add(ledger: Ledger, study: Study, run: str, party: str, *, source: str, what: str) -> None:
    cost = Charge(
        relation=Relation.ADD_OR_REMOVE,
        epsilon=study.budget.epsilon,
        delta=study.budget.delta,
        towards=towards(make_plan(study)),
    )
    before = ledger.spent(source)
    entry = add_run(ledger, study, source, cost, run=run, party=party, what=what)
    spent = ledger.spent(source)
    added = f"added epsilon {cost.epsilon:g}, delta {cost.delta:g} to {source}"
    if run_number(study, run) is not None and before.epsilon == spent.epsilon:
        added = f"added a run of a series that {source} was charged for before"
    print_text(
        err,
        f"entry {entry.number}: run {run!r} of {party!r}: {added}; spent so far: epsilon "
        f"{spent.epsilon:g}, delta {spent.delta:g}",
    )


def _results_in(folder: Path) -> list[tuple[Path, Result]]:
    """Return the results in a folder, which may be one itself."""
    read = []
    for place in (path.parent for path in sorted(folder.rglob("result.json"))):
        try:
            read.append((place, Result.read(place)))
        except (SplitmeansError, OSError) as problem:
            print_text(err, f"{place}: left out ({problem})")
    return read


@contextmanager
def _reading(home: Path) -> Iterator[Ledger]:
    """Read the ledger and change nothing, so that a run that is going on is not disturbed."""
    path = home.expanduser() / DATABASE
    if not path.is_file():
        raise ParameterError(f"{path.parent} has no ledger; --home names the folder of your runs")
    connection: Any = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=BUSY_SECONDS)
    try:
        yield Ledger(connection)
    finally:
        connection.close()


@contextmanager
def _writing(home: Path) -> Iterator[Ledger]:
    """Write to the ledger, in one transaction."""
    with Journal.open(home.expanduser()) as journal, journal.transaction():
        yield Ledger(journal.connection)
