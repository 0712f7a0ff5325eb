"""`splitmeans bench coverage`: how often the printed intervals of sizes are right."""

import dataclasses
import json
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import Progress

from splitmeans._version import __version__
from splitmeans.cli.console import Quiet, check_file, err, new_table, print_table
from splitmeans.errors import ParameterError


def coverage(
    data: Annotated[
        str, typer.Option(help="Data sets, separated by commas; all that are there if empty.")
    ] = "",
    seeds: Annotated[int, typer.Option(help="Runs of each setting.", min=1)] = 3,
    data_dir: Annotated[
        Path | None, typer.Option(help="Folder with letter.parquet, taxi.parquet, loan.parquet.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Three settings only.")] = False,
    workers: Annotated[int, typer.Option(help="Processes.", min=1)] = 2,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write all segments here.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Coverage of the 95 % intervals of segment sizes, for both meanings of a size.

    Example: splitmeans bench coverage --data-dir DIR --seeds 3 --json coverage.json
    """
    from splitmeans.bench import coverage as bench

    check_file(json_file)
    known = bench.DATA_SETS
    names = [name.strip() for name in data.split(",") if name.strip()]
    for name in names:
        if name not in known:
            raise ParameterError(f"--data must be from {', '.join(known)}, got {name!r}")
    if not names:
        names = [name for name in known if data_dir is not None or name not in bench.REAL]
    settings = (
        (bench.SETTINGS[2], bench.SETTINGS[6], bench.SETTINGS[13]) if quick else bench.SETTINGS
    )
    found = []
    with Progress(console=err, transient=True) as progress:
        task = progress.add_task("runs", total=len(names) * len(settings) * seeds)
        for segments in bench.run_coverage(
            data=names, settings=settings, seeds=seeds, data_dir=data_dir, workers=workers
        ):
            found += segments
            progress.advance(task)
    table = new_table(f"95 % intervals of segment sizes, {seeds} runs of each setting")
    table.add_column("runs of")
    for heading in (
        "segments",
        "withheld",
        "hold the users nearest to the centre",
        "hold the users of the cells",
        "half width, median",
    ):
        table.add_column(heading, justify="right")
    for name, part in bench.groups(found).items():
        row = bench.summary(part)
        shown = (f"{row.nearest:.1%}", f"{row.in_cells:.1%}", f"{row.width:.1%}")
        table.add_row(name, str(row.segments), str(row.withheld), *shown)
    print_table(table)
    if json_file is not None:
        record = {
            "splitmeans": __version__,
            "config": {"data": names, "seeds": seeds, "settings": len(settings)},
            "summary": {
                name: dataclasses.asdict(bench.summary(part))
                for name, part in bench.groups(found).items()
            },
            "segments": [dataclasses.asdict(one) for one in found],
        }
        json_file.write_text(json.dumps(record, indent=1))
        err.print(f"wrote {json_file}", markup=False)
