"""`splitmeans result overlap`: how many users are at which parties, and what `result show` says."""

import dataclasses
import json as json_format
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from splitmeans.cli.console import new_table, out, print_table
from splitmeans.cli.result_options import RESULT
from splitmeans.errors import ParameterError
from splitmeans.figures import percent, users
from splitmeans.intervals.overlap import Count, Overlap
from splitmeans.result.result import Result

# More ways to be at some parties than this are in the JSON alone: 12 parties have 4,095.
_MOST_PATTERNS = 32
MEANING = (
    "Numbers are counted with noise; a 95 % interval has the true number in 95 of 100 runs. "
    "They follow from what was published, and cost nothing."
)


def overlap(
    result: Path = RESULT, json: bool = typer.Option(False, "--json", help="Print JSON.")
) -> None:
    """Show how many users are at which parties, with 95 % intervals.

    For studies with membership = "decoy": those of segments, and those of counts alone.

    Example: splitmeans result overlap my-result
    """
    read = Result.read(result)
    found = read.overlap()
    if json:
        typer.echo(
            json_format.dumps({"study": read.study.name, **overlap_mapping(found)}, indent=1)
        )
        return
    print_overlap(found)


def print_overlap(found: Overlap) -> None:
    """Print who is at which parties, for people."""
    n_parties = len(found.parties)
    table = new_table("users by the parties that they are at")
    table.add_column("at", overflow="fold")
    for heading in ("users (noisy)", "95 % from", "95 % to"):
        table.add_column(heading, justify="right", no_wrap=True)
    for words, count in _lines(found):
        table.add_row(words, users(count.users), users(count.low), users(count.high))
    print_table(table)
    left = len(found.patterns) - _MOST_PATTERNS
    if left > 0:
        out.print(f"{left:,} more ways to be at some of {n_parties} parties are in the JSON")
    if found.shares:
        shares = new_table("who is at another party too")
        shares.add_column("of the users of", overflow="fold")
        shares.add_column("so many are at", overflow="fold")
        for heading in ("share", "95 % from", "95 % to"):
            shares.add_column(heading, justify="right", no_wrap=True)
        for one in found.shares:
            shares.add_row(
                one.of, one.at, percent(one.share, 1), percent(one.low, 1), percent(one.high, 1)
            )
        print_table(shares)
    out.print(MEANING, markup=False, soft_wrap=True)


def _lines(found: Overlap) -> Iterator[tuple[str, Count]]:
    n_parties = len(found.parties)
    for count in found.patterns[:_MOST_PATTERNS]:
        at = " and ".join(count.parties)
        if len(count.parties) == n_parties:
            yield f"all: {at}", count
        else:
            yield f"{at} only", count
    if n_parties > 2:
        for count in found.pairs:
            yield f"{' and '.join(count.parties)}, and maybe others", count
    for count in found.parties:
        yield f"{count.parties[0]}, and maybe others", count
    yield "one party or more", found.everyone


def overlap_mapping(found: Overlap) -> dict[str, Any]:
    """Return the same as plain values."""
    return dataclasses.asdict(found)


def overlap_or_none(result: Result) -> Overlap | None:
    """Return who is at which parties; None where a run does not say."""
    try:
        return result.overlap() if len(result.presence) else None
    except ParameterError:
        return None
