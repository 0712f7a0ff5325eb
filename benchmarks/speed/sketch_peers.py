"""Peers of the sketch: the published way in NumPy, and sketches that libraries offer."""

import importlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from benchmarks.speed.inputs import Inputs, fresh_key
from benchmarks.speed.measure import Task
from benchmarks.speed.party import LOCAL_CLUSTERS
from benchmarks.speed.published import published_sketch
from benchmarks.speed.stage import Prepared
from splitmeans.kernels.siphash import hash_ids
from splitmeans.paper import Settings

_REPETITIONS = 4096
_LOG2_REGISTERS = 12
# How much of the work is done where all of it would take minutes: rows times users of the
# published sketch, ids of sketches in pure Python, ids of 4096-row MinHash.
_PUBLISHED_WORK = 2**27
_PYTHON_IDS = 200_000
_MINHASH_IDS = 10_000


def published_peer(inputs: Inputs, *, gamma: float, tuned: bool = False) -> Prepared:
    """The plain way of the paper, of as many rows as a few seconds allow."""
    # Of two parties at a total of (1, 1/n), as in the paper.
    law = Settings(
        n_clusters=LOCAL_CLUSTERS,
        epsilon=1.0,
        delta=1 / inputs.n,
        n_parties=2,
        membership="dpfmps",
        gamma=gamma,
        repetitions=_REPETITIONS,
    ).sketch
    labels, rng = inputs.labels(0, k=LOCAL_CLUSTERS), np.random.default_rng()
    # Ids are hashed and sorted by cluster before: a part of the rows must not pay for all of it.
    order = np.argsort(labels, kind="stable")
    words, labels = hash_ids(fresh_key()[:16], inputs.ids(0))[order, 0], labels[order]
    rows = min(_REPETITIONS, max(16, _PUBLISHED_WORK // inputs.n))
    row_keys = rng.integers(2**64, size=rows, dtype=np.uint64)

    options: dict[str, Any] = {
        "law": law,
        "n_clusters": LOCAL_CLUSTERS,
        "row_keys": row_keys,
        "tuned": tuned,
    }
    task = partial(published_sketch, words, labels, rng=rng, **options)
    return _part(task, done=rows, of=_REPETITIONS, what="rows")


def _part(task: Task, *, done: int, of: int, what: str) -> Prepared:
    if done >= of:
        return Prepared(task=task)
    return Prepared(task=task, factor=of / done, scaled=f"from {done:,} of {of:,} {what}")


def _ids_by_cluster(inputs: Inputs, most: int) -> tuple[list[list[str]], int]:
    """Return the ids of each cluster as Python text, of the first users only if there are many."""
    n = min(inputs.n, most)
    text = np.array(inputs.ids(0).slice(0, n).to_pylist(), dtype=object)
    labels = inputs.labels(0, k=LOCAL_CLUSTERS)[:n]
    return [list(text[labels == label]) for label in range(LOCAL_CLUSTERS)], n


def apache_peer(inputs: Inputs, *, kind: str) -> Prepared:
    """Apache's sketches, "hll" or "theta", one a cluster."""
    library = importlib.import_module("datasketches")
    hll = partial(library.hll_sketch, _LOG2_REGISTERS, library.HLL_8)
    theta = partial(library.update_theta_sketch, _LOG2_REGISTERS)
    clusters, n = _ids_by_cluster(inputs, 1_000_000)
    task = partial(_fill, {"hll": hll, "theta": theta}[kind], clusters)
    return _part(task, done=n, of=inputs.n, what="users")


def hyperloglog_peer(inputs: Inputs) -> Prepared:
    """HyperLogLog in Python, one a cluster."""
    library = importlib.import_module("datasketch")
    clusters, n = _ids_by_cluster(inputs, _PYTHON_IDS)
    task = partial(_fill, partial(library.HyperLogLog, p=_LOG2_REGISTERS), _encoded(clusters))
    return _part(task, done=n, of=inputs.n, what="users")


def minhash_peer(inputs: Inputs) -> Prepared:
    """MinHash in NumPy, one a cluster."""
    library = importlib.import_module("datasketch")
    clusters, n = _ids_by_cluster(inputs, _MINHASH_IDS)
    encoded = _encoded(clusters)

    def task() -> None:
        for ids in encoded:
            library.MinHash(num_perm=_REPETITIONS).update_batch(ids)

    return _part(task, done=n, of=inputs.n, what="users")


def _fill(empty: Callable[[], Any], clusters: Sequence[Sequence[str | bytes]]) -> None:
    """Put the ids of each cluster into a sketch of its own, one by one."""
    for ids in clusters:
        sketch = empty()
        for one in ids:
            sketch.update(one)


def _encoded(clusters: Sequence[Sequence[str]]) -> list[list[bytes]]:
    return [[text.encode() for text in ids] for ids in clusters]
