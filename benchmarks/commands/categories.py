"""`categories`: categories that the run learns, beside a public list of all of them."""

import dataclasses
from typing import Annotated

import typer

from benchmarks.categories import WAYS, CategoriesScore, names_of, run_categories
from benchmarks.commands import options
from benchmarks.commands.output import collected, mean_text, show, write_json
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
    listed = options.numbers("epsilons", epsilons, float)
    names = names_of(data_dir)[-1:] if quick else names_of(data_dir)
    chosen = listed[:1] if quick else listed
    runs = run_categories(names, epsilons=chosen, seeds=seeds, data_dir=data_dir, workers=workers)
    total = len(names) * len(chosen) * len(WAYS) * seeds
    scores = collected(runs, what="runs", total=total)
    rows = [
        _row([s for s in scores if (s.data, s.epsilon) == (name, epsilon)])
        for epsilon in chosen
        for name in names
    ]
    show(f"mean over {seeds} seeds", _HEADINGS, rows, left=("table",))
    write_json(json_file, {"scores": list(map(dataclasses.asdict, scores))})


def _row(scores: list[CategoriesScore]) -> list[str]:
    first = scores[0]
    by_way = {way: [s.loss_ratio for s in scores if s.way == way] for way in WAYS}
    learned = [s for s in scores if s.way == "open" and s.loss_ratio is not None]
    if learned:
        listed = [ratio for ratio in by_way["listed"] if ratio is not None]
        mean = sum(s.loss_ratio or 0.0 for s in learned) / len(learned)
        over = f"{mean / (sum(listed) / len(listed)):.3f}"
        known = f"{sum(s.known_levels or 0 for s in learned) / len(learned):.0f}"
        other = f"{sum(s.other_share or 0.0 for s in learned) / len(learned):.1%}"
    else:
        over, known, other = "refused", "-", "-"
    return [
        first.data,
        f"{first.users:,}",
        str(first.levels),
        f"{first.epsilon:g}",
        *(mean_text(by_way[way]) for way in WAYS),
        over,
        known,
        other,
    ]
