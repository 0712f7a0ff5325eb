"""`bounds`: bounds that the run learns, beside ideal public ones and careless ones."""

import dataclasses
from typing import Annotated

import typer

from benchmarks.bounds import WAYS, BoundsScore, names_of, run_bounds
from benchmarks.commands import options
from benchmarks.commands.output import collected, mean_text, show, write_json
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
    listed = options.numbers("epsilons", epsilons, float)
    names = names_of(data_dir)[-1:] if quick else names_of(data_dir)
    chosen = listed[:1] if quick else listed
    runs = run_bounds(names, epsilons=chosen, seeds=seeds, data_dir=data_dir, workers=workers)
    total = len(names) * len(chosen) * len(WAYS) * seeds
    scores = collected(runs, what="runs", total=total)
    rows = [
        _row([s for s in scores if (s.data, s.epsilon) == (name, epsilon)])
        for epsilon in chosen
        for name in names
    ]
    show(f"mean over {seeds} seeds", _HEADINGS, rows, left=("table",))
    write_json(json_file, {"scores": list(map(dataclasses.asdict, scores))})


def _row(scores: list[BoundsScore]) -> list[str]:
    first = scores[0]
    by_way = {way: [s.loss_ratio for s in scores if s.way == way] for way in WAYS}
    means = [mean_text(by_way[way]) for way in WAYS]
    known = [ratio for ratio in by_way["private"] if ratio is not None]
    over = "refused"
    if known:
        ideal = [ratio for ratio in by_way["ideal"] if ratio is not None]
        over = f"{(sum(known) / len(known)) / (sum(ideal) / len(ideal)):.3f}"
    return [
        first.data,
        f"{first.users:,}",
        str(first.columns),
        f"{first.epsilon:g}",
        *means,
        over,
    ]
