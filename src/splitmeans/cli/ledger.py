"""`splitmeans ledger`: what was spent on which data, and limits on it."""

import json
import math
import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer
from rich.table import Table

from splitmeans.cli import home_backup, ledger_limits, ledger_sources
from splitmeans.cli.console import err, out
from splitmeans.cli.home import HOME_OPTION
from splitmeans.cli.ledger_limits import TOWARDS, shown_amount
from splitmeans.cli.ledger_rules import entry_words, rules_lines, rules_mapping
from splitmeans.cli.ledger_series import print_series, series_mapping
from splitmeans.errors import ParameterError
from splitmeans.plan.series import run_number
from splitmeans.plan.statement import PrivacyReport
from splitmeans.privacy.events import Relation
from splitmeans.privacy.ledger import Charge, Ledger
from splitmeans.privacy.series_ledger import SeriesLedger
from splitmeans.run.home import BUSY_SECONDS
from splitmeans.run.journal import Journal
from splitmeans.run.slots import series_of
from splitmeans.study import Study
from splitmeans.wire.slot import check_run

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="What was spent on which data, and limits on it.",
)

_ABOUT_TOWARDS = (
    "Costs of runs add up, each with the delta. A party: values elsewhere, if the server follows "
    "the rules; several parties who share what they know are one party."
)

_JSON = typer.Option(False, "--json", help="Print JSON.")

app.add_typer(ledger_sources.app, name="source")
for _command in ledger_limits.COMMANDS:
    app.command(_command.__name__.replace("_", "-"))(_command)
for _other in (ledger_sources.register, home_backup.recover, home_backup.recovered):
    app.command()(_other)


@app.command()
def show(home: Path = HOME_OPTION, as_json: bool = _JSON) -> None:
    """Show what every data source has spent, and every entry.

    Example: splitmeans ledger show --home bank
    """
    with _reading(home) as ledger:
        verified = ledger.verify()
        entries = ledger.entries()
        book = ledger.book()
        sources = {source: ledger.spent(source) for source in book.sources}
    if as_json:
        facts = _as_mapping(sources, entries, verified.head) | rules_mapping(book)
        typer.echo(json.dumps(facts, indent=1))
        return
    if not entries:
        err.print("nothing was spent, and there is no limit", markup=False)
        return
    table = Table(box=None, pad_edge=False)
    for heading in ("source", "towards", "epsilon", "delta", "limit"):
        table.add_column(heading)
    for source, spent in sources.items():
        for name, towards in TOWARDS.items():
            most = getattr(spent.limit, name, None)
            limit = "none" if most is None else f"{most:g}"
            if spent.limit is not None and name == "epsilon":
                limit += f", {spent.limit.delta:g}"
            first = (source, f"{spent.delta:g}") if name == "epsilon" else ("", "")
            table.add_row(first[0], towards, shown_amount(getattr(spent, name)), first[1], limit)
    out.print(table)
    out.print(_ABOUT_TOWARDS, soft_wrap=True)
    print_series(entries)
    for line in rules_lines(book):
        out.print(line, soft_wrap=True)
    listed = Table(box=None, pad_edge=False)
    for heading in ("no.", "time", "kind", "source", "study", "run", "what", "epsilon", "delta"):
        listed.add_column(heading, overflow="fold")
    for heading in ("party", "with server"):
        listed.add_column(heading, overflow="fold")
    for entry in entries:
        listed.add_row(
            str(entry.number),
            entry.time[:19],
            entry.kind,
            entry.source,
            (entry.study_hash or "")[:12],
            entry.run or "",
            entry_words(entry),
            f"{entry.epsilon:g}",
            f"{entry.delta:g}",
            "" if entry.party_epsilon is None else shown_amount(entry.party_epsilon),
            "" if entry.coalition_epsilon is None else shown_amount(entry.coalition_epsilon),
        )
    out.print()
    out.print(listed)


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
def add(
    source: str = typer.Argument(help="Name of the data, as `ledger show` and --source have it."),
    study: str = typer.Option(..., "--study", help="Study file, or the 64 digits of its hash."),
    run: str = typer.Option(..., "--run", help="Name of the run that was released."),
    party: str = typer.Option(..., "--party", help="Your name in the study."),
    reason: str = typer.Option(..., "--reason", help="Why it is not in the ledger; for auditors."),
    epsilon: float | None = typer.Option(None, help="What it cost; default: the study file's."),
    delta: float | None = typer.Option(None, help="The same for delta."),
    home: Path = HOME_OPTION,
) -> None:
    """Add the cost of a run that the ledger has forgotten, such as after a restored backup.

    The entry is appended like all others and marked as added. Limits do not stop it: what was
    released cannot be called back.

    Of a run of a series all of the series is added, unless it is there, and the run's slot.

    Example: splitmeans ledger add customers --study study.toml --run 2 --party bank
    --reason "home restored from the backup of 3 May" --home bank
    """
    study_hash, towards, series = study, None, None
    if not re.fullmatch("[0-9a-f]{64}", study):
        agreed = Study.read(Path(study))
        agreed.party(party)
        study_hash = agreed.hash
        if (number := run_number(agreed, run)) is not None:
            series = (agreed, number)
        if (epsilon, delta) == (None, None):
            towards = PrivacyReport.for_study(agreed).towards
        epsilon = agreed.budget.epsilon if epsilon is None else epsilon
        delta = agreed.budget.delta if delta is None else delta
    if epsilon is None or delta is None:
        raise ParameterError("--epsilon and --delta are needed with a hash; a study file has them")
    check_run(run)
    cost = Charge(relation=Relation.ADD_OR_REMOVE, epsilon=epsilon, delta=delta, towards=towards)
    facts = {"study_hash": study_hash, "run": run, "party": party, "what": reason}
    with Journal.open(home.expanduser()) as journal, journal.transaction():
        ledger = SeriesLedger(journal.connection)
        before = ledger.spent(source)
        if series is None:
            entry = ledger.add(source, cost, **facts)
        else:
            agreed, number = series
            entry = ledger.draw_slot(
                source,
                series_of(agreed),
                number,
                cost=cost,
                late=True,
                release_sha256=None,
                **facts,
            )
        spent = ledger.spent(source)
    added = f"added epsilon {epsilon:g}, delta {delta:g} to {source}"
    if before.epsilon == spent.epsilon:
        added = f"added a run of a series that {source} was charged for before"
    err.print(
        f"entry {entry.number}: {added}; spent so far: epsilon {spent.epsilon:g}, delta "
        f"{spent.delta:g}",
        markup=False,
        soft_wrap=True,
    )


@contextmanager
def _reading(home: Path) -> Iterator[Ledger]:
    """Read the ledger and change nothing, so that a run that is going on is not disturbed."""
    path = home.expanduser() / "splitmeans.sqlite"
    if not path.is_file():
        raise ParameterError(f"{path.parent} has no ledger; --home names the folder of your runs")
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=BUSY_SECONDS)
    try:
        yield Ledger(connection)
    finally:
        connection.close()


def _as_mapping(sources: Any, entries: Any, head: str) -> dict[str, Any]:
    return {
        "head": head,
        "sources": {
            source: {
                "epsilon": spent.epsilon,
                "delta": spent.delta,
                "party_epsilon": _finite(spent.party_epsilon),
                "party_relation": spent.party_relation,
                "coalition_epsilon": _finite(spent.coalition_epsilon),
                "limit": None if spent.limit is None else vars(spent.limit),
            }
            for source, spent in sources.items()
        },
        "series": series_mapping(entries),
        "entries": [
            {name: _finite(value) for name, value in vars(entry).items()} for entry in entries
        ],
    }


def _finite(value: Any) -> Any:
    """Infinity has no place in JSON; a text says that there is no bound."""
    return "no bound" if value == math.inf else value
