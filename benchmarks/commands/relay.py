"""`relay`: many parties at a relay at once."""

from typing import Annotated

import typer

from benchmarks.commands import options
from benchmarks.commands.output import show, write_json
from benchmarks.half_open import AFTER_TLS, SIGNED, run_half_open
from benchmarks.relay_load import run_load
from splitmeans.cli.console import Quiet


def relay(
    parties: Annotated[int, typer.Option(help="Parties that upload at once.", min=2)] = 50,
    megabytes: Annotated[float, typer.Option(help="Size of each message.")] = 5.0,
    half_open: Annotated[
        int, typer.Option(help="Half-open connections beside requests, instead of uploads.", min=0)
    ] = 0,
    signed: Annotated[
        bool, typer.Option(help="They have carried one signed request of one participant.")
    ] = False,
    json_file: options.JsonFile = None,
    quiet: Quiet = False,
) -> None:
    """Let many parties upload to a relay at once, over TLS on this machine, then fetch.

    Example: python -m benchmarks relay --parties 50 --megabytes 5
    """
    options.need_relay()
    # After TLS each takes one of the relay's places for requests.
    kind = SIGNED if signed else AFTER_TLS
    figures = run_half_open(half_open, kinds=(kind,)) if half_open else run_load(parties, megabytes)
    rows = [(name.replace("_", " "), f"{value:.4g}") for name, value in figures.items()]
    load = f"{parties} parties, {megabytes:g} MB each"
    title = f"{half_open} connections {kind}" if half_open else load
    show(title, ("figure", "value"), rows, left=("figure", "value"))
    write_json(json_file, figures)
