"""Local clustering algorithms against each other at the same privacy.

One party, no federation: every candidate clusters the same columns with the same mu, and its loss
is divided by that of plain k-means with as many centres. An epsilon stands for the mu of a single
Gaussian release that is (epsilon, 1/n)-private. Two kinds of made-up data: `clusters` is the
paper's mixed Gaussian, `smooth` has no clusters at all but correlated columns, as real tables do.
Candidates that are here for comparison only live in `candidates.py`.
"""

import functools
import itertools
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.candidates import CANDIDATES, Given
from benchmarks.pool import run_jobs
from splitmeans import _validate
from splitmeans._types import FloatArray
from splitmeans.paper.datasets import mixed_gaussian
from splitmeans.privacy.gaussian import gaussian_multiplier
from splitmeans.privacy.noise import InsecureSeededNoise
from splitmeans.simulate.baselines import central_kmeans
from splitmeans.simulate.evaluation import normalised_loss
from splitmeans.study.features import GRID_UNITS

METHODS = tuple(CANDIDATES)
KINDS = ("clusters", "smooth")

# What `--quick` runs instead: minutes become seconds.
QUICK: dict[str, Any] = {"columns": (2, 8), "sizes": (5_000, 20_000), "epsilons": (0.1, 1.0)}

# Plain k-means, the yardstick, sees at most this many rows; more do not change its centres.
_YARDSTICK_ROWS = 100_000

_START_STREAM = 0x57A27


@dataclass(frozen=True, kw_only=True, order=True)
class LocalCase:
    """One table to cluster."""

    kind: str
    n_columns: int
    n: int
    n_clusters: int
    seed: int

    def rows(self) -> FloatArray:
        """Draw the table, shape (n, d), values in [-1, 1]."""
        if self.kind == "clusters":
            drawn = mixed_gaussian(self.n, n_columns=self.n_columns, random_state=self.seed)
            return drawn.rows
        rng = np.random.default_rng([self.seed, self.n_columns])
        # A few hidden causes behind all columns, each column with its own place and width.
        causes = rng.standard_normal((self.n, max(1, self.n_columns // 2)))
        loads = rng.normal(size=(causes.shape[1], self.n_columns)) / np.sqrt(causes.shape[1])
        widths = rng.uniform(0.1, 0.5, self.n_columns)
        places = rng.uniform(-0.5, 0.5, self.n_columns)
        own = 0.5 * rng.standard_normal((self.n, self.n_columns))
        return np.asarray(np.clip(places + widths * (causes @ loads + own), -1, 1))

    def start_rng(self) -> np.random.Generator:
        """Return the generator that starts the algorithms.

        It must share no stream with `rows`: with the data's own seed, a candidate whose first draw
        is uniform starts at the true centres and wins. (A list that ends in zero has the stream of
        the list without it, hence the large number.)
        """
        return np.random.default_rng([self.seed, self.n_columns, _START_STREAM])


@dataclass(frozen=True, kw_only=True)
class LocalScore:
    """What a candidate reached on one table."""

    method: str
    case: LocalCase
    epsilon: float
    mu: float
    loss: float
    loss_ratio: float
    seconds: float


def run_local(
    *,
    methods: Sequence[str] = METHODS,
    kinds: Sequence[str] = KINDS,
    columns: Sequence[int],
    sizes: Sequence[int],
    epsilons: Sequence[float],
    n_clusters: int,
    seeds: int,
    workers: int,
) -> Iterator[LocalScore]:
    """Run every combination, `seeds` tables of each kind and size, and yield scores as they finish.

    Epsilons are explained in the module's text; with one worker all runs in this process.
    """
    for method in methods:
        _validate.one_of(METHODS, methods=method)
    for kind in kinds:
        _validate.one_of(KINDS, kinds=kind)
    runs = list(itertools.product(methods, epsilons))
    jobs = [
        (LocalCase(kind=kind, n_columns=d, n=n, n_clusters=n_clusters, seed=seed), runs)
        for n, kind, d, seed in itertools.product(sizes, kinds, columns, range(seeds))
    ]
    for _, scores in run_jobs(score_case, jobs, workers=workers):
        yield from scores


def score_case(case: LocalCase, runs: Sequence[tuple[str, float]]) -> list[LocalScore]:
    """Run methods at epsilons on one table; the yardstick is computed once."""
    rows = case.rows()
    yardstick = normalised_loss(
        rows, central_kmeans(rows[:_YARDSTICK_ROWS], case.n_clusters, random_state=case.seed)
    )
    grid_rows = np.rint(rows * GRID_UNITS).astype(np.int64)
    bounds = (GRID_UNITS,) * case.n_columns
    scores = []
    for method, epsilon in runs:
        mu = mu_of(epsilon, delta=1 / case.n)
        given = Given(
            raw_rows=grid_rows,
            bounds=bounds,
            n_clusters=case.n_clusters,
            epsilon=epsilon,
            mu=mu,
            noise=InsecureSeededNoise(case.seed),
            rng=case.start_rng(),
        )
        started = time.perf_counter()
        centres = CANDIDATES[method](given)
        seconds = time.perf_counter() - started
        loss = normalised_loss(rows, centres / GRID_UNITS)
        scores.append(
            LocalScore(
                method=method,
                case=case,
                epsilon=epsilon,
                mu=mu,
                loss=loss,
                loss_ratio=loss / yardstick,
                seconds=seconds,
            )
        )
    return scores


@functools.cache
def mu_of(epsilon: float, *, delta: float) -> float:
    """Return the mu of a Gaussian release that is (epsilon, delta)-private."""
    return 1 / gaussian_multiplier(epsilon, delta)
