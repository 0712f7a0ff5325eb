"""`categories`: categories that the run learns, beside a public list of all of them."""

from typing import Annotated

import typer

from benchmarks.categories import WAYS, CategoriesScore, names_of, run_one
from benchmarks.commands import options
from benchmarks.commands.output import mean_text
from benchmarks.commands.ways import show_ways
from benchmarks.ways import ratio_text
from splitmeans.cli.console import Quiet

_HEADINGS = ("table", "users", "levels", "epsilon", *WAYS, "open / listed", "learned", "in other")


def categories(
    seeds: options.Seeds = 5,
    epsilons: Annotated[str, typer.Option(help="Values of epsilon, by commas.")] = "1,0.25",
    data_dir: options.DataDir = None,
    quick: options.Quick = False,
    workers: options.Workers = 2,
    json_file: options.JsonFile = None,
    quiet: Quiet = False,
) -> None:
    """Loss over central non-private k-means with a list of all categories and with learned ones.

    Example: python -m benchmarks categories --data-dir DIR --seeds 5 --json categories.json
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


def _row(scores: list[CategoriesScore]) -> list[str]:
    first = scores[0]
    by_way = {way: [s.loss_ratio for s in scores if s.way == way] for way in WAYS}
    learned = [s for s in scores if s.way == "open" and s.loss_ratio is not None]
    known = other = "-"
    if learned:
        known = f"{sum(s.known_levels or 0 for s in learned) / len(learned):.0f}"
        other = f"{sum(s.other_share or 0.0 for s in learned) / len(learned):.1%}"
    return [
        first.data,
        f"{first.users:,}",
        str(first.levels),
        f"{first.epsilon:g}",
        *(mean_text(by_way[way]) for way in WAYS),
        ratio_text(scores, way="open", over="listed"),
        known,
        other,
    ]
