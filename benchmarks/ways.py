"""The same tables with bounds or categories that are given, and with those that a run learns."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from benchmarks.pool import run_jobs


@dataclass(frozen=True, kw_only=True)
class Score:
    """What one run gave; no ratio where it was refused before anything was spent."""

    data: str
    users: int
    epsilon: float
    way: str
    seed: int
    loss_ratio: float | None


S = TypeVar("S", bound=Score)
# Runs a table by its name, with an epsilon, a way, a seed and the folder of data files.
RunOne = Callable[[str, float, str, int, Path | None], S]


def run_ways(
    run_one: RunOne[S],
    names: Sequence[str],
    *,
    ways: Sequence[str],
    epsilons: Sequence[float],
    seeds: int,
    data_dir: Path | None,
    workers: int,
) -> Iterator[S]:
    """Run every table in every way."""
    tasks = [
        (name, epsilon, way, seed, data_dir)
        for name in names
        for epsilon in epsilons
        for way in ways
        for seed in range(seeds)
    ]
    for _, score in run_jobs(run_one, tasks, workers=workers):
        yield score


def ratio_text(scores: Sequence[Score], *, way: str, over: str) -> str:
    """Return the mean ratio of one way over that of another, or that it was refused."""
    means = []
    for one in (way, over):
        known = [s.loss_ratio for s in scores if s.way == one and s.loss_ratio is not None]
        if not known:
            return "refused"
        means.append(sum(known) / len(known))
    return f"{means[0] / means[1]:.3f}"
