"""`speed`: every stage and the whole fit, beside what people would use instead."""

import dataclasses
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from rich.progress import Progress

from benchmarks.commands import options
from benchmarks.commands import speed_tables as tables
from benchmarks.commands.output import write_json
from benchmarks.speed import results, run
from benchmarks.speed.join import measure_join
from benchmarks.speed.peers import PEERS
from benchmarks.speed.spark import derive_all, measure_spark
from benchmarks.speed.spark import to_mapping as spark_mapping
from benchmarks.speed.stage import GROUPS
from benchmarks.speed.stream import measure_stream
from splitmeans.cli.console import Quiet, check_folder, err, out
from splitmeans.errors import ParameterError

T = TypeVar("T")

_STAGES = ",".join(GROUPS)
# Stages with files of their own, at sizes of their own: a whole party, and the server's join.
_WITH_FILES = ("stream", "spark", "join")
# Above this load, other work takes a good part of a core.
_BUSY = 0.5
_UNITS = {"": 1, "k": 1_000, "m": 1_000_000}


def speed(
    sizes: Annotated[
        str, typer.Option(help="Numbers of users, separated by commas; 10M needs about 8 GB.")
    ] = "20k,100k,1M",
    stages: Annotated[
        str,
        typer.Option(
            help=f"Parts of a run, separated by commas, from {_STAGES},stream,spark,join."
        ),
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
    join_tags: Annotated[
        str, typer.Option(help="Tags of each party in the join stage; 35 bytes of disk for each.")
    ] = "5M,50M",
    folder: Annotated[
        Path | None, typer.Option(help="Folder for tables meanwhile; the system's if not given.")
    ] = None,
    json_file: options.JsonFile = None,
    quiet: Quiet = False,
) -> None:
    """Time, memory, bytes and growth of each stage, ratios to other libraries, and our claims.

    Every figure is from a process of its own after a warm-up; noise is the system's.

    Example: python -m benchmarks speed --sizes 20k,100k,1M --json speed.json
    """
    if folder is not None:
        check_folder(folder)
    groups = options.listed("stages", stages, (*GROUPS, *_WITH_FILES))
    users = list(run.QUICK_SIZES) if quick else parse_sizes("sizes", sizes)
    lengths = {
        "stream": parse_sizes("stream-rows", stream_rows) if "stream" in groups else [],
        "spark": parse_sizes("spark-rows", spark_rows) if "spark" in groups else [],
        "join": parse_sizes("join-tags", join_tags) if "join" in groups else [],
    }
    repeat = 1 if quick else repeat
    where = run.environment(cores=cores)
    if where["load_before"] > _BUSY:
        err.print(
            f"warning: the machine is busy (load {where['load_before']:.1f}); times will be too "
            "long and ratios uneven",
            style="yellow",
        )
    measured = [group for group in groups if group not in _WITH_FILES]
    total = sum(len(run.jobs(n, sizes=users, groups=measured, peers=peers)) for n in users)
    found: list[results.Row] = []
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

        def each(group: str, measure: Callable[..., T]) -> list[T]:
            """Measure with each number of rows, in a folder for the meantime."""
            done = []
            with tempfile.TemporaryDirectory(prefix=f"splitmeans-{group}-", dir=folder) as name:
                for rows in lengths[group]:
                    progress.update(task, description=f"{group} with {rows:,} rows")
                    done.append(measure(rows, Path(name), cores=cores))
            return done

        streams = each("stream", measure_stream)
        sparks = each("spark", measure_spark)
        joins = each("join", measure_join)
    found = results.with_growth(found)
    derived = derive_all(sparks)
    tables.print_rows("Stages", [row for row in found if not row.peer])
    tables.print_rows("Peers", [row for row in found if row.peer])
    for name in dict.fromkeys(row.name for row in found if row.peer):
        out.print(f"{name}: {PEERS[name].does}")
    tables.print_ratios(results.ratios(found, PEERS.values()))
    tables.print_streams(streams)
    tables.print_spark(sparks, derived)
    tables.print_joins(joins)
    tables.print_claims(results.claims(found, streams))
    out.print(
        f"best of {repeat}; at most {cores} cores for each; load of the machine before: "
        f"{where['load_before']:.1f}; memory is what a stage needs beyond its input"
    )
    config = {"sizes": users, "stages": groups, "repeat": repeat, "quick": quick}
    record: dict[str, Any] = {"config": config, "environment": where}
    record |= results.to_mapping(found, PEERS.values(), streams)
    record["joins"] = [dataclasses.asdict(join) for join in joins]
    write_json(json_file, record | {"spark": spark_mapping(sparks, derived)})


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
