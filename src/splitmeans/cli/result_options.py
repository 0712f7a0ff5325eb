"""Options and texts that the commands on a result share."""

import re
from pathlib import Path

import typer

from splitmeans.cli.console import check_file
from splitmeans.errors import ParameterError
from splitmeans.result.model_segments import MEANS
from splitmeans.result.result import Segmentation
from splitmeans.synopsis.models.medians import Medians
from splitmeans.synopsis.models.mixture import Mixture
from splitmeans.synopsis.models.tree import Cut

RESULT = typer.Argument(help="Result folder that a run or `splitmeans demo` wrote.")
K = typer.Option(None, "--k", min=2, help="Segments of this number instead of the published ones.")
MODEL = typer.Option(
    MEANS, "--model", help="Segments by means (k-means), medians, mixture or tree."
)
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


_KINDS = {Medians: "around medians", Mixture: "of a mixture", Cut: "of the tree"}


def called(item: Segmentation) -> str:
    """Return what kind of segments these are."""
    if item.model is not None:
        return f"{item.k} segments {_KINDS[type(item.model)]}, found on the published grid"
    kind = "as published" if item.published else "found again on the published grid"
    return f"{item.k} segments, {kind}"
