"""`local`: local clustering algorithms at the same privacy."""

import dataclasses
from typing import Annotated, Any

import typer

from benchmarks.commands import options
from benchmarks.commands.output import collected, mean_text, show, write_json
from benchmarks.local import METHODS, QUICK, run_local
from splitmeans.cli.console import Quiet

_ALL = ",".join(METHODS)


def local(
    methods: options.Methods = _ALL,
    columns: options.Counts = "1,2,4,8,16,32",
    users: options.Counts = "5000,20000,100000",
    eps: options.Epsilons = "0.05,0.25,1,4",
    clusters: Annotated[int, typer.Option(help="Number of local clusters.", min=1)] = 8,
    seeds: options.Seeds = 3,
    quick: options.Quick = False,
    workers: options.Workers = 2,
    json_file: options.JsonFile = None,
    quiet: Quiet = False,
) -> None:
    """Local clustering algorithms at the same privacy: loss over that of plain k-means.

    Example: python -m benchmarks local --quick --json local.json
    """
    names = options.listed("methods", methods, METHODS)
    grid: dict[str, Any] = {
        "columns": options.numbers("columns", columns, int),
        "sizes": options.numbers("users", users, int),
        "epsilons": options.numbers("eps", eps, float),
    }
    if quick:
        grid = QUICK
    runs = run_local(methods=names, n_clusters=clusters, seeds=seeds, workers=workers, **grid)
    scores = collected(runs, what="scores")
    ratios: dict[tuple[str, int, int, float], dict[str, list[float]]] = {}
    for score in scores:
        place = (score.case.kind, score.case.n_columns, score.case.n, score.epsilon)
        ratios.setdefault(place, {}).setdefault(score.method, []).append(score.loss_ratio)
    rows = [
        [kind, str(d), f"{n:,}", f"{epsilon:g}", *(mean_text(found[name]) for name in names)]
        for (kind, d, n, epsilon), found in sorted(ratios.items())
    ]
    headings = ("data", "columns", "users", "eps", *names)
    show("loss over that of plain k-means, mean over seeds", headings, rows, left=("data",))
    config = {"n_clusters": clusters, "seeds": seeds}
    write_json(json_file, {"config": config, "scores": list(map(dataclasses.asdict, scores))})
