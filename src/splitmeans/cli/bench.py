"""`splitmeans bench`: benchmarks that print a table for people and JSON for machines."""

import dataclasses
import json
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.progress import Progress
from rich.table import Table

from splitmeans._version import __version__
from splitmeans.cli.console import err, out
from splitmeans.errors import ParameterError

app = typer.Typer(help="Compare methods by accuracy.", no_args_is_help=True)

_PAPER_METHODS = (
    "central,vertical-plain,central-dplsf,decoy,sketch,sketch-paper,sketch-paper-basic,independent,ldp,"
    "dplsf-exact-weights"
)


@app.callback()
def _bench() -> None:
    """Keep `accuracy` a named subcommand while it is the only one."""


@app.command()
def accuracy(
    data: Annotated[
        str, typer.Option(help="Data set: mixed-gaussian, letter, taxi or loan.")
    ] = "mixed-gaussian",
    methods: Annotated[str, typer.Option(help="Methods, separated by commas.")] = _PAPER_METHODS,
    eps: Annotated[str, typer.Option(help="Values of epsilon, separated by commas.")] = "1,4",
    parties: Annotated[str, typer.Option(help="Numbers of parties, separated by commas.")] = "2,4",
    seeds: Annotated[int, typer.Option(help="Seeds per case.", min=1)] = 10,
    users: Annotated[int, typer.Option(help="Number of users.", min=100)] = 20_000,
    data_dir: Annotated[
        Path | None, typer.Option(help="Folder with letter.parquet, taxi.parquet, loan.parquet.")
    ] = None,
    workers: Annotated[int, typer.Option(help="Processes.", min=1)] = 2,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write all scores here.")] = None,
) -> None:
    """Loss, ratio to the central non-private loss, V-measure, weight error and bytes.

    Example: splitmeans bench accuracy --eps 1,4 --parties 2,4 --seeds 10 --json scores.json
    """
    from splitmeans.bench import accuracy as bench
    from splitmeans.bench.data import DATA_SETS

    names = _listed("methods", methods, tuple(bench.METHODS))
    _listed("data", data, DATA_SETS)
    epsilons = _numbers("eps", eps, float)
    counts = _numbers("parties", parties, int)
    scores = []
    with Progress(console=err, transient=True) as progress:
        task = progress.add_task("cases", total=len(names) * len(epsilons) * len(counts) * seeds)
        for score in bench.run(
            data=data,
            methods=names,
            epsilons=epsilons,
            parties=counts,
            seeds=seeds,
            n=users,
            workers=workers,
            data_dir=data_dir,
        ):
            scores.append(score)
            progress.advance(task)
    _print_table(scores, names, epsilons, counts)
    if json_file is not None:
        record = {
            "splitmeans": __version__,
            "config": {"data": data, "users": users, "seeds": seeds, "n_clusters": 5},
            "scores": [dataclasses.asdict(score) for score in scores],
        }
        json_file.write_text(json.dumps(record, indent=1))
        err.print(f"wrote {json_file}", markup=False)


def _print_table(scores: list, names: list, epsilons: list, counts: list) -> None:  # type: ignore[type-arg]
    table = Table(title="mean over seeds (± one standard error)")
    for heading in ("eps", "S", "method", "loss", "ratio", "V-measure", "weight error", "k'", "kB"):
        table.add_column(heading, justify="left" if heading == "method" else "right")
    for epsilon in epsilons:
        for count in counts:
            for name in names:
                group = [
                    s
                    for s in scores
                    if (s.method, s.epsilon, s.n_parties) == (name, epsilon, count)
                ]
                table.add_row(
                    f"{epsilon:g}",
                    str(count),
                    name,
                    _mean([s.loss for s in group], error=True),
                    _mean([s.loss_ratio for s in group]),
                    _mean([s.v_measure for s in group]),
                    _mean([s.weight_error for s in group]),
                    _mean([s.n_local_clusters for s in group], digits=1),
                    _mean([_kilo(s.bytes_per_party) for s in group], digits=1),
                )
            table.add_section()
    out.print(table)


def _mean(values: list, *, digits: int = 3, error: bool = False) -> str:  # type: ignore[type-arg]
    known = [value for value in values if value is not None]
    if not known:
        return "-"
    text = f"{np.mean(known):.{digits}f}"
    if error and len(known) > 1:
        text += f" ± {np.std(known, ddof=1) / np.sqrt(len(known)):.{digits}f}"
    return text


def _kilo(size: float | None) -> float | None:
    return None if size is None else size / 1000


def _listed(name: str, text: str, known: tuple[str, ...]) -> list[str]:
    values = [value.strip() for value in text.split(",") if value.strip()]
    for value in values:
        if value not in known:
            raise ParameterError(f"--{name} must be from {', '.join(known)}, got {value!r}")
    if not values:
        raise ParameterError(f"--{name} must name at least one of {', '.join(known)}")
    return values


def _numbers(name: str, text: str, kind: type) -> list:  # type: ignore[type-arg]
    try:
        values = [kind(value) for value in text.split(",")]
    except ValueError:
        raise ParameterError(
            f"--{name} must be numbers separated by commas, got {text!r}"
        ) from None
    if any(value <= 0 for value in values):
        raise ParameterError(f"--{name} must be > 0, got {text!r}")
    return values
