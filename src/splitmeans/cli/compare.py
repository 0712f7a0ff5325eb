"""`splitmeans result compare`: what changed between two results."""

import dataclasses
import json as json_format
from pathlib import Path

import typer

from splitmeans.cli.console import new_table, out, print_table
from splitmeans.figures import fixed, number, percent, users
from splitmeans.insights.drift import Change, Drift, drift
from splitmeans.result.result import Result

# The rest is in the JSON.
_MOST_COLUMNS = 12


def compare(
    old: Path = typer.Argument(help="Result folder of the earlier run."),
    new: Path = typer.Argument(help="Result folder of the later run."),
    json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Show what changed from one result to another: sizes, shares, where segments went, columns.

    Both must be over the same columns. Changes have 95 % intervals with the noise of both runs.
    `splitmeans report NEW --compare OLD` has the same as a part of the report.

    Example: splitmeans result compare spring summer
    """
    found = drift(Result.read(old), Result.read(new))
    if json:
        typer.echo(json_format.dumps(dataclasses.asdict(found), indent=1))
        return
    print_drift(found)


def print_drift(found: Drift) -> None:
    """Print a comparison for people."""
    _say(f"old: {found.old}")
    _say(f"new: {found.new}")
    _say(
        f"users: {users(found.users.old)} then, {users(found.users.new)} now, {_ends(found.users)}"
    )
    if found.segments:
        table = new_table("segments of the old result, counted in both")
        table.add_column("segment", overflow="fold")
        for heading in ("then", "now", "change", "95 % interval", "share", "95 % interval", "now"):
            table.add_column(heading, justify="right", no_wrap=True)
        table.add_column("goes to", overflow="fold")
        for one in found.segments:
            table.add_row(
                one.letter if one.name is None else f"{one.letter} ({one.name})",
                users(one.size.old),
                users(one.size.new),
                f"{one.size.change:+,.0f}",
                _interval(one.size, scale=1.0),
                f"{100 * one.share.change:+.1f}",
                _interval(one.share, scale=100.0),
                one.match or "none",
                ", ".join(f"{name} {percent(share)}" for name, share in one.goes_to),
            )
        print_table(table)
        _say(
            "share: change in per cent of all users; now: the new segment it is matched with; goes "
            "to: where the places of its people belong among the new segments"
        )
    for letter, parts in found.split:
        _say(f"split: {letter} is in {', '.join(parts)} now")
    for letter, parts in found.merged:
        _say(f"came together: {', '.join(parts)} are in {letter} now")
    if found.unmatched:
        _say(f"new segments that match none of the old: {', '.join(found.unmatched)}")
    if found.columns:
        columns = new_table("means of columns (no interval), those that moved most first")
        columns.add_column("column", overflow="fold")
        for heading in ("then", "now", "in spreads"):
            columns.add_column(heading, justify="right", no_wrap=True)
        for item in found.columns[:_MOST_COLUMNS]:
            columns.add_row(item.column, number(item.old), number(item.new), fixed(item.spreads, 2))
        print_table(columns)
    if found.overlap:
        counts = new_table("users at exactly these parties")
        counts.add_column("at", overflow="fold")
        for heading in ("then", "now", "change", "95 % interval"):
            counts.add_column(heading, justify="right", no_wrap=True)
        for name, change in found.overlap:
            counts.add_row(
                name,
                users(change.old),
                users(change.new),
                f"{change.change:+,.0f}",
                _interval(change, scale=1.0),
            )
        print_table(counts)
    _say(found.words)


def _ends(change: Change) -> str:
    if change.low is None or change.high is None:
        return f"change {change.change:+,.0f}"
    return f"change {change.change:+,.0f} (95 %: {_interval(change, scale=1.0)})"


def _interval(change: Change, *, scale: float) -> str:
    if change.low is None or change.high is None:
        return "not known"
    form = "+,.0f" if scale == 1.0 else "+.1f"
    return f"{change.low * scale:{form}} to {change.high * scale:{form}}"


def _say(text: str) -> None:
    out.print(text, markup=False, soft_wrap=True)
