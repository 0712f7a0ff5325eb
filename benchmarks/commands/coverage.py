"""`coverage`: how often the printed intervals of sizes are right."""

import dataclasses
import itertools
from pathlib import Path

import numpy as np
import typer

from benchmarks.commands import options
from benchmarks.commands.output import collected, show, write_json
from benchmarks.coverage import (
    DATA_SETS,
    REAL,
    SETTINGS,
    Setting,
    groups,
    run_coverage,
    summary,
)
from benchmarks.figure_coverage import CHOSEN_ON, HELD_OUT, figure_groups, run_figures
from benchmarks.figure_coverage import SETTINGS as FIGURE_SETTINGS
from splitmeans.cli.console import Quiet
from splitmeans.errors import ParameterError

_HEADINGS = (
    "runs of",
    "segments",
    "withheld",
    "right",
    "half width, median",
)


def coverage(
    data: options.DataNames = "",
    seeds: options.Seeds = 3,
    data_dir: options.DataDir = None,
    quick: options.Quick = False,
    workers: options.Workers = 2,
    json_file: options.JsonFile = None,
    figures: bool = typer.Option(
        False, "--figures", help="Of shares, means, tables and correlations instead of sizes."
    ),
    epsilons: str = typer.Option(
        "", "--epsilons", help="With --figures: these alone, separated by commas."
    ),
    quiet: Quiet = False,
) -> None:
    """How often the 95 % intervals of segment sizes hold the users nearest to the centre.

    Example: python -m benchmarks coverage --data-dir DIR --seeds 3 --json coverage.json
    """
    if figures:
        settings = FIGURE_SETTINGS[1:2] if quick else FIGURE_SETTINGS
        if epsilons:
            wanted = options.numbers("epsilons", epsilons, float)
            settings = tuple(one for one in FIGURE_SETTINGS if one.epsilon in wanted)
            if not settings:
                known = sorted({one.epsilon for one in FIGURE_SETTINGS})
                raise ParameterError(f"epsilons must be among {known}, got {epsilons!r}")
        _of_figures(
            data,
            settings=settings,
            seeds=seeds,
            data_dir=data_dir,
            workers=workers,
            json_file=json_file,
        )
        return
    there = [name for name in DATA_SETS if data_dir is not None or name not in REAL]
    names = options.listed("data", data, DATA_SETS) if data else there
    settings = (SETTINGS[2], SETTINGS[6], SETTINGS[11]) if quick else SETTINGS
    runs = run_coverage(
        data=names, settings=settings, seeds=seeds, data_dir=data_dir, workers=workers
    )
    total = len(names) * len(settings) * seeds
    found = list(itertools.chain(*collected(runs, what="runs", total=total)))
    summaries = {name: summary(part) for name, part in groups(found).items()}
    rows = []
    for name, row in summaries.items():
        shown = (f"{row.right:.1%}", f"{row.width:.1%}")
        rows.append((name, str(row.segments), str(row.withheld), *shown))
    title = f"95 % intervals of segment sizes, {seeds} runs of each setting"
    show(title, _HEADINGS, rows, left=("runs of",))
    record = {
        "config": {"data": names, "seeds": seeds, "settings": len(settings)},
        "summary": {name: dataclasses.asdict(row) for name, row in summaries.items()},
        "segments": [dataclasses.asdict(one) for one in found],
    }
    write_json(json_file, record)


def _of_figures(
    data: str,
    *,
    settings: tuple[Setting, ...],
    seeds: int,
    data_dir: Path | None,
    workers: int,
    json_file: Path | None,
) -> None:
    """Print how often intervals of figures hold the truth."""
    known = (*CHOSEN_ON, *HELD_OUT)
    there = [name for name in known if data_dir is not None or name not in REAL]
    names = options.listed("data", data, known) if data else there
    runs = run_figures(
        data=names, settings=settings, seeds=seeds, data_dir=data_dir, workers=workers
    )
    total = len(names) * len(settings) * seeds
    found = list(itertools.chain(*collected(runs, what="runs", total=total)))
    rows = []
    for name, part in figure_groups(found).items():
        shown = [one for one in part if one.low is not None]
        right = np.mean([one.right for one in shown]) if shown else float("nan")
        width = np.median([one.width for one in shown]) if shown else float("nan")
        withheld = str(len(part) - len(shown))
        rows.append((name, str(len(part)), withheld, f"{right:.1%}", f"{width:.1%}"))
    headings = ("runs of", "figures", *_HEADINGS[2:])
    show("95 % intervals of figures", headings, rows, left=("runs of",))
    write_json(json_file, {"figures": [dataclasses.asdict(one) for one in found]})
