"""`renewal`: runs of a series under one budget, against studies whose epsilons add up."""

from dataclasses import asdict

import numpy as np

from benchmarks.commands import options
from benchmarks.commands.output import collected, show, write_json
from benchmarks.renewal import WAYS, Series, run_series
from splitmeans.cli.console import Quiet


def renewal(
    data: options.DataNames = "mixed-gaussian",
    data_dir: options.DataDir = None,
    clusters: options.Counts = "5,10",
    epsilon: options.Epsilon = 1.0,
    delta: options.Delta = 1e-6,
    users: options.Users = 20_000,
    seeds: options.Seeds = 3,
    quick: options.Quick = False,
    json_file: options.JsonFile = None,
    quiet: Quiet = False,
) -> None:
    """Eight runs as users change: loss ratios of a series, chained or not, and of single studies.

    Example: python -m benchmarks renewal --clusters 10 --seeds 2 --json renewal.json
    """
    names = [name.strip() for name in data.split(",")]
    numbers = options.numbers("clusters", clusters, int)
    if quick:
        names, numbers, seeds, users = names[:1], numbers[:1], 1, min(users, 5_000)
    found = []
    for name in names:
        for k in numbers:
            series = Series(data=name, n_clusters=k, epsilon=epsilon, delta=delta, users=users)
            for seed in range(seeds):
                rows = run_series(series, seed=seed, data_dir=data_dir)
                total = series.runs * len(WAYS)
                found += collected(rows, what=f"{name}, k = {k}, seed {seed}", total=total)
    lines = []
    for name in names:
        for k in numbers:
            for way in WAYS:
                own = [
                    row for row in found if (row.data, row.n_clusters, row.way) == (name, k, way)
                ]
                ratios = [row.ratio for row in own]
                by_run = [
                    f"{np.mean([row.ratio for row in own if row.run == run]):.3f}"
                    for run in range(1, 9)
                ]
                mean, worst = f"{np.mean(ratios):.3f}", f"{np.max(ratios):.3f}"
                lines.append((name, str(k), way, mean, worst, " ".join(by_run)))
    headings = ("data", "k", "runs are", "mean", "worst", "mean of run 1 to 8")
    title = f"loss ratio of eight runs, epsilon {epsilon:g} for all of them, {seeds} seeds"
    show(title, headings, lines, left=("data", "runs are", "mean of run 1 to 8"))
    write_json(json_file, {"rows": [asdict(row) for row in found]})
