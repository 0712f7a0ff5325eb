"""`splitmeans result`: look at a result, try other numbers of segments, label a party's rows."""

import json as json_format
from pathlib import Path

import typer

from splitmeans.cli.audience import audience, similar
from splitmeans.cli.compare import compare
from splitmeans.cli.console import Quiet, err
from splitmeans.cli.data_options import ALLOW_CLIPPING, DATA, QUERY, QUERY_FILE, chosen_query
from splitmeans.cli.explore import explore
from splitmeans.cli.overlap import (
    overlap,
    overlap_mapping,
    overlap_or_none,
    print_overlap,
)
from splitmeans.cli.result_ask import ask, correlate, table
from splitmeans.cli.result_options import JSON, RESULT, K, called, check_table_file
from splitmeans.cli.segments_shown import (
    insight_lines,
    insights_mapping,
    print_segments,
    say,
    segments_mapping,
)
from splitmeans.result.intervals import intervals_of
from splitmeans.result.result import Result
from splitmeans.wire.identity import spoken

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Look at a result, explore it, label your rows.",
)

for command in (ask, table, correlate):
    app.command()(command)


@app.command()
def show(result: Path = RESULT, k: int | None = K, json: bool = JSON) -> None:
    """Show the segments: sizes, centres in the columns' own units, why, and what each party adds.

    Example: splitmeans result show my-result
    """
    read = Result.read(result)
    item = read.segments(k)
    intervals = intervals_of(read, [item])
    if json:
        mapping = segments_mapping(read, item, intervals.found[0])
        mapping["users_interval"] = None if intervals.users is None else list(intervals.users)
        mapping["intervals"] = intervals.words
        shared = overlap_or_none(read)
        mapping["overlap"] = None if shared is None else overlap_mapping(shared)
        typer.echo(json_format.dumps(mapping | insights_mapping(read, item), indent=1))
        return
    if read.study.counts_only:
        print_overlap(read.overlap())
        _say_origin(read)
        return
    print_segments(read, item, intervals.found[0])
    for line in insight_lines(read, item):
        say(line)
    say(intervals.words)
    shared = overlap_or_none(read)
    if shared is not None:
        print_overlap(shared)
    say(
        f"study {read.study.name!r}, run {read.facts['run']!r}; sizes are noisy estimates; "
        f"`splitmeans report {result}` shows more"
    )
    _say_origin(read)


app.command()(explore)


@app.command()
def label(
    result: Path = RESULT,
    party: str = typer.Option(..., "--party", help="Your name in the study."),
    data: str = DATA,
    output: Path = typer.Option(..., "--output", "-o", help="File to write: .parquet or .csv."),
    query: str | None = QUERY,
    query_file: Path | None = QUERY_FILE,
    k: int | None = K,
    allow_clipping: bool = ALLOW_CLIPPING,
    quiet: Quiet = False,
) -> None:
    """Label your own rows: how likely each segment is for each of them.

    Works on your columns and the published result, on your machine; nothing is sent. The labels are
    as sensitive as your rows: the file can be read by you alone.

    Example: splitmeans result label my-result --party bank --data bank.parquet -o labels.parquet
    """
    from splitmeans.cli.progress import rows_progress
    from splitmeans.party.label_file import write_labels

    check_table_file(output)
    read = Result.read(result)
    item = read.segments(k)
    with rows_progress() as progress:
        rows = write_labels(
            read,
            data,
            output,
            party=party,
            segments=item,
            progress=progress,
            query=chosen_query(query, query_file),
            allow_clipping=allow_clipping,
        )
    err.print(
        f"labelled {rows:,} rows with {called(item)}; keep {output} as safe as the data",
        markup=False,
        soft_wrap=True,
    )
    typer.echo(output)


# Whoever works on a result finds all of it under `splitmeans result`.
app.command()(overlap)
app.command()(compare)
app.command()(similar)
app.command()(audience)


def _say_origin(read: Result) -> None:
    say(f"{read.origin}; {_verified(read)}")
    say(f"written {read.facts['written_at']} by {read.facts['participant']} (not signed)")
    if read.names:
        say("names of segments are not signed: the holder of the folder gave them")


def _verified(result: Result) -> str:
    """Return what reading the folder has shown."""
    if not result.signed:
        return "the files fit together, which proves nothing about who made them"
    return (
        "checked: the signature fits the key in study.toml, and all figures fit what was signed; "
        f"the study's hash is {spoken(result.study.hash)}"
    )
