"""`splitmeans bench accuracy`: every method on the same data, beside the non-private result."""

import dataclasses
import itertools
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from typing import Any

import numpy as np

from splitmeans import baselines
from splitmeans._types import FloatArray, IntArray
from splitmeans.bench.cases import Case, Score, Setting, make_case
from splitmeans.bench.local import mu_of
from splitmeans.estimator import VerticalKMeans
from splitmeans.evaluation import (
    assign_labels,
    normalised_loss,
    true_cell_weights,
    v_measure,
    weight_error,
)
from splitmeans.features import GRID_UNITS
from splitmeans.kernels.assign import nearest
from splitmeans.local.mechanisms import make_local
from splitmeans.privacy.noise import InsecureSeededNoise
from splitmeans.protocol import RunResult


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Centres in distance units, and what the method's run tells beside them.

    `true_weights` are the exact cell counts under the run's local centres, and `run` is all that
    the protocol produced; only methods that run the protocol have them.
    """

    scaled_centres: FloatArray
    weight_error: float | None = None
    bytes_per_party: float | None = None
    n_local_clusters: int | None = None
    true_weights: IntArray | None = None
    run: RunResult | None = None


Method = Callable[[Case], Outcome]

_START_STREAM = 0xACC


def _start_rng(case: Case) -> np.random.Generator:
    """Return the generator that starts an algorithm.

    Its stream must not be that of the data: an algorithm that draws the same uniform numbers would
    start at the true centres.
    """
    return np.random.default_rng([case.setting.seed, _START_STREAM])


def _central(case: Case) -> Outcome:
    return Outcome(scaled_centres=case.central_centres[:, case.order])


def _central_dplsf(case: Case) -> Outcome:
    """DPLSF on the pooled rows, its budget divided as published."""
    rows = np.hstack(case.shared_grid_blocks)
    centres = baselines.central_dplsf(
        rows,
        np.full(rows.shape[1], GRID_UNITS, dtype=np.int64),
        n_clusters=case.n_clusters,
        epsilon=case.setting.epsilon,
        delta=case.delta,
        noise=InsecureSeededNoise(case.setting.seed),
        rng=_start_rng(case),
    )
    return Outcome(scaled_centres=centres)


def _central_tight(method: str) -> Method:
    """A local algorithm on the pooled rows, with all of the budget under exact accounting."""

    def run(case: Case) -> Outcome:
        rows = np.hstack(case.shared_grid_blocks)
        mechanism = make_local(
            method,
            n_clusters=case.n_clusters,
            bounds=(GRID_UNITS,) * rows.shape[1],
            mu=mu_of(case.setting.epsilon, delta=case.delta),
        )
        noise = InsecureSeededNoise(case.setting.seed)
        centres = mechanism.release(rows, noise=noise, rng=_start_rng(case))
        return Outcome(scaled_centres=centres / GRID_UNITS)

    return run


def _vertical_plain(case: Case) -> Outcome:
    centres = baselines.vertical_kmeans(
        case.shared_grid_blocks,
        case.n_clusters,
        n_local_clusters=case.n_clusters,
        rng=_start_rng(case),
    )
    return Outcome(scaled_centres=centres)


def _central_diffprivlib(case: Case) -> Outcome:
    """k-means of the library diffprivlib on the pooled rows, where it is installed."""
    # It is no dependency of ours, and the module that finds it loads other libraries.
    from splitmeans.bench.speed.peers import import_diffprivlib

    with warnings.catch_warnings():
        # Another library's warnings would be the same in every run.
        warnings.simplefilter("ignore")
        model = import_diffprivlib().KMeans(
            case.n_clusters,
            epsilon=case.setting.epsilon,
            bounds=(-1.0, 1.0),
            random_state=_START_STREAM + case.setting.seed,
        )
        fitted = model.fit(case.pooled)
    return Outcome(scaled_centres=np.asarray(fitted.cluster_centers_, dtype=np.float64))


def federated(**parameters: Any) -> Method:
    """Return the method that runs the protocol with these parameters of `VerticalKMeans`."""

    def method(case: Case) -> Outcome:
        seed = case.setting.seed
        as_published = parameters.get("accounting") == "paper"
        model = VerticalKMeans(
            case.n_clusters,
            epsilon=case.setting.epsilon,
            delta=case.delta if as_published else case.delta_below,
            bounds=(-1, 1),
            expected_users=case.expected_users,
            user_sets="equal" if case.setting.overlap == 1 else "partial",
            noise=InsecureSeededNoise(seed),
            random_state=_START_STREAM + seed,
            **parameters,
        )
        with warnings.catch_warnings():
            # Comparing with the published sketch is what a benchmark is for.
            warnings.filterwarnings("ignore", message="membership='sketch-paper'")
            # So is finding out where noise leaves few segments or none.
            warnings.filterwarnings("ignore", message="asked for k = |the released counts hold no")
            model.fit(case.blocks, ids=list(case.party_users))
        done = model.result_.server
        centres = [done.releases[name].centres for name in model.study_.party_names]
        labels = [
            nearest(rows, c) for rows, c in zip(case.shared_grid_blocks, centres, strict=True)
        ]
        error, truth = None, None
        if done.weights is not None:
            truth = true_cell_weights(labels, done.plan.n_local_clusters)
            error = weight_error(done.weights, truth)
        sent = [model.result_.bytes_from(name) for name in model.study_.party_names]
        return Outcome(
            scaled_centres=done.clustering.scaled_centres,
            weight_error=error,
            bytes_per_party=float(np.mean(sent)),
            n_local_clusters=max(done.plan.n_local_clusters),
            true_weights=truth,
            run=model.result_,
        )

    return method


METHODS: dict[str, Method] = {
    "central": _central,
    "vertical-plain": _vertical_plain,
    "central-dplsf": _central_dplsf,
    "central-dplsf-tight": _central_tight("dplsf"),
    "central-tree-lloyd": _central_tight("tree-lloyd"),
    "central-diffprivlib": _central_diffprivlib,
    "decoy": federated(membership="decoy"),
    "sketch": federated(membership="sketch"),
    "sketch-k5": federated(membership="sketch", n_local_clusters=5),
    "sketch-paper": federated(membership="sketch-paper", accounting="paper"),
    "sketch-paper-basic": federated(membership="sketch-paper", accounting="paper", grid="joint"),
    "independent": federated(membership="independent", accounting="paper"),
    "ldp": federated(membership="ldp", accounting="paper"),
    "dplsf-exact-weights": federated(membership="exact", accounting="paper", local="dplsf"),
}


def run(
    base: Setting,
    *,
    methods: Sequence[str],
    epsilons: Sequence[float],
    parties: Sequence[int],
    seeds: int,
    workers: int = 2,
) -> Iterator[Score]:
    """Run every combination and yield scores as they finish."""
    # Cases with the same data stand together, so that a worker finds its central centres once.
    jobs = [
        (method, dataclasses.replace(base, epsilon=epsilon, n_parties=count, seed=seed))
        for seed, count, epsilon, method in itertools.product(
            range(seeds), parties, epsilons, methods
        )
    ]
    if workers == 1:
        yield from itertools.starmap(score, jobs)
        return
    with ProcessPoolExecutor(max_workers=workers) as pool:
        for future in as_completed([pool.submit(score, *job) for job in jobs]):
            yield future.result()


def score(method: str, setting: Setting) -> Score:
    """Run one method on one case and measure it."""
    return score_outcome(method, METHODS[method], make_case(setting))[0]


def score_outcome(name: str, method: Method, case: Case) -> tuple[Score, Outcome]:
    """Run a method on a case; return the figures and what it came from."""
    started = time.perf_counter()
    outcome = method(case)
    seconds = time.perf_counter() - started
    setting = case.setting
    loss = normalised_loss(case.pooled, outcome.scaled_centres)
    scored = Score(
        method=name,
        data=setting.data,
        epsilon=setting.epsilon,
        n_parties=setting.n_parties,
        seed=setting.seed,
        loss=loss,
        loss_ratio=loss / case.central_loss,
        v_measure=v_measure(case.labels, assign_labels(case.pooled, outcome.scaled_centres)),
        weight_error=outcome.weight_error,
        bytes_per_party=outcome.bytes_per_party,
        n_local_clusters=outcome.n_local_clusters,
        seconds=seconds,
    )
    return scored, outcome
