"""`splitmeans bench accuracy`: every method on the same data, beside the non-private result."""

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from splitmeans import baselines
from splitmeans._types import FloatArray
from splitmeans.bench.cases import Case, Score, make_case
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
from splitmeans.privacy.noise import InsecureSeededNoise, SecureNoise


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Centres in distance units, and what the method's run tells beside them."""

    scaled_centres: FloatArray
    weight_error: float | None = None
    bytes_per_party: float | None = None
    n_local_clusters: int | None = None


Method = Callable[[Case], Outcome]


def _central(case: Case) -> Outcome:
    return Outcome(scaled_centres=case.central_centres[:, case.order])


def _central_dplsf(case: Case) -> Outcome:
    rows = np.hstack(case.grid_blocks)
    centres = baselines.central_dplsf(
        rows,
        np.full(rows.shape[1], GRID_UNITS, dtype=np.int64),
        n_clusters=case.n_clusters,
        epsilon=case.epsilon,
        delta=case.delta,
        noise=SecureNoise(),
        rng=np.random.default_rng(case.seed),
    )
    return Outcome(scaled_centres=centres)


def _vertical_plain(case: Case) -> Outcome:
    centres = baselines.vertical_kmeans(
        case.grid_blocks,
        n_clusters=case.n_clusters,
        n_local_clusters=case.n_clusters,
        rng=np.random.default_rng(case.seed),
    )
    return Outcome(scaled_centres=centres)


def _federated(**parameters: object) -> Method:
    """A run of the protocol with these parameters of `VerticalKMeans`."""

    def method(case: Case) -> Outcome:
        model = VerticalKMeans(
            case.n_clusters,
            epsilon=case.epsilon,
            delta=case.delta,
            expected_users=case.expected_users,
            noise=InsecureSeededNoise(case.seed),
            random_state=case.seed,
            **parameters,  # type: ignore[arg-type]
        ).fit(case.blocks)
        done = model.result_.server
        centres = [done.releases[name].centres for name in model.study_.party_names]
        labels = [nearest(rows, c) for rows, c in zip(case.grid_blocks, centres, strict=True)]
        weights = done.weights
        truth = true_cell_weights(labels, done.plan.n_local_clusters)
        sent = [model.result_.bytes_from(name) for name in model.study_.party_names]
        return Outcome(
            scaled_centres=done.clustering.scaled_centres,
            weight_error=None if weights is None else weight_error(weights, truth),
            bytes_per_party=float(np.mean(sent)),
            n_local_clusters=max(done.plan.n_local_clusters),
        )

    return method


METHODS: dict[str, Method] = {
    "central": _central,
    "central-dplsf": _central_dplsf,
    "vertical-plain": _vertical_plain,
    "decoy": _federated(membership="decoy"),
    "sketch": _federated(membership="sketch"),
    "sketch-paper": _federated(membership="sketch-paper", accounting="paper"),
    "sketch-paper-basic": _federated(membership="sketch-paper", accounting="paper", grid="joint"),
    "independent": _federated(membership="independent", accounting="paper"),
    "ldp": _federated(membership="ldp", accounting="paper"),
    "dplsf-exact-weights": _federated(membership="exact", accounting="paper", local="dplsf"),
}


def run(
    *,
    data: str,
    methods: Sequence[str],
    epsilons: Sequence[float],
    parties: Sequence[int],
    seeds: int,
    n: int = 20_000,
    workers: int = 2,
    data_dir: Path | None = None,
) -> Iterator[Score]:
    """Run every combination and yield scores as they finish."""
    # Cases with the same data stand together, so that a worker finds its central centres once.
    jobs = [
        (data, method, epsilon, count, seed, n, data_dir)
        for seed, count, epsilon, method in itertools.product(
            range(seeds), parties, epsilons, methods
        )
    ]
    with ProcessPoolExecutor(max_workers=workers) as pool:
        futures = [pool.submit(score, *job) for job in jobs]
        for future in as_completed(futures):
            yield future.result()


def score(
    data: str,
    method: str,
    epsilon: float,
    n_parties: int,
    seed: int,
    n: int,
    data_dir: Path | None = None,
) -> Score:
    """Run one method on one case and measure it."""
    case = make_case(data, epsilon=epsilon, n_parties=n_parties, seed=seed, n=n, data_dir=data_dir)
    started = time.perf_counter()
    outcome = METHODS[method](case)
    seconds = time.perf_counter() - started
    loss = normalised_loss(case.pooled, outcome.scaled_centres)
    return Score(
        method=method,
        data=data,
        epsilon=epsilon,
        n_parties=n_parties,
        seed=seed,
        loss=loss,
        loss_ratio=loss / case.central_loss,
        v_measure=v_measure(case.labels, assign_labels(case.pooled, outcome.scaled_centres)),
        weight_error=outcome.weight_error,
        bytes_per_party=outcome.bytes_per_party,
        n_local_clusters=outcome.n_local_clusters,
        seconds=seconds,
    )
