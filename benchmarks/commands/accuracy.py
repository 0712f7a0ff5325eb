"""`accuracy`: every method on the same data, beside the non-private result."""

import dataclasses
import itertools
from typing import Annotated

import typer

from benchmarks.accuracy import run
from benchmarks.cases import Score, Setting
from benchmarks.commands import options
from benchmarks.commands.output import collected, mean_text, show, write_json
from benchmarks.data import ALL_SETS, Recipe
from benchmarks.methods import METHODS
from splitmeans.cli.console import Quiet
from splitmeans.errors import ParameterError

_DEFAULT = (
    "central,vertical-plain,central-dplsf,decoy,sketch,sketch-paper,"
    "sketch-paper-basic,independent,ldp,dplsf-exact-weights"
)
_HEADINGS = (
    *("eps", "S", "method", "loss", "ratio", "V-measure", "weight error"),
    *("k'", "labels", "kB"),
)


def accuracy(
    data: options.Data = "mixed-gaussian",
    methods: options.Methods = _DEFAULT,
    eps: options.Epsilons = "1,4",
    parties: options.Counts = "2,4",
    seeds: options.Seeds = 10,
    clusters: Annotated[int, typer.Option(help="Number of segments.", min=2)] = 5,
    users: options.Users = 20_000,
    columns: Annotated[int, typer.Option(help="Columns of data that is drawn.", min=2)] = 8,
    std: options.Std = 0.1,
    overlap: Annotated[float, typer.Option(help="Share of users that all parties have.")] = 1.0,
    data_dir: options.DataDir = None,
    workers: options.Workers = 2,
    json_file: options.JsonFile = None,
    quiet: Quiet = False,
) -> None:
    """Loss, ratio to the central non-private loss, V-measure, weight error and bytes.

    Example: python -m benchmarks accuracy --eps 1,4 --parties 2,4 --seeds 10 --json scores.json
    """
    names = options.listed("methods", methods, tuple(METHODS))
    options.listed("data", data, ALL_SETS)
    if not 0 < overlap <= 1:
        raise ParameterError(f"--overlap must be above 0 and at most 1, got {overlap}")
    epsilons = options.numbers("eps", eps, float)
    counts = options.numbers("parties", parties, int)
    recipe = Recipe(n=users, n_columns=columns, n_clusters=clusters, std=std)
    base = Setting(
        data=data, recipe=recipe, n_clusters=clusters, overlap=overlap, data_dir=data_dir
    )
    runs = run(base, methods=names, epsilons=epsilons, parties=counts, seeds=seeds, workers=workers)
    total = len(names) * len(epsilons) * len(counts) * seeds
    scores = collected(runs, what="cases", total=total)
    rows: list[list[str]] = []
    for place in itertools.product(epsilons, counts):
        rows += [*(_row(scores, *place, name) for name in names), []]
    show("mean over seeds (± one standard error)", _HEADINGS, rows, left=("method",))
    config = {
        "data": data,
        "seeds": seeds,
        "n_clusters": clusters,
        "overlap": overlap,
        "recipe": dataclasses.asdict(recipe),
    }
    write_json(json_file, {"config": config, "scores": list(map(dataclasses.asdict, scores))})


def _row(scores: list[Score], epsilon: float, count: int, name: str) -> list[str]:
    group = [s for s in scores if (s.method, s.epsilon, s.n_parties) == (name, epsilon, count)]
    sent = [s.bytes_per_party for s in group]
    return [
        f"{epsilon:g}",
        str(count),
        name,
        mean_text([s.loss for s in group], error=True),
        mean_text([s.loss_ratio for s in group]),
        mean_text([s.v_measure for s in group]),
        mean_text([s.weight_error for s in group]),
        mean_text([s.n_local_clusters for s in group], digits=1),
        mean_text([s.n_labels for s in group], digits=1),
        mean_text([None if size is None else size / 1000 for size in sent], digits=1),
    ]
