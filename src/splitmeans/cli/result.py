"""`splitmeans result`: look at a result, try other numbers of segments, label a party's rows."""

import json as json_format
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import typer
from rich.table import Table

from splitmeans._types import FloatArray
from splitmeans.cli.audience import audience, similar
from splitmeans.cli.compare import compare
from splitmeans.cli.console import Quiet, err, new_table, out, print_table
from splitmeans.cli.data_options import ALLOW_CLIPPING, DATA, QUERY, QUERY_FILE, chosen_query
from splitmeans.cli.insights import insight_lines, insights_mapping
from splitmeans.cli.overlap import (
    overlap,
    overlap_mapping,
    overlap_or_none,
    print_overlap,
)
from splitmeans.cli.result_ask import ask, correlate, table
from splitmeans.cli.result_options import RESULT, K, called, check_table_file, parse_ks
from splitmeans.errors import ParameterError
from splitmeans.figures import digits, fixed, number, percent, users
from splitmeans.intervals.sizes import SizeIntervals
from splitmeans.result.intervals import intervals_of
from splitmeans.result.result import Result, Segmentation
from splitmeans.study.features import to_own_units
from splitmeans.synopsis.choose_k import ChooseK
from splitmeans.wire.identity import spoken

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Look at a result, explore it, label your rows.",
)

for command in (ask, table, correlate):
    app.command()(command)

_JSON = typer.Option(False, "--json", help="Print JSON.")
# So many fit a terminal of 80 columns, with a column's name and its mean.
_SEGMENTS_A_TABLE = 7


@app.command()
def show(result: Path = RESULT, k: int | None = K, json: bool = _JSON) -> None:
    """Show the segments: sizes, centres in the columns' own units, why, and what each party adds.

    Example: splitmeans result show my-result
    """
    read = Result.read(result)
    item = read.segments(k)
    intervals = intervals_of(read, [item])
    if json:
        mapping = _mapping(read, item, intervals.found[0])
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
    _print_segments(read, item, intervals.found[0])
    for line in insight_lines(read, item):
        _say(line)
    _say(intervals.words)
    shared = overlap_or_none(read)
    if shared is not None:
        print_overlap(shared)
    _say(
        f"study {read.study.name!r}, run {read.facts['run']!r}; sizes are noisy estimates; "
        f"`splitmeans report {result}` shows more"
    )
    _say_origin(read)


@app.command()
def explore(
    result: Path = RESULT,
    k: int | None = K,
    ks: str = typer.Option("2-12", "--ks", help="Numbers of segments to compare."),
    synthetic: int | None = typer.Option(
        None, "--synthetic", min=1, help="Draw this many synthetic rows into --output."
    ),
    output: Path | None = typer.Option(
        None, "--output", "-o", help="File for synthetic rows: .parquet or .csv."
    ),
    seed: int | None = typer.Option(None, "--seed", min=0, help="Makes the synthetic rows repeat."),
    json: bool = _JSON,
) -> None:
    """Compare numbers of segments, look at one of them, or draw synthetic rows.

    Everything is computed from the published grid and costs no privacy, however often it is done.

    Examples: splitmeans result explore my-result --ks 2-12

    splitmeans result explore my-result --k 7

    splitmeans result explore my-result --synthetic 10000 -o rows.parquet
    """
    if (synthetic is None) != (output is None):
        raise ParameterError("--synthetic and --output go together")
    compared = parse_ks(ks)
    if synthetic is not None and output is not None:
        check_table_file(output)
        read = Result.read(result)
        read.check_segments()
        _write_table(read.synopsis.sample(synthetic, random_state=seed), output)
        typer.echo(output)
        return
    read = Result.read(result)
    if k is not None:
        item = read.segments(k)
        intervals = intervals_of(read, [item])
        if json:
            mapping = _mapping(read, item, intervals.found[0])
            mapping["intervals"] = intervals.words
            typer.echo(json_format.dumps(mapping, indent=1))
            return
        _print_segments(read, item, intervals.found[0])
        print_table(_origin_table(read, item))
        _say(intervals.words)
        return
    curve = read.compare_k(compared)
    if json:
        typer.echo(json_format.dumps(_curve_mapping(read, curve), indent=1))
        return
    print_table(_curve_table(read, curve))


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
    _say(f"{read.origin}; {_verified(read)}")
    _say(f"written {read.facts['written_at']} by {read.facts['participant']}")


def _say(text: str) -> None:
    out.print(text, markup=False, soft_wrap=True)


def _verified(result: Result) -> str:
    """Return what reading the folder has shown."""
    if not result.signed:
        return "the files fit together, which proves nothing about who made them"
    return (
        "checked: the signature fits the key in study.toml, and all figures fit what was signed; "
        f"the study's hash is {spoken(result.study.hash)}"
    )


def _print_segments(
    result: Result, item: Segmentation, intervals: SizeIntervals | None = None
) -> None:
    if result.remark is not None:
        _say(f"note: {result.remark}")
    for start in range(0, item.k, _SEGMENTS_A_TABLE):
        shown = slice(start, start + _SEGMENTS_A_TABLE)
        print_table(_segment_table(result, item, shown, intervals=intervals))


def _segment_table(
    result: Result, item: Segmentation, shown: slice, *, intervals: SizeIntervals | None
) -> Table:
    table = new_table(f"{called(item)} (centres in the columns' own units)")
    table.add_column("column", overflow="fold")
    table.add_column("mean", justify="right", no_wrap=True)
    for letter in item.letters[shown]:
        table.add_column(letter, justify="right", no_wrap=True)
    total = result.synopsis.total
    shares = item.sizes / total if total > 0 else np.zeros(item.k)
    table.add_row("users (noisy)", number(total), *(users(size) for size in item.sizes[shown]))
    if intervals is not None:
        for name, ends, all_users in (
            ("95 % from", intervals.low, intervals.total[0]),
            ("95 % to", intervals.high, intervals.total[1]),
        ):
            table.add_row(name, number(all_users), *(users(end) for end in ends[shown]))
    table.add_row("share", "", *(percent(each, 1) for each in shares[shown]), end_section=True)
    means = _means(result)
    for at, name in enumerate(result.synopsis.feature_names):
        centres = (number(value) for value in item.centres[shown, at])
        table.add_row(name, number(means[at]), *centres)
    return table


def _origin_table(result: Result, item: Segmentation) -> Table:
    """Where the users of each segment are among the published ones."""
    published = result.published
    shared = np.zeros((item.k, published.k))
    np.add.at(shared, (item.of_node, published.of_node), result.synopsis.weights)
    shares = shared / np.maximum(shared.sum(axis=1, keepdims=True), 1e-9)
    table = new_table("where its users are among the published segments")
    table.add_column("segment")
    for letter in published.letters:
        table.add_column(letter, justify="right")
    for letter, row in zip(item.letters, shares, strict=True):
        table.add_row(letter, *(percent(share) if share >= 0.005 else "" for share in row))
    return table


def _curve_table(result: Result, curve: ChooseK) -> Table:
    table = new_table("how many segments")
    for name in ("k", "loss", "silhouette"):
        table.add_column(name, justify="right")
    table.add_column("")
    rows = zip(curve.ks, curve.losses, curve.silhouettes, strict=True)
    for k, loss, silhouette in rows:
        marks = ["published"] if k == result.published.k else []
        marks += ["suggested"] if k == curve.suggested else []
        table.add_row(str(k), digits(loss, 4), fixed(silhouette, 3), ", ".join(marks))
    return table


def _means(result: Result) -> FloatArray:
    """Return the mean of all users in own units, found in distance units: own ones may be huge."""
    synopsis = result.synopsis
    weights = synopsis.weights if synopsis.total > 0 else np.ones(len(synopsis.weights))
    features = tuple(feature for group in synopsis.features for feature in group)
    return to_own_units(features, weights @ synopsis.scaled_nodes / weights.sum())


def _mapping(
    result: Result, item: Segmentation, intervals: SizeIntervals | None = None
) -> dict[str, Any]:
    ends: list[list[float] | None] = [None] * item.k
    if intervals is not None:
        pairs = zip(intervals.low.tolist(), intervals.high.tolist(), strict=True)
        ends = [[low, high] for low, high in pairs]
    return {
        "study": result.study.name,
        "study_hash": result.study.hash,
        "run": result.facts["run"],
        "result_hash": result.facts["result_hash"],
        "published_at": result.facts["published_at"],
        "written_at": result.facts["written_at"],
        "signed": result.signed,
        "remark": result.remark,
        "asked": result.study.n_clusters,
        "k": item.k,
        "published": item.published,
        "loss": item.loss,
        "users": result.synopsis.total,
        "users_interval": None if intervals is None else list(intervals.total),
        "columns": list(result.synopsis.feature_names),
        "means": _means(result).tolist(),
        "segments": [
            {
                "segment": letter,
                "name": result.names.get(letter) if item.published else None,
                "size": float(size),
                "size_interval": interval,
                "centre": centre.tolist(),
            }
            for letter, size, interval, centre in zip(
                item.letters, item.sizes, ends, item.centres, strict=True
            )
        ],
    }


def _curve_mapping(result: Result, curve: ChooseK) -> dict[str, Any]:
    return {
        "published": result.published.k,
        "suggested": curve.suggested,
        "ks": list(curve.ks),
        "losses": list(curve.losses),
        "silhouettes": list(curve.silhouettes),
    }


def _write_table(table: pa.Table, path: Path) -> None:
    try:
        if path.suffix.lower() == ".csv":
            pyarrow.csv.write_csv(table, path)
        else:
            pq.write_table(table, path)
    except OSError as problem:
        raise ParameterError(f"{path}: cannot be written ({problem})") from problem
