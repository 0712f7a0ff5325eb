"""What the commands `bounds` and `categories` share: run all, print a line for each table."""

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.commands import options
from benchmarks.commands.output import collected, show, write_json
from benchmarks.ways import RunOne, S, run_ways


def show_ways(
    run_one: RunOne[S],
    names: Sequence[str],
    *,
    ways: Sequence[str],
    headings: Sequence[str],
    row: Callable[[list[S]], list[str]],
    epsilons: str,
    seeds: int,
    data_dir: Path | None,
    quick: bool,
    workers: int,
    json_file: Path | None,
) -> None:
    """Run tables in all ways and print the means; quick is the last table and first epsilon."""
    listed = options.numbers("epsilons", epsilons, float)
    chosen = listed[:1] if quick else listed
    names = names[-1:] if quick else names
    runs = run_ways(
        run_one,
        names,
        ways=ways,
        epsilons=chosen,
        seeds=seeds,
        data_dir=data_dir,
        workers=workers,
    )
    total = len(names) * len(chosen) * len(ways) * seeds
    scores = collected(runs, what="runs", total=total)
    rows = [
        row([s for s in scores if (s.data, s.epsilon) == (name, epsilon)])
        for epsilon in chosen
        for name in names
    ]
    show(f"mean over {seeds} seeds", headings, rows, left=("table",))
    write_json(json_file, {"scores": list(map(dataclasses.asdict, scores))})
