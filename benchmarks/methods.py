"""The compared methods by name: the one table of them, and how each runs on a case."""

import functools
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.cases import Case
from benchmarks.local import mu_of
from benchmarks.metrics import true_cell_weights
from benchmarks.peer_libraries import import_diffprivlib
from splitmeans._types import FloatArray, IntArray
from splitmeans.estimator import VerticalKMeans
from splitmeans.kernels.assign import nearest
from splitmeans.kmeans.nearest import nearest_centres
from splitmeans.local.guided_lloyd import GuidedLloyd
from splitmeans.paper import Settings, vertical_clustering
from splitmeans.paper.algorithm1 import server_phase
from splitmeans.paper.baselines import central_dplsf, vertical_kmeans
from splitmeans.paper.metrics import v_score, weight_error
from splitmeans.privacy.noise import InsecureSeededNoise
from splitmeans.protocol import RunResult
from splitmeans.server.combine import combine
from splitmeans.simulate.evaluation import assign_labels, normalised_loss
from splitmeans.study.features import GRID_UNITS


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Centres in distance units, and what the method's run tells beside them.

    `weights` are the estimated and `true_weights` the exact cell counts under the run's local
    centres, `server_again` does the server's work once more with a seed, and `model` is the fitted
    model of methods that run the protocol.
    """

    scaled_centres: FloatArray
    weight_error: float | None = None
    bytes_per_party: float | None = None
    n_local_clusters: int | None = None
    weights: FloatArray | None = None
    true_weights: IntArray | None = None
    server_again: Callable[[int], None] | None = None
    model: VerticalKMeans | None = None


@dataclass(frozen=True, kw_only=True)
class Score:
    """What a method reached on one case."""

    loss: float
    loss_ratio: float
    v_measure: float
    weight_error: float | None
    bytes_per_party: float | None
    n_local_clusters: int | None
    seconds: float


# Runs on a case; those of the protocol take further parameters of `VerticalKMeans`.
Method = Callable[..., Outcome]

_START_STREAM = 0xACC


def score_outcome(method: Method, case: Case) -> tuple[Score, Outcome]:
    """Run a method on a case; return the figures and what they came from."""
    started = time.perf_counter()
    outcome = method(case)
    seconds = time.perf_counter() - started
    loss = normalised_loss(case.pooled, outcome.scaled_centres)
    scored = Score(
        loss=loss,
        loss_ratio=loss / case.central_loss,
        v_measure=v_score(case.labels, assign_labels(case.pooled, outcome.scaled_centres)),
        weight_error=outcome.weight_error,
        bytes_per_party=outcome.bytes_per_party,
        n_local_clusters=outcome.n_local_clusters,
        seconds=seconds,
    )
    return scored, outcome


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
    centres = central_dplsf(
        case.pooled,
        case.n_clusters,
        epsilon=case.setting.epsilon,
        delta=case.delta,
        noise=InsecureSeededNoise(case.setting.seed),
        rng=_start_rng(case),
    )
    return Outcome(scaled_centres=centres)


def _central_guided_lloyd(case: Case) -> Outcome:
    """Guided Lloyd on the pooled rows, with all of the budget under exact accounting."""
    rows = np.hstack(case.grid_blocks)
    mechanism = GuidedLloyd(
        n_clusters=case.n_clusters,
        bounds=(GRID_UNITS,) * rows.shape[1],
        mu=mu_of(case.setting.epsilon, delta=case.delta),
    )
    noise = InsecureSeededNoise(case.setting.seed)
    centres = mechanism.release(rows, noise=noise, rng=_start_rng(case)).centres
    return Outcome(scaled_centres=centres / GRID_UNITS)


def _vertical_plain(case: Case) -> Outcome:
    k = case.n_clusters
    centres = vertical_kmeans(_datasets(case), k, n_local_clusters=k, rng=_start_rng(case))
    return Outcome(scaled_centres=centres)


def _datasets(case: Case) -> list[FloatArray]:
    """Return each party's columns of the population."""
    return [case.rows[:, columns] for columns in case.party_columns]


def _central_diffprivlib(case: Case) -> Outcome:
    """k-means of the library diffprivlib on the pooled rows, where it is installed."""
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


def federated(case: Case, **parameters: Any) -> Outcome:
    """Run the protocol with these parameters of `VerticalKMeans`."""
    seed = case.setting.seed
    model = VerticalKMeans(
        case.n_clusters,
        epsilon=case.setting.epsilon,
        delta=case.delta_below,
        expected_users=case.expected_users,
        user_sets="equal" if case.setting.presence == 1 else "partial",
        population=case.setting.population,
        noise=InsecureSeededNoise(seed),
        random_state=_START_STREAM + seed,
        **case.drawn.parameters,
        **parameters,
    )
    with warnings.catch_warnings():
        # Finding out where noise leaves few segments or none is what a benchmark is for.
        warnings.filterwarnings("ignore", message="asked for k = |the released counts hold no")
        model.fit(case.blocks, ids=case.party_users)
    done = model.result_.server
    names = model.study_.party_names
    error, truth = None, None
    if done.weights is not None:
        labels = [
            nearest(rows, done.releases[name].centres)
            for rows, name in zip(case.grid_blocks, names, strict=True)
        ]
        truth = true_cell_weights(labels, done.plan.n_local_clusters)
        error = weight_error(done.weights, truth)
    return Outcome(
        scaled_centres=done.clustering.scaled_centres,
        weight_error=error,
        bytes_per_party=float(np.mean([model.result_.bytes_from(name) for name in names])),
        n_local_clusters=max(done.plan.n_local_clusters),
        weights=done.weights,
        true_weights=truth,
        server_again=functools.partial(_server_again, model.result_),
        model=model,
    )


def _server_again(run: RunResult, seed: int) -> None:
    """Do the server's work from the parties' messages to the segments again."""
    releases = [run.server.releases[name] for name in run.plan.study.party_names]
    rng = np.random.default_rng(seed)
    synopsis, _, _ = combine(run.plan, releases, noise=InsecureSeededNoise(seed), rng=rng)
    synopsis.cluster(run.plan.study.n_clusters, random_state=rng)


def published(
    case: Case, *, n_local_clusters: int | None = None, repetitions: int = 4096, **parts: Any
) -> Outcome:
    """Run the paper's system with these parts of `splitmeans.paper.Settings`."""
    settings = Settings(
        n_clusters=case.n_clusters,
        epsilon=case.setting.epsilon,
        delta=case.delta,
        n_parties=len(case.party_columns),
        repetitions=repetitions,
        **parts,
    )
    datasets = _datasets(case)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="NOT P")  # of methods that `PUBLISHED` names
        done = vertical_clustering(
            datasets,
            settings,
            n_local_clusters=n_local_clusters,
            noise=InsecureSeededNoise(case.setting.seed),
            rng=_start_rng(case),
        )
    labels = [
        nearest_centres(rows, message.centres)
        for rows, message in zip(datasets, done.messages, strict=True)
    ]
    truth = true_cell_weights(labels, done.weights.shape)

    def again(seed: int) -> None:
        rng = np.random.default_rng(seed)
        server_phase(done.messages, settings, noisy_count=done.noisy_count, rng=rng)

    return Outcome(
        scaled_centres=done.centres,
        weight_error=weight_error(done.weights, truth),
        bytes_per_party=float(np.mean([message.n_bytes for message in done.messages])),
        n_local_clusters=max(done.weights.shape),
        weights=done.weights,
        true_weights=truth,
        server_again=again,
    )


# Methods that run the protocol: parameters of `VerticalKMeans`.
PROTOCOL: dict[str, dict[str, Any]] = {
    "decoy": {"membership": "decoy"},
    "sketch": {"membership": "sketch"},
}

# The paper's methods: parts of `splitmeans.paper.Settings`.
PUBLISHED: dict[str, dict[str, Any]] = {
    "sketch-paper": {"membership": "dpfmps"},
    "sketch-paper-basic": {"membership": "dpfmps", "estimate": "basic"},
    "independent": {"membership": "ind-lap"},
    "ldp": {"membership": "ldp-agg"},
    # One of the two private parts alone, and neither.
    "dplsf-exact-weights": {"membership": "exact", "local": "dplsf"},
    "plain-sketch-paper": {"membership": "dpfmps", "local": "plain"},
    "exact": {"membership": "exact", "local": "plain"},
}

METHODS: dict[str, Method] = {
    "central": _central,
    "vertical-plain": _vertical_plain,
    "central-dplsf": _central_dplsf,
    "central-guided-lloyd": _central_guided_lloyd,
    "central-diffprivlib": _central_diffprivlib,
    **{name: functools.partial(federated, **given) for name, given in PROTOCOL.items()},
    **{name: functools.partial(published, **given) for name, given in PUBLISHED.items()},
}
