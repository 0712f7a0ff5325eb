"""`splitmeans result explore`: other numbers of segments, synthetic rows."""

import json as json_format
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import typer
from rich.table import Table

from splitmeans.cli.console import new_table, print_table
from splitmeans.cli.result_options import JSON, RESULT, K, check_table_file, parse_ks
from splitmeans.cli.segments_shown import origin_table, print_segments, say, segments_mapping
from splitmeans.csv_cells import safe_table
from splitmeans.errors import ParameterError
from splitmeans.figures import digits, fixed
from splitmeans.result.intervals import intervals_of
from splitmeans.result.result import Result
from splitmeans.synopsis.choose_k import ChooseK


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
    json: bool = JSON,
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
            mapping = segments_mapping(read, item, intervals.found[0])
            mapping["intervals"] = intervals.words
            typer.echo(json_format.dumps(mapping, indent=1))
            return
        print_segments(read, item, intervals.found[0])
        print_table(origin_table(read, item))
        say(intervals.words)
        return
    curve = read.compare_k(compared)
    if json:
        typer.echo(json_format.dumps(_curve_mapping(read, curve), indent=1))
        return
    print_table(_curve_table(read, curve))


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
            pyarrow.csv.write_csv(safe_table(table), path)
        else:
            pq.write_table(table, path)
    except OSError as problem:
        raise ParameterError(f"{path}: cannot be written ({problem})") from problem
