"""`splitmeans bench relay`: many parties at a relay at once."""

import json
from pathlib import Path
from typing import Annotated

import typer

from splitmeans.cli.console import Quiet, check_file, err, new_table, print_table
from splitmeans.errors import ParameterError


def relay(
    parties: Annotated[int, typer.Option(help="Parties that upload at once.", min=2)] = 50,
    megabytes: Annotated[float, typer.Option(help="Size of each message.")] = 5.0,
    json_file: Annotated[
        Path | None, typer.Option("--json", help="Write the figures here.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Let many parties upload to a relay at once, over TLS on this machine, then fetch.

    Example: splitmeans bench relay --parties 50 --megabytes 5
    """
    check_file(json_file)
    try:
        from splitmeans.bench.relay_load import run_load
    except ImportError as problem:
        raise ParameterError(
            f'this benchmark needs {problem.name}: pip install "splitmeans[relay,https]"'
        ) from problem
    figures = run_load(parties, megabytes)
    table = new_table(f"{parties} parties, {megabytes:g} MB each")
    table.add_column("figure")
    table.add_column("value")
    for name, value in figures.items():
        table.add_row(name.replace("_", " "), f"{value:.4g}")
    print_table(table)
    if json_file is not None:
        record = {"parties": parties, "megabytes": megabytes, **figures}
        json_file.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        err.print(f"wrote {json_file}", markup=False)
