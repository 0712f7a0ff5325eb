"""Options that several commands have, and how lists in them are read."""

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from splitmeans.cli.console import check_file
from splitmeans.errors import ParameterError

N = TypeVar("N", int, float)


def _writable(path: Path | None) -> Path | None:
    """Find out before the work whether its results can be written."""
    check_file(path)
    return path


Data = Annotated[str, typer.Option(help="Data set: mixed-gaussian, letter, taxi or loan.")]
DataNames = Annotated[
    str, typer.Option(help="Data sets, separated by commas; all that are there if empty.")
]
DataDir = Annotated[
    Path | None, typer.Option(help="Folder with letter.parquet, taxi.parquet, loan.parquet.")
]
JsonFile = Annotated[
    Path | None, typer.Option("--json", callback=_writable, help="Write all figures here.")
]
Methods = Annotated[str, typer.Option(help="Methods, separated by commas.")]
Epsilon = Annotated[float, typer.Option(help="Total epsilon.")]
Delta = Annotated[float, typer.Option(help="Total delta.")]
Epsilons = Annotated[str, typer.Option(help="Values of epsilon, separated by commas.")]
Counts = Annotated[str, typer.Option(help="Numbers of them, separated by commas.")]
Seeds = Annotated[int, typer.Option(help="Runs of each case.", min=1)]
Users = Annotated[int, typer.Option(help="Users of mixed-gaussian.", min=100)]
Std = Annotated[float, typer.Option(help="Deviation within clusters of mixed-gaussian.")]
Quick = Annotated[bool, typer.Option("--quick", help="A small selection.")]
Workers = Annotated[int, typer.Option(help="Processes.", min=1)]


def listed(option: str, text: str, known: tuple[str, ...]) -> list[str]:
    """Return the names in a list, each of which must be known."""
    values = [value.strip() for value in text.split(",") if value.strip()]
    for value in values:
        if value not in known:
            raise ParameterError(f"--{option} must be from {', '.join(known)}, got {value!r}")
    if not values:
        raise ParameterError(f"--{option} must name at least one of {', '.join(known)}")
    return values


def numbers(option: str, text: str, kind: Callable[[str], N]) -> list[N]:
    """Return the numbers in a list, each above 0."""
    try:
        values = [kind(value) for value in text.split(",")]
    except ValueError:
        raise ParameterError(
            f"--{option} must be numbers separated by commas, got {text!r}"
        ) from None
    if any(value <= 0 for value in values):
        raise ParameterError(f"--{option} must be > 0, got {text!r}")
    return values


def need_relay() -> None:
    """Say before the work if a library is missing that relays and those who talk to them need."""
    for library in ("starlette", "uvicorn"):
        try:
            importlib.import_module(library)
        except ImportError as problem:
            raise ParameterError(
                f'this benchmark needs {library}: pip install "splitmeans[relay]"'
            ) from problem
