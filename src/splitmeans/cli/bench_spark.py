"""Tables of `splitmeans bench speed --stages spark`."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from splitmeans.cli.console import new_table, print_table

if TYPE_CHECKING:
    from splitmeans.bench.speed.spark import Derived, Sparked


def print_spark(found: Sequence["Sparked"], derived: Sequence["Derived"]) -> None:
    """Print what was measured, and what was derived from it."""
    if not found:
        return
    _print_measured(found)
    if derived:
        _print_derived(derived)


def _print_measured(found: Sequence["Sparked"]) -> None:
    stages = list(dict.fromkeys(stage for one in found for stage in one.stages))
    table = new_table("Spark on this machine, seconds")
    headings = ("rows", "cores", "start", "party", "rows a second", "compare users", "peak")
    for heading in (*headings, *stages):
        table.add_column(heading, justify="right")
    for one in found:
        table.add_row(
            f"{one.rows:,}",
            str(one.cores),
            f"{one.start_seconds:.1f}",
            f"{one.seconds:.1f}",
            f"{one.rows / one.seconds:,.0f}",
            f"{one.confirm_seconds:.1f}",
            f"{one.peak_bytes / 1e9:.1f} GB",
            *(f"{one.stages.get(stage, 0.0):.1f}" for stage in stages),
        )
    print_table(table)


def _print_derived(derived: Sequence["Derived"]) -> None:
    table = new_table("Spark on a cluster, seconds: derived from the above, not measured")
    workers = sorted({one.workers for one in derived})
    table.add_column("rows", justify="right")
    for count in workers:
        table.add_column(f"{count:,} workers (driver alone)", justify="right")
    for rows in sorted({one.rows for one in derived}):
        cells = [
            f"{one.seconds:,.0f} ({one.driver_seconds:,.0f})"
            for one in sorted(derived, key=lambda one: one.workers)
            if one.rows == rows
        ]
        table.add_row(f"{rows:,}", *cells)
    print_table(table)
