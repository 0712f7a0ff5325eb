"""The compared methods by name: the one table of them, and how each runs on a case."""

import functools
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks import baselines
from benchmarks.cases import Case
from benchmarks.local import mu_of
from benchmarks.metrics import true_cell_weights, weight_error
from benchmarks.peer_libraries import import_diffprivlib
from splitmeans._types import FloatArray, IntArray
from splitmeans.estimator import VerticalKMeans
from splitmeans.kernels.assign import nearest
from splitmeans.local.algorithms import make_local
from splitmeans.privacy.noise import InsecureSeededNoise
from splitmeans.protocol import RunResult
from splitmeans.study.features import GRID_UNITS


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
    n_labels: int | None = None
    true_weights: IntArray | None = None
    run: RunResult | None = None


# Runs on a case; those of the protocol take further parameters of `VerticalKMeans`.
Method = Callable[..., Outcome]

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


def _central_tight(case: Case, *, method: str) -> Outcome:
    """A local algorithm on the pooled rows, with all of the budget under exact accounting."""
    rows = np.hstack(case.shared_grid_blocks)
    mechanism = make_local(
        method,
        n_clusters=case.n_clusters,
        bounds=(GRID_UNITS,) * rows.shape[1],
        mu=mu_of(case.setting.epsilon, delta=case.delta),
    )
    noise = InsecureSeededNoise(case.setting.seed)
    centres = mechanism.release(rows, noise=noise, rng=_start_rng(case)).centres
    return Outcome(scaled_centres=centres / GRID_UNITS)


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
        allow_unproved=True,
        **parameters,
    )
    with warnings.catch_warnings():
        # Comparing with the published sketch is what a benchmark is for.
        warnings.filterwarnings("ignore", message="membership='sketch-paper'")
        # So is finding out where noise leaves few segments or none.
        warnings.filterwarnings("ignore", message="asked for k = |the released counts hold no")
        model.fit(case.blocks, ids=list(case.party_users))
    done = model.result_.server
    names = model.study_.party_names
    error, truth = None, None
    if done.weights is not None:
        labels = [
            nearest(rows, done.releases[name].centres)
            for rows, name in zip(case.shared_grid_blocks, names, strict=True)
        ]
        truth = true_cell_weights(labels, done.plan.n_local_clusters)
        error = weight_error(done.weights, truth)
    return Outcome(
        scaled_centres=done.clustering.scaled_centres,
        weight_error=error,
        bytes_per_party=float(np.mean([model.result_.bytes_from(name) for name in names])),
        n_local_clusters=max(done.plan.n_local_clusters),
        n_labels=max(done.plan.n_labels),
        true_weights=truth,
        run=model.result_,
    )


# Methods that run the protocol: parameters of `VerticalKMeans`.
PROTOCOL: dict[str, dict[str, Any]] = {
    "decoy": {"membership": "decoy"},
    "sketch": {"membership": "sketch"},
    "sketch-k5": {"membership": "sketch", "n_local_clusters": 5},
    "sketch-paper": {"membership": "sketch-paper", "accounting": "paper"},
    "sketch-paper-basic": {"membership": "sketch-paper", "accounting": "paper", "grid": "joint"},
    "independent": {"membership": "independent", "accounting": "paper"},
    "ldp": {"membership": "ldp", "accounting": "paper"},
    # One of the two private parts alone, and neither.
    "dplsf-exact-weights": {"membership": "exact", "accounting": "paper", "local": "dplsf"},
    "plain-sketch-paper": {"membership": "sketch-paper", "accounting": "paper", "local": "plain"},
    "exact": {"membership": "exact", "accounting": "paper", "local": "plain"},
}

METHODS: dict[str, Method] = {
    "central": _central,
    "vertical-plain": _vertical_plain,
    "central-dplsf": _central_dplsf,
    "central-dplsf-tight": functools.partial(_central_tight, method="dplsf"),
    "central-guided-lloyd": functools.partial(_central_tight, method="guided-lloyd"),
    "central-diffprivlib": _central_diffprivlib,
    **{name: functools.partial(federated, **given) for name, given in PROTOCOL.items()},
}
