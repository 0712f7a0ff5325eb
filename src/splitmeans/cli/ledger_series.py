"""What `splitmeans ledger show` says of series: what was charged, and which slots are used."""

from collections.abc import Sequence
from typing import Any

from rich.table import Table

from splitmeans.cli.console import out
from splitmeans.privacy.ledger_rules import Entry
from splitmeans.privacy.series import series_key


def print_series(entries: Sequence[Entry]) -> None:
    """Print a line for each series; nothing if there is none."""
    found = series_mapping(entries)
    if not found:
        return
    table = Table(box=None, pad_edge=False)
    for heading in ("series of study", "source", "party", "epsilon", "runs", "slots used"):
        table.add_column(heading, overflow="fold")
    for one in found:
        slots = ", ".join(str(slot["run"]) for slot in one["slots"])
        used = f"{slots} (the last on {one['slots'][-1]['time'][:10]})"
        table.add_row(
            one["study_hash"][:12],
            one["source"],
            one["party"],
            f"{one['epsilon']:g}",
            str(one["runs"]),
            used,
        )
    out.print()
    out.print(table)
    out.print(
        "A series is charged once, for all of its runs. A slot is given once, also if its run "
        "failed after a release.",
        soft_wrap=True,
    )


def series_mapping(entries: Sequence[Entry]) -> list[dict[str, Any]]:
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
