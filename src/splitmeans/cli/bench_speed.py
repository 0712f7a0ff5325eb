"""`splitmeans bench speed`: every stage and the whole fit, beside what people would use instead."""

import json
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import Progress
from rich.table import Table

from splitmeans._version import __version__
from splitmeans.cli.console import Quiet, check_file, check_folder, err, new_table, out, print_table
from splitmeans.errors import ParameterError

if TYPE_CHECKING:
    from splitmeans.bench.speed.results import Claim, Ratio, Row
    from splitmeans.bench.speed.spark import Derived, Sparked
    from splitmeans.bench.speed.stream import Streamed

_STAGES = "read,ids,local,encode,combine,grid,k-means,plan,fit"
# Stages that are a whole party with files of its own.
_WHOLE_PARTIES = ("stream", "spark")
# Above this load, other work takes a good part of a core.
_BUSY = 0.5
_DERIVED_ROWS = (10_000_000, 100_000_000, 1_000_000_000)
_DERIVED_WORKERS = (1, 10, 100)
_UNITS = {"": 1, "k": 1_000, "m": 1_000_000}


def speed(
    sizes: Annotated[
        str, typer.Option(help="Numbers of users, separated by commas; 10M needs about 8 GB.")
    ] = "20k,100k,1M",
    stages: Annotated[
        str, typer.Option(help=f"Parts of a run, separated by commas, from {_STAGES},stream,spark.")
    ] = _STAGES,
    repeat: Annotated[int, typer.Option(help="Runs, of which the shortest counts.", min=1)] = 3,
    peers: Annotated[bool, typer.Option(help="Also run other libraries.")] = True,
    quick: Annotated[
        bool, typer.Option("--quick", help="20,000 users, one run, one process, no memory.")
    ] = False,
    cores: Annotated[int, typer.Option(help="Processor cores for everything.", min=1)] = 2,
    stream_rows: Annotated[
        str, typer.Option(help="Rows of the parquet files of the stream stage.")
    ] = "5M,50M",
    spark_rows: Annotated[
        str, typer.Option(help="Rows of the tables of the spark stage: two numbers or more.")
    ] = "1M,10M",
    folder: Annotated[
        Path | None, typer.Option(help="Folder for tables meanwhile; the system's if not given.")
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write all figures here.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Time, memory, bytes and growth of each stage, ratios to other libraries, and our claims.

    Every figure is from a process of its own after a warm-up; noise is the system's.

    Example: splitmeans bench speed --sizes 20k,100k,1M --json speed.json
    """
    from splitmeans.bench.speed import results, run
    from splitmeans.bench.speed.peers import PEERS
    from splitmeans.bench.speed.spark import measure_spark
    from splitmeans.bench.speed.spark import to_mapping as spark_mapping
    from splitmeans.bench.speed.stream import measure_stream
    from splitmeans.cli.bench_spark import print_spark

    check_file(json_file)
    if folder is not None:
        check_folder(folder)
    groups = _groups(stages)
    users = list(run.QUICK_SIZES) if quick else parse_sizes("sizes", sizes)
    lengths = parse_sizes("stream-rows", stream_rows)
    spark_lengths = parse_sizes("spark-rows", spark_rows)
    repeat = 1 if quick else repeat
    where = run.environment(cores=cores)
    if where["load_before"] > _BUSY:
        err.print(
            f"warning: the machine is busy (load {where['load_before']:.1f}); times will be too "
            "long and ratios uneven",
            style="yellow",
            markup=False,
        )
    measured = [group for group in groups if group not in _WHOLE_PARTIES]
    total = sum(len(run.jobs(n, sizes=users, groups=measured, peers=peers)) for n in users)
    found: list[Row] = []
    streams: list[Streamed] = []
    sparks: list[Sparked] = []
    with Progress(console=err, transient=True) as progress:
        task = progress.add_task("measurements", total=total)
        for row in run.run_speed(
            sizes=users if measured else [],
            groups=measured,
            repeat=repeat,
            peers=peers,
            cores=cores,
            isolated=not quick,
            folder=folder,
        ):
            found.append(row)
            progress.update(task, advance=1, description=f"{row.n:,} users: {row.name}")
        if "stream" in groups:
            with tempfile.TemporaryDirectory(prefix="splitmeans-stream-", dir=folder) as name:
                for rows in sorted(lengths):
                    progress.update(task, description=f"stream of {rows:,} rows")
                    streams.append(measure_stream(rows, Path(name), workers=cores, cores=cores))
        if "spark" in groups:
            with tempfile.TemporaryDirectory(prefix="splitmeans-spark-", dir=folder) as name:
                for rows in spark_lengths:
                    progress.update(task, description=f"Spark with {rows:,} rows")
                    sparks.append(measure_spark(rows, Path(name), cores=cores))
    derived = _derive_all(sparks)
    found = results.with_growth(found)
    _print_rows("Stages", [row for row in found if not row.peer])
    _print_rows("Peers", [row for row in found if row.peer])
    for name in dict.fromkeys(row.name for row in found if row.peer):
        out.print(f"{name}: {PEERS[name].does}", markup=False)
    _print_ratios(results.ratios(found, PEERS.values()))
    _print_streams(streams)
    print_spark(sparks, derived)
    _print_claims(results.claims(found, streams))
    out.print(
        f"best of {repeat}; at most {cores} cores for each; load of the machine before: "
        f"{where['load_before']:.1f}; memory is what a stage needs beyond its input",
        markup=False,
    )
    if json_file is not None:
        config = {"sizes": users, "stages": groups, "repeat": repeat, "quick": quick}
        record = {"splitmeans": __version__, "config": config, "environment": where}
        record |= results.to_mapping(found, PEERS.values(), streams)
        record["spark"] = spark_mapping(sparks, derived)
        json_file.write_text(json.dumps(record, indent=1))
        err.print(f"wrote {json_file}", markup=False)


def _derive_all(sparks: Sequence["Sparked"]) -> list["Derived"]:
    """Return what clusters would take, if there are measurements to derive it from."""
    from splitmeans.bench.speed.spark import derive

    if len(sparks) < 2:
        return []
    return [
        derive(sparks, rows=rows, workers=workers)
        for rows in _DERIVED_ROWS
        for workers in _DERIVED_WORKERS
    ]


def parse_sizes(option: str, text: str) -> list[int]:
    """Return whole numbers such as 20000, 20k or 10M, ascending and each once."""
    sizes = set()
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d+)([km]?)\s*", part, flags=re.IGNORECASE)
        if match is None or int(match[1]) == 0:
            raise ParameterError(
                f"--{option} must be whole numbers such as 20000, 20k or 1M, separated by commas, "
                f"got {text!r}"
            )
        sizes.add(int(match[1]) * _UNITS[match[2].lower()])
    return sorted(sizes)


def _groups(text: str) -> list[str]:
    known = (*_STAGES.split(","), *_WHOLE_PARTIES)
    chosen = [part.strip() for part in text.split(",") if part.strip()]
    for part in chosen:
        if part not in known:
            raise ParameterError(f"--stages must be from {', '.join(known)}, got {part!r}")
    if not chosen:
        raise ParameterError(f"--stages must name at least one of {', '.join(known)}")
    return chosen


def _print_rows(title: str, rows: Sequence["Row"]) -> None:
    if not rows:
        return
    table = _table(title, "what", "users", "ms", "ns a user", "sent", "memory", "cores", "growth")
    names = list(dict.fromkeys(row.name for row in rows))
    for row in sorted(rows, key=lambda row: (names.index(row.name), row.n)):
        if row.seconds is None:
            table.add_row(row.name, f"{row.n:,}", f"{row.status}: {row.reason}")
            continue
        table.add_row(
            f"{row.name} ({row.scaled})" if row.scaled else row.name,
            f"{row.n:,}",
            f"{row.seconds * 1e3:,.1f}",
            "-" if row.ns_per_user is None else f"{row.ns_per_user:,.0f}",
            _size(row.bytes_sent),
            _size(row.working_bytes),
            f"{row.cores:.1f}",
            "-" if row.growth is None else f"{row.growth:.2f}",
        )
    print_table(table)


def _print_ratios(ratios: Sequence["Ratio"]) -> None:
    if not ratios:
        return
    largest = max(ratio.n for ratio in ratios)
    table = _table(
        f"Peers over ours, {largest:,} users", "peer", "stage", "times as long", "processor time"
    )
    for ratio in ratios:
        if ratio.n < largest:
            continue
        values = (f"{ratio.times:,.2f}", f"{ratio.per_core:,.2f}")
        table.add_row(ratio.peer, ratio.stage, *values)
    print_table(table)


def _print_streams(streams: Sequence["Streamed"]) -> None:
    if not streams:
        return
    table = _table("Parquet by row groups", "rows", "workers", "s", "rows a second", "sent", "peak")
    for stream in streams:
        table.add_row(
            f"{stream.rows:,}",
            str(stream.workers),
            f"{stream.seconds:,.1f}",
            f"{stream.rows / stream.seconds:,.0f}",
            _size(stream.bytes_sent),
            _size(stream.peak_bytes),
        )
    print_table(table)


def _print_claims(claims: Sequence["Claim"]) -> None:
    table = _table("Claims", "claim", "measured", "bar", "met")
    for claim in claims:
        sign = "at most" if claim.at_most else "at least"
        measured = "-" if claim.measured is None else f"{claim.measured:,.3g} {claim.unit}"
        verdict = {True: "yes", False: "NO", None: "not measured"}[claim.met]
        table.add_row(claim.text, measured, f"{sign} {claim.bar:g} {claim.unit}", verdict)
    print_table(table)


def _table(title: str, first: str, *others: str) -> Table:
    table = new_table(title)
    table.add_column(first, overflow="fold")
    for heading in others:
        table.add_column(heading, justify="left" if heading in ("stage", "met") else "right")
    return table


def _size(size: int | None) -> str:
    if size is None:
        return "-"
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= scale:
            return f"{size / scale:.1f} {unit}"
    return f"{size} B"
