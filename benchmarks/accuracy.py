"""Every method on the same data, beside the non-private result."""

import dataclasses
import itertools
import time
from collections.abc import Iterator, Sequence

from benchmarks.cases import Case, Score, Setting, make_case
from benchmarks.methods import METHODS, Method, Outcome
from benchmarks.pool import run_jobs
from splitmeans.paper.metrics import v_score
from splitmeans.simulate.evaluation import assign_labels, normalised_loss


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
    places = itertools.product(range(seeds), parties, epsilons, methods)
    jobs = [
        (method, dataclasses.replace(base, epsilon=epsilon, n_parties=count, seed=seed))
        for seed, count, epsilon, method in places
    ]
    for _, scored in run_jobs(_score, jobs, workers=workers):
        yield scored


def _score(method: str, setting: Setting) -> Score:
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
        v_measure=v_score(case.labels, assign_labels(case.pooled, outcome.scaled_centres)),
        weight_error=outcome.weight_error,
        bytes_per_party=outcome.bytes_per_party,
        n_local_clusters=outcome.n_local_clusters,
        n_labels=outcome.n_labels,
        seconds=seconds,
    )
    return scored, outcome
