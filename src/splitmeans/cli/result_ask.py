"""`splitmeans result ask`, `table` and `correlate`: questions to a result, with intervals."""

import csv
import json as json_format
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from splitmeans.cli.console import new_table, out, print_table
from splitmeans.cli.result_options import RESULT
from splitmeans.csv_cells import safe_row
from splitmeans.errors import ParameterError
from splitmeans.figures import number
from splitmeans.result.intervals import why_none
from splitmeans.result.result import Result

_JSON = typer.Option(False, "--json", help="Print JSON.")
_CSV = typer.Option(False, "--csv", help="Print csv.")
_COSTS_NOTHING = "95 % intervals; questions are answered from what was published and cost nothing"


def ask(
    result: Path = RESULT,
    query: str = typer.Argument(help="One SELECT over the tables synopsis and segments."),
    json: bool = _JSON,
    csv: bool = _CSV,
) -> None:
    """Ask a result in SQL (needs `splitmeans[sql]`).

    Table synopsis: weight, segment, and "PARTY: COLUMN" for every column; segments: letter, size,
    centre. Users are sum(weight), their mean of x is wmean(x, weight). Figures that follow the
    weights get 95 % intervals.

    Example: splitmeans result ask my-result 'SELECT segment, sum(weight) AS users FROM synopsis
    GROUP BY segment'
    """
    from splitmeans.queries.sql import ask_sql

    read = Result.read(result)
    read.check_segments()
    found = ask_sql(read, query)
    _print(found.all_columns, found.all_rows(), json=json, as_csv=csv, note=found.note)


def table(
    result: Path = RESULT,
    columns: list[str] = typer.Argument(help="One column or two, as PARTY: COLUMN."),
    bins: list[str] = typer.Option(
        [],
        "--bins",
        help="Bins of numbers: how many, or edges such as 10,20,50; COLUMN=10,20 for one column.",
    ),
    json: bool = _JSON,
    csv: bool = _CSV,
) -> None:
    """Count users by one or two columns, of one party or two, with intervals.

    Example: splitmeans result table my-result "bank: income" "shop: visits" --bins 5
    """
    read = Result.read(result)
    found = read.synopsis.table(*columns, bins=_read_bins(bins, columns))
    rows = [tuple(row.values()) for row in found.rows()]
    note = why_none(read) if found.low is None else ""
    _print((*found.columns, "users", "low", "high"), rows, json=json, as_csv=csv, note=note)


def correlate(
    result: Path = RESULT,
    columns: list[str] = typer.Argument(None, help="Columns of numbers; all if none is named."),
    json: bool = _JSON,
    csv: bool = _CSV,
) -> None:
    """Correlate columns of numbers, of all parties, the strongest first.

    Example: splitmeans result correlate my-result
    """
    read = Result.read(result)
    found = read.synopsis.correlation(*(columns or ()))
    rows = [tuple(row.values()) for row in found.rows()]
    note = ""
    if read.synopsis.precision is None:
        note = why_none(read)
    elif found.low is None:
        note = "intervals are given for up to 12 columns: name some"
    _print(
        ("first", "second", "correlation", "low", "high"), rows, json=json, as_csv=csv, note=note
    )


def _read_bins(texts: Sequence[str], columns: Sequence[str]) -> dict[str, int | list[float]]:
    """Read `--bins`: of all columns, or of the one it names."""
    found: dict[str, int | list[float]] = {}
    for text in texts:
        name, equals, numbers = text.rpartition("=")
        named = [name] if equals else list(columns)
        try:
            edges = [float(part) for part in numbers.split(",")]
        except ValueError as problem:
            raise ParameterError(
                f"--bins must be a number of bins, or edges such as 10,20,50, got {text!r}"
            ) from problem
        whole = len(edges) == 1 and edges[0].is_integer() and "." not in numbers
        found |= dict.fromkeys(named, int(edges[0]) if whole else edges)
    return found


def _print(
    columns: Sequence[str],
    rows: Sequence[tuple[Any, ...]],
    *,
    json: bool,
    as_csv: bool,
    note: str = "",
) -> None:
    if json:
        records = [dict(zip(columns, row, strict=True)) for row in rows]
        typer.echo(json_format.dumps({"rows": records, "note": note}, indent=1, default=str))
        return
    if as_csv:
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerows(safe_row(row) for row in (columns, *rows))
        return
    shown = new_table()
    for at, name in enumerate(columns):
        numeric = any(isinstance(row[at], float | int) for row in rows)
        shown.add_column(name, justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        shown.add_row(*(_cell(value) for value in row))
    print_table(shown)
    out.print(note or _COSTS_NOTHING, markup=False, soft_wrap=True)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    return number(value) if isinstance(value, float) else str(value)
