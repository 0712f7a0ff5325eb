"""What all commands do with their results: progress, a table, a file."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from rich.progress import Progress

from splitmeans._version import __version__
from splitmeans.cli.console import err, new_table, print_table

T = TypeVar("T")


def collected(items: Iterable[T], *, what: str, total: int | None = None) -> list[T]:
    """Take all items and show meanwhile how many there are."""
    found = []
    with Progress(console=err, transient=True) as progress:
        task = progress.add_task(what, total=total)
        for item in items:
            found.append(item)
            progress.advance(task)
    return found


def show(
    title: str,
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    left: Sequence[str] = (),
) -> None:
    """Print a table; numbers stand to the right, the columns named in `left` to the left.

    An empty row is a line across the table, where there are lines.
    """
    table = new_table(title)
    for heading in headings:
        own_text = heading in left
        table.add_column(
            heading,
            justify="left" if own_text else "right",
            overflow="fold" if own_text else "ellipsis",
        )
    for row in rows:
        if row:
            table.add_row(*row)
        else:
            table.add_section()
    print_table(table)


def mean_text(values: Iterable[float | None], *, digits: int = 3, error: bool = False) -> str:
    """Return the mean of the values that are known, on demand with its standard error."""
    known = [value for value in values if value is not None]
    if not known:
        return "-"
    text = f"{np.mean(known):.{digits}f}"
    if error and len(known) > 1:
        text += f" ± {np.std(known, ddof=1) / np.sqrt(len(known)):.{digits}f}"
    return text


def write_json(path: Path | None, record: Mapping[str, Any], *, say: bool = True) -> None:
    """Write results with the version that made them, if a file was asked for."""
    if path is None:
        return
    path.write_text(json.dumps({"splitmeans": __version__, **record}, indent=1) + "\n")
    if say:
        err.print(f"wrote {path}", markup=False)
