"""Options and texts that the commands on a result share."""

import re
from pathlib import Path

import typer

from splitmeans.cli.console import check_file
from splitmeans.errors import ParameterError
from splitmeans.result.result import Segmentation

RESULT = typer.Argument(help="Result folder that a run or `splitmeans demo` wrote.")
K = typer.Option(None, "--k", min=2, help="Segments of this number instead of the published ones.")
JSON = typer.Option(False, "--json", help="Print JSON.")

# More segments than this cannot be told apart, in a table or in a report.
_LARGEST_K = 200
_SUFFIXES = (".parquet", ".csv")


def check_table_file(path: Path) -> None:
    """Refuse a file for rows that is of no kind that is written, or cannot be."""
    if path.suffix.lower() not in _SUFFIXES:
        raise ParameterError(f"{path}: the file must end in {' or '.join(_SUFFIXES)}")
    check_file(path)


def parse_ks(text: str) -> list[int]:
    """Read numbers of segments: "2-12", "4,6,8" or both."""
    ks: list[int] = []
    for part in text.split(","):
        found = re.fullmatch(r"\s*(\d{1,4})\s*(?:-\s*(\d{1,4})\s*)?", part)
        if found is None:
            raise ParameterError(f"--ks must be numbers such as 2-12 or 4,6,8, got {text!r}")
        low, high = int(found[1]), int(found[2] or found[1])
        if not 2 <= low <= high <= _LARGEST_K:
            raise ParameterError(f"--ks must be from 2 to {_LARGEST_K}, ascending, got {text!r}")
        ks += range(low, high + 1)
    return sorted(set(ks))


def called(item: Segmentation) -> str:
    """Return what kind of segments these are."""
    kind = "as published" if item.published else "found again on the published grid"
    return f"{item.k} segments, {kind}"
