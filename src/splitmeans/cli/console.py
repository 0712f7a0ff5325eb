"""Where commands write: `out` for data, `err` for progress and messages, `alarm` for errors.

On a terminal there are colours, lines and bars; in a pipe or a file there is plain text.
"""

import os
import sys
import textwrap
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from splitmeans.errors import ParameterError

# A pipe or a file has no width; tables should not be squeezed into 80 columns there. (Both sizes
# are given, because the width alone is ignored on a dumb terminal.)
_PIPE: dict[str, Any] = {"width": 160, "height": 50}

# Names, paths and errors are other people's text: nothing in it is markup, and ":x:" stays ":x:".
_PLAIN: dict[str, Any] = {"highlight": False, "markup": False, "emoji": False}

_size = {} if sys.stdout.isatty() else _PIPE
out = Console(**_size, **_PLAIN)
err, alarm = Console(stderr=True, **_PLAIN), Console(stderr=True, **_PLAIN)


_for_programs = False


def leave_to_programs(are_reading: bool) -> None:
    """Let messages for people be silent while a log for programs is written in their place."""
    global _for_programs
    _for_programs = err.quiet = are_reading


def _be_quiet(quiet: bool) -> bool:
    err.quiet = quiet or _for_programs
    return quiet


Quiet = Annotated[
    bool,
    typer.Option("--quiet", "-q", callback=_be_quiet, help="No progress and notes, errors only."),
]


def new_table(title: str = "") -> Table:
    """Return an empty table; without lines where no person looks at it."""
    return Table(
        title=title or None,
        title_justify="left",
        box=box.HEAVY_HEAD if out.is_terminal else None,
        pad_edge=out.is_terminal,
    )


def print_table(table: Table) -> None:
    """Print a table and its title, which would be broken to the width of a narrow table."""
    title, table.title = table.title, None
    if title is not None:
        out.print(title, style="bold", markup=False, soft_wrap=True)
    out.print(table)


def print_text(screen: Console, text: str, *, style: str | None = None) -> None:
    """Print text; on a terminal with whole words on its lines, each indented like its first.

    In a pipe or a file lines stay as they are: what reads them should not meet half of one.
    """
    if screen.is_terminal:
        text = "\n".join(_wrapped(line, width=screen.width) for line in text.split("\n"))
    screen.print(text, style=style, soft_wrap=True)


def _wrapped(line: str, *, width: int) -> str:
    indent = " " * (len(line) - len(line.lstrip(" ")))
    return textwrap.fill(
        line,
        width=width,
        subsequent_indent=f"{indent}  " if indent else "",
        break_long_words=False,
        break_on_hyphens=False,
        replace_whitespace=False,
        drop_whitespace=True,
    )


def check_folder(folder: Path) -> None:
    """Make a folder for results, before the work whose results would be lost without it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise ParameterError(f"{folder}: cannot be made ({problem.strerror})") from problem


def check_text(what: str, text: str) -> None:
    """Refuse a path or name whose bytes are no UTF-8: stores, ledgers and reports hold text."""
    try:
        text.encode()
    except UnicodeEncodeError:
        shown = text.encode(errors="surrogateescape").decode(errors="replace")
        raise ParameterError(
            f"{what} must be text in UTF-8, and {shown!r} has other bytes; rename that folder or "
            "file, or work in another one"
        ) from None


def check_file(path: Path | None) -> None:
    """Check that a result file can be written, before the work is done."""
    if path is None:
        return
    if path.is_dir() or not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise ParameterError(f"{path}: cannot be written; name a file in a folder that exists")
