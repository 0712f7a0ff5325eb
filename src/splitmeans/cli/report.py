"""`splitmeans report`: a result as one HTML file that people can read."""

from pathlib import Path

import typer
from rich.progress import Progress, SpinnerColumn, TextColumn

from splitmeans.cli.console import Quiet, check_file, err
from splitmeans.cli.result_options import RESULT, parse_ks
from splitmeans.errors import ParameterError
from splitmeans.report.build import build_report
from splitmeans.report.html import render
from splitmeans.result.result import Result

app = typer.Typer(add_completion=False)


@app.command()
def report(
    result: Path = RESULT,
    output: Path = typer.Option(
        Path("report.html"), "--output", "-o", help="The HTML file to write."
    ),
    ks: str = typer.Option("2-12", "--ks", help="Numbers of segments that the slider offers."),
    name: list[str] = typer.Option(
        [], "--name", help="Name of a segment, as A=text; may be given for each."
    ),
    title: str | None = typer.Option(None, "--title", help="Heading of the report."),
    compare: Path | None = typer.Option(
        None, "--compare", help="An earlier result over the same columns: what changed since."
    ),
    json: Path | None = typer.Option(None, "--json", help="Also write its data as JSON."),
    quiet: Quiet = False,
) -> None:
    """Write a report: segments, sizes, map, all columns, how many segments, privacy.

    One file that needs no network and no other file. It is made of published values only and costs
    no privacy.

    Example: splitmeans report my-result -o report.html --name A="young families"
    """
    offered, names = parse_ks(ks), _names(name)
    check_file(output)
    check_file(json)
    read = Result.read(result)
    earlier = None if compare is None else Result.read(compare)
    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        console=err,
        transient=True,
    ) as progress:
        task = progress.add_task("reading the result", total=None)
        data = build_report(
            read,
            ks=offered,
            names=names,
            title=title,
            compared_with=earlier,
            progress=lambda step: progress.update(task, description=step),
        )
    _write(output, render(data))
    if json is not None:
        _write(json, data.to_json(indent=1) + "\n")
    typer.echo(output)


def _names(given: list[str]) -> dict[str, str]:
    names: dict[str, str] = {}
    for entry in given:
        letter, equals, text = entry.partition("=")
        if not equals or not letter.strip() or not text.strip():
            raise ParameterError(
                f"--name must be a letter and a name, as A=families, got {entry!r}"
            )
        names[letter.strip()] = text.strip()
    return names


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as problem:
        raise ParameterError(f"{path}: cannot be written ({problem.strerror})") from problem
