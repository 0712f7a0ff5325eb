"""`renewal`: runs of a series under one budget, against studies whose epsilons add up."""

import itertools
from dataclasses import asdict
from typing import Annotated

import numpy as np
import typer

from benchmarks.commands import options
from benchmarks.commands.output import collected, show, write_json
from benchmarks.renewal import DRIFTS, WAYS, Row, Series, run_series
from splitmeans import _validate
from splitmeans.cli.console import Quiet


def renewal(
    data: options.DataNames = "mixed-gaussian",
    data_dir: options.DataDir = None,
    clusters: options.Counts = "5,10",
    drift: Annotated[
        str, typer.Option(help=f"How users change, separated by commas: {', '.join(DRIFTS)}.")
    ] = "some",
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
    names, drifts = ([one.strip() for one in text.split(",")] for text in (data, drift))
    for one in drifts:
        _validate.one_of(DRIFTS, drift=one)
    numbers = options.numbers("clusters", clusters, int)
    if quick:
        names, numbers, drifts, seeds, users = names[:1], numbers[:1], drifts[:1], 1, 5_000
    found: list[Row] = []
    lines = []
    for name, k, how in itertools.product(names, numbers, drifts):
        series = Series(
            data=name, n_clusters=k, drift=how, epsilon=epsilon, delta=delta, users=users
        )
        own: list[Row] = []
        for seed in range(seeds):
            rows = run_series(series, seed=seed, data_dir=data_dir)
            total = series.runs * len(WAYS)
            own += collected(rows, what=f"{name}, k = {k}, {how}, seed {seed}", total=total)
        lines += [_line(way, [row for row in own if row.way == way]) for way in WAYS]
        found += own
    headings = ("data", "k", "drift", "runs are", "mean", "worst", "run 1 to 8", "intervals right")
    title = f"loss ratio of eight runs, epsilon {epsilon:g} for all of them, {seeds} seeds"
    show(title, headings, lines, left=("data", "drift", "runs are", "run 1 to 8"))
    write_json(json_file, {"rows": [asdict(row) for row in found]})


def _line(way: str, rows: list[Row]) -> tuple[str, ...]:
    """Return the line of one way: its mean, its worst, the means of its runs, its intervals."""
    ratios = [row.ratio for row in rows]
    by_run = [
        f"{np.mean([row.ratio for row in rows if row.run == run]):.3f}"
        for run in sorted({row.run for row in rows})
    ]
    segments = sum(row.segments for row in rows)
    right = f"{sum(row.right for row in rows) / segments:.1%} of {segments}" if segments else "-"
    mean, worst = f"{np.mean(ratios):.3f}", f"{np.max(ratios):.3f}"
    first = rows[0]
    words = first.data, str(first.n_clusters), first.drift, way
    return *words, mean, worst, " ".join(by_run), right
