"""`bounds`: bounds that the run learns, beside ideal public ones and careless ones."""

from typing import Annotated

import typer

from benchmarks.bounds import WAYS, BoundsScore, names_of, run_one
from benchmarks.commands import options
from benchmarks.commands.output import mean_text
from benchmarks.commands.ways import show_ways
from benchmarks.ways import ratio_text
from splitmeans.cli.console import Quiet

_HEADINGS = ("table", "users", "columns", "epsilon", *WAYS, "private / ideal")


def bounds(
    seeds: options.Seeds = 5,
    epsilons: Annotated[str, typer.Option(help="Values of epsilon, by commas.")] = "1,0.25",
    data_dir: options.DataDir = None,
    quick: options.Quick = False,
    workers: options.Workers = 2,
    json_file: options.JsonFile = None,
    quiet: Quiet = False,
) -> None:
    """Loss over central non-private k-means with ideal, learned and ten times too wide bounds.

    Example: python -m benchmarks bounds --data-dir DIR --seeds 5 --json bounds.json
    """
    show_ways(
        run_one,
        names_of(data_dir),
        ways=WAYS,
        headings=_HEADINGS,
        row=_row,
        epsilons=epsilons,
        seeds=seeds,
        data_dir=data_dir,
        quick=quick,
        workers=workers,
        json_file=json_file,
    )


def _row(scores: list[BoundsScore]) -> list[str]:
    first = scores[0]
    by_way = {way: [s.loss_ratio for s in scores if s.way == way] for way in WAYS}
    means = [mean_text(by_way[way]) for way in WAYS]
    return [
        first.data,
        f"{first.users:,}",
        str(first.columns),
        f"{first.epsilon:g}",
        *means,
        ratio_text(scores, way="private", over="ideal"),
    ]
