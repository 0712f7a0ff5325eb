"""What `splitmeans ledger show` prints: sums and limits, series, data sets, then every entry."""

import math
from collections.abc import Sequence
from typing import Any

from rich.table import Table

from splitmeans.cli.console import out
from splitmeans.privacy.ledger_rules import Book, Entry
from splitmeans.privacy.series import series_key

# Names of the figures, and towards whom they are.
TOWARDS = {
    "epsilon": "server, outsiders",
    "party_epsilon": "a party",
    "coalition_epsilon": "a party with the server",
}
_ABOUT_TOWARDS = (
    "Costs of runs add up, each with the delta. A party: values elsewhere, if the server follows "
    "the rules; several parties who share what they know are one party."
)
_ABOUT_SERIES = (
    "A series is charged once, for all of its runs. A slot is given once, also if its run failed "
    "after a release."
)


def print_ledger(book: Book, entries: Sequence[Entry]) -> None:
    """Print a ledger for people."""
    _print_sums(book)
    _print_series(entries)
    sets = book.data_sets
    lines = [f"data set {name}: {who}" for name, who in sorted(sets.people.items())]
    lines += [f"{name} is part of {whole}" for name, whole in sorted(sets.owners.items())]
    lines += [f"{one} and {two} are other people" for one, two in sorted(sets.apart)]
    if book.restored is not None:
        lines.append(f"restored from a {book.restored}: nothing is charged until it is complete")
    for line in lines:
        out.print(line, soft_wrap=True)
    out.print()
    _print_entries(entries)


def as_mapping(book: Book, entries: Sequence[Entry], head: str) -> dict[str, Any]:
    """Return the same for programs."""
    spent = {source: book.spent(source) for source in book.sources}
    return {
        "head": head,
        "sources": {
            source: {name: _finite(value) for name, value in one._asdict().items()}
            | {"limit": None if one.limit is None else vars(one.limit)}
            for source, one in spent.items()
        },
        "series": _series(entries),
        "entries": [
            {name: _finite(value) for name, value in vars(entry).items()} for entry in entries
        ],
        "data_sets": dict(book.data_sets.people),
        "parts": dict(book.data_sets.owners),
        "apart": sorted(book.data_sets.apart),
        "restored": book.restored,
    }


def shown_amount(epsilon: float) -> str:
    """Return a sum as people read it."""
    return "no bound" if math.isinf(epsilon) else f"{epsilon:.4g}"


def _print_sums(book: Book) -> None:
    table = _table("source", "towards", "epsilon", "delta", "limit")
    for source in book.sources:
        spent = book.spent(source)
        for name, towards in TOWARDS.items():
            most = getattr(spent.limit, name, None)
            limit = "none" if most is None else f"{most:g}"
            if spent.limit is not None and name == "epsilon":
                limit += f", {spent.limit.delta:g}"
            first = (source, f"{spent.delta:g}") if name == "epsilon" else ("", "")
            table.add_row(first[0], towards, shown_amount(getattr(spent, name)), first[1], limit)
    out.print(table)
    out.print(_ABOUT_TOWARDS, soft_wrap=True)


def _print_series(entries: Sequence[Entry]) -> None:
    found = _series(entries)
    if not found:
        return
    table = _table("series of study", "source", "party", "epsilon", "runs", "slots used")
    for one in found:
        slots = ", ".join(str(slot["run"]) for slot in one["slots"])
        used = f"{slots} (the last on {one['slots'][-1]['time'][:10]})"
        figures = (f"{one['epsilon']:g}", str(one["runs"]), used)
        table.add_row(one["study_hash"][:12], one["source"], one["party"], *figures)
    out.print()
    out.print(table)
    out.print(_ABOUT_SERIES, soft_wrap=True)


def _print_entries(entries: Sequence[Entry]) -> None:
    names = ("no.", "time", "kind", "source", "study", "run", "what", "epsilon", "delta")
    table = _table(*names, "party", "with server")
    for entry in entries:
        towards = (entry.party_epsilon, entry.coalition_epsilon)
        table.add_row(
            str(entry.number),
            entry.time[:19],
            entry.kind,
            entry.source,
            (entry.study_hash or "")[:12],
            entry.run or "",
            _what(entry),
            f"{entry.epsilon:g}",
            f"{entry.delta:g}",
            *("" if cost is None else shown_amount(cost) for cost in towards),
        )
    out.print(table)


def _what(entry: Entry) -> str:
    """Return what an entry is about; the hash of a record of people would say nothing."""
    has_reason = entry.note is not None and not entry.note.startswith("people ")
    return f"{entry.what or ''} ({entry.note})" if has_reason else entry.what or ""


def _table(*headings: str) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in headings:
        table.add_column(heading, overflow="fold")
    return table


def _series(entries: Sequence[Entry]) -> list[dict[str, Any]]:
    """Return every series with its slots, as plain values."""
    opened = {entry.run_key: entry for entry in entries if entry.series_runs is not None}
    slots: dict[Any, list[Entry]] = {key: [] for key in opened}
    for entry in entries:
        if entry.series_run is not None:
            slots[series_key(entry.study_hash, entry.party)].append(entry)
    return [
        {
            "study_hash": entry.study_hash,
            "source": entry.source,
            "party": entry.party,
            "epsilon": entry.epsilon,
            "delta": entry.delta,
            "runs": entry.series_runs,
            "slots": [
                {"run": slot.series_run, "name": slot.run, "time": slot.time, "entry": slot.number}
                for slot in slots[key]
            ],
        }
        for key, entry in opened.items()
    ]


def _finite(value: Any) -> Any:
    """Infinity has no place in JSON; a text says that there is no bound."""
    return "no bound" if value == math.inf else value
