"""The loss of private clustering of split data, over that of k-means without privacy.

Every row of the table is a setting that runs with several seeds. On demand a row also has the
ratios of other methods, what a step of the decoder gains, and how good another k is that a run was
not planned for; these run on the same data with the same noise, and are paired by seed.
"""

import dataclasses
import importlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.accuracy_rows import Row
from benchmarks.cases import Case, make_case
from benchmarks.methods import METHODS, score_outcome
from benchmarks.pool import run_jobs
from splitmeans.errors import ParameterError
from splitmeans.simulate.evaluation import normalised_loss

OURS = "decoy"
OWN = ("ratio", "users", "k'", "kB", "seconds")
_RECIPE = "splitmeans.synopsis.recipe"

# The figures of one run by the name of their column.
Found = dict[str, float | None]


@dataclass(frozen=True, kw_only=True)
class Extras:
    """What is measured in addition.

    Attributes:
        methods: Further methods: ratios of their own.
        without: Names of decoder steps: the ratio without the step minus the ratio with it.
        other_k: Loss of this k from a run planned for the row's, over that of a run planned for it.
    """

    methods: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    other_k: int | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of their figures."""
        other = () if self.other_k is None else (f"asked for {self.other_k}",)
        return (*self.methods, *(f"without {step}" for step in self.without), *other)


def run_rows(
    rows: Sequence[Row], extras: Extras, *, seeds: int, data_dir: Path | None, workers: int
) -> Iterator[tuple[Row, list[Found]]]:
    """Yield the rows in their order with the figures of all seeds, each as soon as it is known."""
    jobs = [(row, seed, extras, data_dir) for row in rows for seed in range(seeds)]
    runs: dict[Row, dict[int, Found]] = {row: {} for row in rows}
    waiting = list(rows)
    for (row, seed, *_), found in run_jobs(run_one, jobs, workers=workers):
        runs[row][seed] = found
        while waiting and len(runs[waiting[0]]) == seeds:
            done = waiting.pop(0)
            yield done, [runs[done][number] for number in range(seeds)]


def run_one(row: Row, seed: int, extras: Extras, data_dir: Path | None) -> Found:
    """Run one seed of a row."""
    case = make_case(row.setting(seed, data_dir))
    score, outcome = score_outcome(METHODS[OURS], case)
    assert score.bytes_per_party is not None
    assert outcome.model is not None
    found: Found = {
        "ratio": score.loss_ratio,
        "users": len(case.rows),
        "k'": score.n_local_clusters,
        "kB": score.bytes_per_party / 1000,
        "seconds": score.seconds,
    }
    others: list[float | None] = [
        score_outcome(METHODS[name], case)[0].loss_ratio for name in extras.methods
    ]
    for step in extras.without:
        with _recipe().without(step):
            others.append(score_outcome(METHODS[OURS], case)[0].loss_ratio - score.loss_ratio)
    if extras.other_k is not None:
        others.append(_of_other_k(case, outcome.model.published_, extras.other_k))
    return found | dict(zip(extras.columns, others, strict=True))


def _of_other_k(case: Case, result: Any, k: int) -> float | None:
    """Return the loss of k segments of a result, over that of a run that was planned for k.

    None where the run was planned for k itself, or has users at fewer places.
    """
    if k == case.n_clusters or k > result.most_segments:
        return None
    asked = result.segments(k).scaled_centres
    planned = dataclasses.replace(case, setting=dataclasses.replace(case.setting, n_clusters=k))
    return normalised_loss(case.pooled, asked) / score_outcome(METHODS[OURS], planned)[0].loss


def step_names() -> tuple[str, ...]:
    """Return the names of the decoder's steps."""
    return tuple(dict(_recipe().STEPS))


def _recipe() -> Any:
    try:
        return importlib.import_module(_RECIPE)
    except ModuleNotFoundError as problem:
        raise ParameterError(
            f"--without needs a decoder of named steps; this version has no {_RECIPE}"
        ) from problem
