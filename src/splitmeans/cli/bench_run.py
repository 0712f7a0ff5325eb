"""`splitmeans bench run`: a whole run between organisations, over TLS on this machine."""

import json
from pathlib import Path
from typing import Annotated

import typer

from splitmeans.cli.console import Quiet, check_file, err, new_table, out
from splitmeans.errors import ParameterError


def run(
    users: Annotated[int, typer.Option(help="Users of each party.", min=100)] = 20_000,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write the figures here.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Time a run of three parties, a server and a relay over TLS, each a process of its own.

    Example: splitmeans bench run --users 20000
    """
    check_file(json_file)
    try:
        import fastapi  # noqa: F401  - the processes of the run need both
        import httpx  # noqa: F401

        from splitmeans.bench.whole_run import run_once
    except ImportError as problem:
        raise ParameterError(
            f'this benchmark needs {problem.name}: pip install "splitmeans[relay,https]"'
        ) from problem
    figures = run_once(users)
    table = new_table(f"three parties, {users:,} users, five processes")
    for heading in ("", "seconds", "processor seconds"):
        table.add_column(heading)
    table.add_row("run", f"{figures['seconds']:.1f}", f"{figures['processor_seconds']:.1f}")
    bare = figures["bare_seconds"], figures["bare_processor_seconds"]
    table.add_row("five bare starts of Python", f"{bare[0]:.1f}", f"{bare[1]:.1f}")
    table.add_row("ratio", f"{figures['ratio']:.1f}", "")
    out.print(table)
    if json_file is not None:
        json_file.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
        err.print(f"wrote {json_file}", markup=False)
