"""`python -m benchmarks`: the command line of all benchmarks."""

import typer

from benchmarks.commands.accuracy import accuracy
from benchmarks.commands.answers import answers
from benchmarks.commands.bounds import bounds
from benchmarks.commands.categories import categories
from benchmarks.commands.coverage import coverage
from benchmarks.commands.labels import labels
from benchmarks.commands.local import local
from benchmarks.commands.paper import paper
from benchmarks.commands.plan import plan
from benchmarks.commands.relay import relay
from benchmarks.commands.renewal import renewal
from benchmarks.commands.run import run
from benchmarks.commands.speed import speed
from benchmarks.commands.synthetic import synthetic
from splitmeans.cli import run_app

app = typer.Typer(
    help="Measure splitmeans: accuracy, speed, and the paper again.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in (
    *(
        accuracy,
        bounds,
        categories,
        local,
        labels,
        coverage,
        answers,
        synthetic,
        renewal,
        speed,
        paper,
        plan,
        relay,
        run,
    ),
):
    app.command()(command)


def main() -> None:
    """Run the command line."""
    run_app(app, "python -m benchmarks")


if __name__ == "__main__":
    main()
