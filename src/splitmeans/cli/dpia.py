"""`splitmeans study dpia`: an impact assessment, filled in from a study."""

from pathlib import Path

import typer

from splitmeans.cli.console import check_file
from splitmeans.errors import ParameterError
from splitmeans.study import Study


def dpia(
    study: Path = typer.Argument(help="The study file."),
    output: Path | None = typer.Option(
        None, "--output", "-o", help="File to write: .md, .txt or .html; without it, to stdout."
    ),
) -> None:
    """Fill in a data protection impact assessment as far as the study says something.

    What only people can know stays blank: legal entities, purposes, lawful basis, likelihood and
    severity of what remains. No data is touched.

    Example: splitmeans study dpia study.toml -o dpia.md
    """
    from splitmeans.evidence.dpia import dpia_of
    from splitmeans.evidence.pages import as_html, as_markdown, as_text

    forms = {".md": as_markdown, ".txt": as_text, ".html": as_html}
    ending = ".md" if output is None else output.suffix.lower()
    if ending not in forms:
        raise ParameterError(f"{output}: the name must end in {', '.join(forms)}")
    check_file(output)
    text = forms[ending](*dpia_of(Study.read(study)))
    if output is None:
        typer.echo(text, nl=False)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as problem:
        raise ParameterError(f"{output}: cannot be written ({problem.strerror})") from problem
    typer.echo(output)
