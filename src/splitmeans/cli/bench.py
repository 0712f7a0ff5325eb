"""`splitmeans bench`: benchmarks that print a table for people and JSON for machines."""

import dataclasses
import json
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.progress import Progress

from splitmeans._version import __version__
from splitmeans.cli import (
    bench_coverage,
    bench_paper,
    bench_plan,
    bench_relay,
    bench_run,
    bench_speed,
)
from splitmeans.cli.console import Quiet, check_file, err, new_table, out, print_table
from splitmeans.errors import ParameterError

app = typer.Typer(help="Compare methods.", no_args_is_help=True, add_completion=False)
app.command()(bench_speed.speed)
app.command()(bench_paper.paper)
app.command()(bench_plan.plan)
app.command()(bench_relay.relay)
app.command()(bench_run.run)
app.command()(bench_coverage.coverage)

_METHODS = (
    "central,vertical-plain,central-dplsf,central-dplsf-tight,decoy,sketch,sketch-paper,"
    "sketch-paper-basic,independent,ldp,dplsf-exact-weights"
)


@app.command()
def accuracy(
    data: Annotated[
        str, typer.Option(help="Data set: mixed-gaussian, letter, taxi or loan.")
    ] = "mixed-gaussian",
    methods: Annotated[str, typer.Option(help="Methods, separated by commas.")] = _METHODS,
    eps: Annotated[str, typer.Option(help="Values of epsilon, separated by commas.")] = "1,4",
    parties: Annotated[str, typer.Option(help="Numbers of parties, separated by commas.")] = "2,4",
    seeds: Annotated[int, typer.Option(help="Seeds per case.", min=1)] = 10,
    clusters: Annotated[int, typer.Option(help="Number of segments.", min=2)] = 5,
    users: Annotated[int, typer.Option(help="Users of mixed-gaussian.", min=100)] = 20_000,
    columns: Annotated[int, typer.Option(help="Columns of mixed-gaussian.", min=2)] = 8,
    std: Annotated[float, typer.Option(help="Deviation within clusters of mixed-gaussian.")] = 0.1,
    overlap: Annotated[float, typer.Option(help="Share of users that all parties have.")] = 1.0,
    data_dir: Annotated[
        Path | None, typer.Option(help="Folder with letter.parquet, taxi.parquet, loan.parquet.")
    ] = None,
    workers: Annotated[int, typer.Option(help="Processes.", min=1)] = 2,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write all scores here.")] = None,
    quiet: Quiet = False,
) -> None:
    """Loss, ratio to the central non-private loss, V-measure, weight error and bytes.

    Example: splitmeans bench accuracy --eps 1,4 --parties 2,4 --seeds 10 --json scores.json
    """
    from splitmeans.bench import accuracy as bench
    from splitmeans.bench.cases import Setting
    from splitmeans.bench.data import DATA_SETS, Recipe

    check_file(json_file)
    names = _listed("methods", methods, tuple(bench.METHODS))
    _listed("data", data, DATA_SETS)
    if not 0 < overlap <= 1:
        raise ParameterError(f"--overlap must be above 0 and at most 1, got {overlap}")
    epsilons = _numbers("eps", eps, float)
    counts = _numbers("parties", parties, int)
    recipe = Recipe(n=users, n_columns=columns, n_clusters=clusters, std=std)
    base = Setting(
        data=data, recipe=recipe, n_clusters=clusters, overlap=overlap, data_dir=data_dir
    )
    scores = []
    with Progress(console=err, transient=True) as progress:
        task = progress.add_task("cases", total=len(names) * len(epsilons) * len(counts) * seeds)
        for score in bench.run(
            base,
            methods=names,
            epsilons=epsilons,
            parties=counts,
            seeds=seeds,
            workers=workers,
        ):
            scores.append(score)
            progress.advance(task)
    _print_table(scores, names, epsilons, counts)
    config = {
        "data": data,
        "seeds": seeds,
        "n_clusters": clusters,
        "overlap": overlap,
        "recipe": dataclasses.asdict(recipe),
    }
    _write_json(json_file, config, scores)


@app.command()
def local(
    methods: Annotated[
        str, typer.Option(help="Candidates, separated by commas; all if empty.")
    ] = "",
    columns: Annotated[str, typer.Option(help="Numbers of columns.")] = "1,2,4,8,16,32",
    users: Annotated[str, typer.Option(help="Numbers of users.")] = "5000,20000,100000",
    eps: Annotated[str, typer.Option(help="Values of epsilon.")] = "0.05,0.25,1,4",
    clusters: Annotated[int, typer.Option(help="Number of local clusters.", min=1)] = 8,
    seeds: Annotated[int, typer.Option(help="Tables of each kind and size.", min=1)] = 3,
    quick: Annotated[bool, typer.Option("--quick", help="A small selection.")] = False,
    workers: Annotated[int, typer.Option(help="Processes.", min=1)] = 2,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write all scores here.")] = None,
    quiet: Quiet = False,
) -> None:
    """Local clustering algorithms at the same privacy: loss over that of plain k-means.

    Example: splitmeans bench local --quick --json local.json
    """
    from splitmeans.bench import local as bench

    check_file(json_file)
    names = _listed("methods", methods or ",".join(bench.METHODS), bench.METHODS)
    scores = []
    with Progress(console=err, transient=True) as progress:
        task = progress.add_task("scores", total=None)
        for score in bench.run_local(
            methods=names,
            columns=_numbers("columns", columns, int),
            sizes=_numbers("users", users, int),
            epsilons=_numbers("eps", eps, float),
            n_clusters=clusters,
            seeds=seeds,
            quick=quick,
            workers=workers,
        ):
            scores.append(score)
            progress.advance(task)
    table = new_table("loss over that of plain k-means, mean over seeds")
    for heading in ("data", "columns", "users", "eps", *names):
        table.add_column(heading, justify="left" if heading == "data" else "right")
    groups = sorted({(s.case.kind, s.case.n_columns, s.case.n, s.epsilon) for s in scores})
    for kind, d, n, epsilon in groups:
        ratios = {
            name: [
                s.loss_ratio
                for s in scores
                if (s.method, s.case.kind, s.case.n_columns, s.case.n, s.epsilon)
                == (name, kind, d, n, epsilon)
            ]
            for name in names
        }
        table.add_row(kind, str(d), f"{n:,}", f"{epsilon:g}", *map(_mean, ratios.values()))
    print_table(table)
    _write_json(json_file, {"n_clusters": clusters, "seeds": seeds}, scores)


@app.command()
def labels(
    data: Annotated[
        str, typer.Option(help="Data set: mixed-gaussian, letter, taxi or loan.")
    ] = "mixed-gaussian",
    eps: Annotated[float, typer.Option(help="Total epsilon.")] = 1.0,
    parties: Annotated[int, typer.Option(help="Number of parties.", min=2)] = 2,
    std: Annotated[float, typer.Option(help="Deviation within clusters of mixed-gaussian.")] = 0.3,
    users: Annotated[int, typer.Option(help="Users of mixed-gaussian.", min=100)] = 20_000,
    seed: Annotated[int, typer.Option(help="Seed.", min=0)] = 0,
    data_dir: Annotated[
        Path | None, typer.Option(help="Folder with letter.parquet, taxi.parquet, loan.parquet.")
    ] = None,
) -> None:
    """How far a party can trust the segment probabilities it works out from its own columns.

    Example: splitmeans bench labels --eps 1 --parties 2
    """
    from splitmeans.bench.cases import Setting
    from splitmeans.bench.data import DATA_SETS, Recipe
    from splitmeans.bench.reliability import measure_labels

    _listed("data", data, DATA_SETS)
    setting = Setting(
        data=data,
        epsilon=eps,
        n_parties=parties,
        seed=seed,
        recipe=Recipe(n=users, std=std),
        data_dir=data_dir,
    )
    for number, rating in enumerate(measure_labels(setting), start=1):
        out.print(f"party {number}\n{rating}\n", markup=False)


@app.command()
def accounting(
    eps: Annotated[float, typer.Option(help="Total epsilon.")] = 1.0,
    delta: Annotated[float, typer.Option(help="Total delta.")] = 5e-5,
    parties: Annotated[str, typer.Option(help="Numbers of parties, by commas.")] = "2,4,8",
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the levels here.")] = None,
) -> None:
    """Noise levels of tight accounting against the paper's at the same budget.

    Example: splitmeans bench accounting --eps 1 --delta 5e-5
    """
    from splitmeans.bench.accounting import noise_levels

    check_file(json_file)
    counts = _numbers("parties", parties, int)
    levels = list(noise_levels(epsilon=eps, delta=delta, parties=counts))
    table = new_table(f"noise at total epsilon {eps:g}, delta {delta:g}")
    for heading in ("S", "quantity", "paper", "tight", "paper / tight"):
        table.add_column(heading, justify="left" if heading == "quantity" else "right")
    for level in levels:
        values = (f"{level.paper:,.4g}", f"{level.tight:,.4g}", f"{level.ratio:.1f}")
        table.add_row(str(level.n_parties), level.what, *values)
    print_table(table)
    _write_json(json_file, {"epsilon": eps, "delta": delta}, levels)


def _write_json(json_file: Path | None, config: dict, scores: list) -> None:  # type: ignore[type-arg]
    """Write results with the version and configuration that made them."""
    if json_file is None:
        return
    record = {
        "splitmeans": __version__,
        "config": config,
        "scores": [dataclasses.asdict(score) for score in scores],
    }
    json_file.write_text(json.dumps(record, indent=1))
    err.print(f"wrote {json_file}", markup=False)


def _print_table(scores: list, names: list, epsilons: list, counts: list) -> None:  # type: ignore[type-arg]
    table = new_table("mean over seeds (± one standard error)")
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
    print_table(table)


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
