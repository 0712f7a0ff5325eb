"""`run`: a whole run between organisations, over TLS on this machine."""

from typing import Annotated

import typer

from benchmarks.commands import options
from benchmarks.commands.output import show, write_json
from benchmarks.whole_run import run_once
from splitmeans.cli.console import Quiet


def run(
    users: Annotated[int, typer.Option(help="Users of each party.", min=100)] = 20_000,
    json_file: options.JsonFile = None,
    quiet: Quiet = False,
) -> None:
    """Time a run of three parties, a server and a relay over TLS, each a process of its own.

    Example: python -m benchmarks run --users 20000
    """
    options.need_relay()
    figures = run_once(users)
    seconds = [f"{figures[name]:.1f}" for name in ("seconds", "processor_seconds")]
    bare = [f"{figures[name]:.1f}" for name in ("bare_seconds", "bare_processor_seconds")]
    rows = [
        ("run", *seconds),
        ("five bare starts of Python", *bare),
        ("ratio", f"{figures['ratio']:.1f}", ""),
    ]
    headings = ("", "seconds", "processor seconds")
    show(f"three parties, {users:,} users, five processes", headings, rows, left=headings)
    write_json(json_file, figures)
