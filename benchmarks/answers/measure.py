"""All questions and uses of all runs, and how they are summed up."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.answers.questions import Figure, ask_all
from benchmarks.answers.uses import (
    Changes,
    List,
    Lookalikes,
    campaign,
    drift,
    lookalikes,
    overlaps,
)
from benchmarks.answers.whole_runs import MIXED, Setting, load_pooled, run
from benchmarks.pool import run_jobs

# Which share of the users a party has where sets are partial.
PARTIAL = 0.7
_MOST_MIXED = 3


@dataclass(frozen=True, kw_only=True)
class Asked:
    """Everything that was asked of one run."""

    setting: Setting
    fit_seconds: float
    figures: tuple[Figure, ...]
    lookalikes: tuple[Lookalikes, ...] = ()
    lists: tuple[List, ...] = ()
    changes: tuple[Changes, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Line:
    """Figures of one kind: medians, in hundredths of their unit."""

    figures: int
    withheld: int
    right: float | None
    error: float
    width: float | None
    seconds: float


def settings_of(
    *,
    data: Sequence[str],
    parties: Sequence[int],
    epsilons: Sequence[float],
    seeds: int,
    users: int,
) -> list[Setting]:
    """Return the runs: equal sets, and partial ones once for each table and number of parties.

    Mixed tables are split between two or three parties, and no others.
    """
    found = []
    for name, number, seed in itertools.product(data, parties, range(seeds)):
        if name in MIXED and number > _MOST_MIXED:
            continue
        found += [
            Setting(
                data=name, n_parties=number, epsilon=epsilon, share=share, users=users, seed=seed
            )
            for epsilon, share in (
                *((epsilon, 1.0) for epsilon in epsilons),
                (epsilons[0], PARTIAL),
            )
        ]
    return found


def run_all(settings: Sequence[Setting], *, data_dir: Path | None, workers: int) -> Iterator[Asked]:
    """Yield what was asked of each run."""
    jobs = [(setting, data_dir) for setting in settings]
    for _, asked in run_jobs(ask_one, jobs, workers=workers):
        yield asked


def ask_one(setting: Setting, data_dir: Path | None) -> Asked:
    """Run a setting and ask everything; users of partial sets are counted, not ranked."""
    scene = run(setting, load_pooled(setting, data_dir))
    figures = list(ask_all(scene))
    if setting.share < 1:
        figures += overlaps(scene)
        return Asked(setting=setting, fit_seconds=scene.seconds, figures=tuple(figures))
    return Asked(
        setting=setting,
        fit_seconds=scene.seconds,
        figures=tuple(figures),
        lookalikes=tuple(lookalikes(scene)),
        lists=tuple(campaign(scene)),
        changes=tuple(drift(scene)),
    )


def by_kind(asked: Sequence[Asked]) -> dict[str, list[Figure]]:
    """Return the figures by what was asked."""
    found: dict[str, list[Figure]] = {}
    for figure in (figure for one in asked for figure in one.figures):
        found.setdefault(figure.kind, []).append(figure)
    return found


def by_run(asked: Sequence[Asked]) -> dict[str, list[Figure]]:
    """Return the figures by table, and by parties, epsilon and kind of user sets."""
    found: dict[str, list[Figure]] = {}
    for one in asked:
        sets = "equal sets" if one.setting.share == 1 else "partial sets"
        for name in (
            f"table {one.setting.data}",
            f"{one.setting.n_parties} parties, epsilon {one.setting.epsilon:g}, {sets}",
            "all",
        ):
            found.setdefault(name, []).extend(one.figures)
    return dict(sorted(found.items(), key=lambda row: (row[0] == "all", row[0])))


def line(figures: Sequence[Figure]) -> Line:
    """Sum some figures up."""
    known = [figure for figure in figures if figure.right is not None]
    return Line(
        figures=len(figures),
        withheld=len(figures) - len(known),
        right=float(np.mean([figure.right for figure in known])) if known else None,
        error=100 * float(np.median([figure.error for figure in figures])),
        width=100 * float(np.median([figure.half_width for figure in known])) if known else None,
        seconds=float(np.median([figure.seconds for figure in figures])),
    )
