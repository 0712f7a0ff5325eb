"""Run one cell with the library and return its figures."""

import dataclasses
import functools
import itertools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cases import Setting, make_case
from benchmarks.data import Recipe
from benchmarks.methods import METHODS, PROTOCOL, PUBLISHED, Method, score_outcome
from benchmarks.metrics import silhouette
from benchmarks.paper.cell import Cell
from splitmeans._types import FloatArray, IntArray
from splitmeans.paper.metrics import weight_error
from splitmeans.simulate.evaluation import assign_labels
from splitmeans.study import SketchOptions
from splitmeans.synopsis.synopsis import Synopsis

Measures = dict[str, float | None]

# What is kept of a score.
_SCORED = (
    *("loss", "loss_ratio", "v_measure", "weight_error"),
    *("bytes_per_party", "n_local_clusters", "seconds"),
)

# Runs of the server's work, of which the shortest counts.
_REPEAT = 3
_SAMPLE_STREAM = 0x51
_GRID_SEGMENTS = 5


def measure(cell: Cell, data_dir: Path | None) -> Measures:
    """Run a cell and return its figures by name."""
    if cell.method in SILHOUETTES:
        started = time.perf_counter()
        value = SILHOUETTES[cell.method](cell, data_dir)
        return {"silhouette": value, "seconds": time.perf_counter() - started}
    case = make_case(_setting(cell, data_dir))
    scored, outcome = score_outcome(_method(cell), case)
    measures: Measures = {name: getattr(scored, name) for name in _SCORED}
    if outcome.weights is not None and outcome.true_weights is not None:
        measures |= weight_details(outcome.weights, outcome.true_weights)
    if cell.timed and outcome.server_again is not None:
        measures["server_seconds"] = server_seconds(outcome.server_again, seed=cell.seed)
    return measures


def weight_details(weights: FloatArray, true_weights: IntArray) -> Measures:
    """Say where a weight error comes from; every figure is over the number of users.

    `weight_total` is the sum of all weights, `weight_empty` that of cells without a user, and
    `pair_error` the error of the weights summed up to pairs of parties, as a mean over pairs.
    """
    n = float(true_weights.sum())
    parties = range(weights.ndim)
    errors = []
    for pair in itertools.combinations(parties, 2):
        others = tuple(axis for axis in parties if axis not in pair)
        errors.append(weight_error(weights.sum(axis=others), true_weights.sum(axis=others)))
    return {
        "weight_total": float(weights.sum()) / n,
        "weight_empty": float(weights[true_weights == 0].sum()) / n,
        "pair_error": float(np.mean(errors)),
    }


def server_seconds(server_again: Callable[[int], None], *, seed: int) -> float:
    """Time the server's work from the parties' messages to the segments, again."""
    times = []
    for _ in range(_REPEAT):
        started = time.perf_counter()
        server_again(seed)
        times.append(time.perf_counter() - started)
    return min(times)


def _setting(cell: Cell, data_dir: Path | None) -> Setting:
    recipe = Recipe() if cell.users is None else Recipe(n=cell.users)
    return Setting(
        data=cell.data,
        # Methods without privacy have none, and no use for it.
        epsilon=1.0 if cell.epsilon is None else cell.epsilon,
        n_parties=cell.n_parties,
        seed=cell.seed,
        recipe=recipe,
        n_clusters=cell.n_clusters,
        data_dir=data_dir,
        party_sizes=cell.party_sizes,
    )


def _method(cell: Cell) -> Method:
    changes: dict[str, Any] = {}
    if cell.method in (*PROTOCOL, *PUBLISHED) and cell.n_local_clusters is not None:
        changes["n_local_clusters"] = cell.n_local_clusters
    if cell.repetitions is not None and cell.method in PROTOCOL:
        changes["sketch"] = SketchOptions(repetitions=cell.repetitions)
    elif cell.repetitions is not None:
        changes["repetitions"] = cell.repetitions
    return functools.partial(METHODS[cell.method], **changes)


def _silhouette(cell: Cell, data_dir: Path | None) -> float:
    """The silhouette of k-means on the pooled rows."""
    case = make_case(_setting(cell, data_dir))
    rng = np.random.default_rng([cell.seed, _SAMPLE_STREAM])
    return silhouette(case.rows, assign_labels(case.rows, case.central_centres), rng=rng)


def _grid_silhouette(cell: Cell, data_dir: Path | None) -> float:
    """The simplified silhouette of a private grid, which costs no privacy."""
    # The grid serves every number of segments, so the fit does not depend on the cell's.
    fit = dataclasses.replace(cell, n_clusters=_GRID_SEGMENTS)
    chosen = _private_grid(_setting(fit, data_dir)).choose_k(
        [cell.n_clusters], random_state=cell.seed
    )
    return chosen.silhouettes[0]


@functools.lru_cache(maxsize=4)
def _private_grid(setting: Setting) -> Synopsis:
    outcome = METHODS["decoy"](make_case(setting))
    assert outcome.model is not None
    synopsis: Synopsis = outcome.model.synopsis_
    return synopsis


# Methods that have a silhouette and no loss.
SILHOUETTES: dict[str, Callable[[Cell, Path | None], float]] = {
    "silhouette": _silhouette,
    "grid-silhouette": _grid_silhouette,
}
