"""`coverage`: how often the printed intervals of sizes are right."""

import dataclasses
import itertools

from benchmarks.commands import options
from benchmarks.commands.output import collected, show, write_json
from benchmarks.coverage import DATA_SETS, REAL, SETTINGS, groups, run_coverage, summary
from splitmeans.cli.console import Quiet

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
    quiet: Quiet = False,
) -> None:
    """How often the 95 % intervals of segment sizes hold the users nearest to the centre.

    Example: python -m benchmarks coverage --data-dir DIR --seeds 3 --json coverage.json
    """
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
