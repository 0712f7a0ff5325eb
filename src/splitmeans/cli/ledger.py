"""`splitmeans ledger`: what was spent on which data, and limits on it."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer
from rich.table import Table

from splitmeans.cli.console import err, out
from splitmeans.cli.home import HOME_OPTION
from splitmeans.errors import ParameterError
from splitmeans.privacy.ledger import Ledger
from splitmeans.run.journal import Journal

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="What was spent on which data, and limits on it.",
)

_JSON = typer.Option(False, "--json", help="Print JSON.")


@app.command()
def show(home: Path = HOME_OPTION, as_json: bool = _JSON) -> None:
    """Show what every data source has spent, and every entry.

    Example: splitmeans ledger show --home bank
    """
    with _reading(home) as ledger:
        verified = ledger.verify()
        entries = ledger.entries()
        sources = {source: ledger.spent(source) for source in ledger.sources()}
    if as_json:
        typer.echo(json.dumps(_as_mapping(sources, entries, verified.head), indent=1))
        return
    if not sources:
        err.print("nothing was spent, and there is no limit", markup=False)
        return
    table = Table(box=None, pad_edge=False)
    for heading in ("source", "epsilon", "delta", "limit"):
        table.add_column(heading)
    for source, spent in sources.items():
        limit = "none" if spent.limit is None else f"{spent.limit.epsilon:g}, {spent.limit.delta:g}"
        table.add_row(source, f"{spent.epsilon:g}", f"{spent.delta:g}", limit)
    out.print(table)
    listed = Table(box=None, pad_edge=False)
    for heading in ("no.", "time", "kind", "source", "study", "run", "what", "epsilon", "delta"):
        listed.add_column(heading, overflow="fold")
    for entry in entries:
        listed.add_row(
            str(entry.number),
            entry.time[:19],
            entry.kind,
            entry.source,
            (entry.study_hash or "")[:12],
            entry.run or "",
            entry.what or "",
            f"{entry.epsilon:g}",
            f"{entry.delta:g}",
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
def limit(
    source: str = typer.Argument(help="Name of the data, as `party run --source` gives it."),
    epsilon: float = typer.Option(..., help="What all runs on it may cost together."),
    delta: float = typer.Option(..., help="The same for delta."),
    home: Path = HOME_OPTION,
) -> None:
    """Limit what all runs on a data source may cost a user together.

    Example: splitmeans ledger limit customers --epsilon 3 --delta 1e-5 --home bank
    """
    with Journal.open(home.expanduser()) as journal, journal.transaction():
        ledger = Ledger(journal.connection)
        is_new = source not in ledger.sources()
        ledger.set_limit(source, epsilon=epsilon, delta=delta)
        spent = ledger.spent(source)
    err.print(
        f"limit of {source}: epsilon {epsilon:g}, delta {delta:g}; "
        f"spent so far: epsilon {spent.epsilon:g}, delta {spent.delta:g}",
        markup=False,
        soft_wrap=True,
    )
    if is_new:
        err.print(
            f"note: nothing has this name yet; it holds for runs with --source {source}",
            markup=False,
            soft_wrap=True,
        )


@contextmanager
def _reading(home: Path) -> Iterator[Ledger]:
    """Read the ledger without the lock, so that a run that is going on is not disturbed."""
    path = home.expanduser() / "splitmeans.sqlite"
    if not path.is_file():
        raise ParameterError(f"{path.parent} has no ledger; --home names the folder of your runs")
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
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
                "limit": None
                if spent.limit is None
                else {"epsilon": spent.limit.epsilon, "delta": spent.limit.delta},
            }
            for source, spent in sources.items()
        },
        "entries": [vars(entry) for entry in entries],
    }
