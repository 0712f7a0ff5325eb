"""`splitmeans relay study`: which studies a relay serves, changed while it runs."""

import json as json_format
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import typer

from splitmeans.cli.console import err, new_table, print_table, print_text
from splitmeans.errors import ParameterError
from splitmeans.relay.purge import purge
from splitmeans.relay.study_files import FOLDER, add_study, read_studies
from splitmeans.study import Study

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Studies that a relay serves: add, list, purge them while it runs.",
)

_FOLDER = typer.Option(..., "--folder", help="The folder that `relay serve --folder` names.")
_DIGITS = re.compile(r"[0-9a-f]{12,64}")


@app.command()
def add(
    study: Path = typer.Argument(help="The study file."),
    folder: Path = _FOLDER,
) -> None:
    """Have the relay serve a study from now on; a relay that runs takes it up within seconds.

    Example: splitmeans relay study add study.toml --folder messages
    """
    agreed = Study.read(study)
    is_new = add_study(folder.expanduser(), agreed)
    words = "added" if is_new else "was added before"
    print_text(err, f"study {agreed.name!r} {words}; its participants may use the relay")
    typer.echo(agreed.hash[:32])


@app.command("list")
def list_studies(
    folder: Path = _FOLDER,
    studies: list[Path] = typer.Option(
        [], "--studies", help="Folder that `relay serve --studies` names."
    ),
    json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """List the studies of a relay's folder and the runs that have messages there.

    Studies that `relay serve --study` names are listed once they have messages.

    Example: splitmeans relay study list --folder messages
    """
    place = folder.expanduser()
    if not place.is_dir():
        raise ParameterError(f"{place}: there is no such folder")
    found, problems = read_studies([place / FOLDER, *studies])
    served = {study_hash[:32]: study for study_hash, study in found.items()}
    stored = {item.name for item in (place / "messages").glob("*") if item.is_dir()}
    rows = [_about(place, digits, served.get(digits)) for digits in sorted(served.keys() | stored)]
    for file, problem in problems.items():
        print_text(err, f"left out {file}: {problem}")
    if json:
        typer.echo(json_format.dumps(rows, indent=1))
        return
    table = new_table()
    for heading in ("study", "name", "participants", "runs", "last message"):
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(
            row["study"],
            row["name"] or "(named by --study, or served no more)",
            ", ".join(row["participants"]),
            ", ".join(row["runs"]),
            row["last_message"] or "",
        )
    print_table(table)


@app.command("purge")
def purge_study(
    study: str = typer.Argument(help="The study file, or 12 or more digits of the study's hash."),
    folder: Path = _FOLDER,
    run: str | None = typer.Option(None, "--run", help="Only this run; the study stays."),
    yes: bool = typer.Option(False, "--yes", help="Do not ask."),
) -> None:
    """Remove a study with all its messages, or one run, also while the relay runs.

    What was removed cannot be put back, and the runs take no messages any more: a party whose home
    was restored from a backup must not find an empty run and release again. Purge when all
    participants have their results.

    Example: splitmeans relay study purge study.toml --run 2025-q1 --folder messages
    """
    place = folder.expanduser()
    digits = _digits(study, place)
    what = f"run {run!r}" if run is not None else "all runs"
    question = f"remove {what} of study {digits[:12]} from {place} for good?"
    if not yes and not typer.confirm(question, err=True):
        raise ParameterError("nothing was removed")
    purge(place, digits, run=run)
    print_text(err, f"removed {what} of study {digits[:12]}")


def _about(place: Path, digits: str, study: Study | None) -> dict[str, Any]:
    runs = sorted(item for item in (place / "messages" / digits).glob("*") if item.is_dir())
    times = [file.stat().st_mtime for run in runs for file in run.iterdir()]
    last = datetime.fromtimestamp(max(times), UTC) if times else None
    return {
        "study": digits,
        "name": None if study is None else study.name,
        "participants": [] if study is None else list(study.public_keys),
        "runs": [run.name for run in runs],
        "last_message": None if last is None else last.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }


def _digits(study: str, place: Path) -> str:
    """Return the first 32 digits of the hash of a study that the relay has."""
    if not _DIGITS.fullmatch(study):
        return Study.read(Path(study)).hash[:32]
    known = {item.stem for item in (place / FOLDER).glob("*.toml")}
    known |= {item.name for item in (place / "messages").glob("*")}
    fitting = sorted(digits for digits in known if digits.startswith(study[:32]))
    if len(fitting) != 1:
        raise ParameterError(
            f"{study}: {len(fitting)} studies of {place} begin with these digits; `splitmeans "
            "relay study list` shows them"
        )
    return fitting[0]
