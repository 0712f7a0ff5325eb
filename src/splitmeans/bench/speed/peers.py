"""What people would use instead: libraries and plain ways, measured on the same tables.

None of the libraries is needed to run splitmeans (`pip install splitmeans[bench]` has them all); a
missing one becomes a line that says so. Conversions to a library's own format are not timed.
"""

import importlib
import importlib.util
import os
import sys
import types
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from splitmeans.bench.speed.inputs import N_CLUSTERS, Inputs, fresh_key
from splitmeans.bench.speed.measure import Task
from splitmeans.bench.speed.party import LOCAL_CLUSTERS, plan_of
from splitmeans.bench.speed.published import published_sketch
from splitmeans.bench.speed.stage import Peer, Prepared
from splitmeans.kernels.siphash import hash_ids
from splitmeans.membership.sketch.law import PublishedSketch

_REPETITIONS = 4096
_LOG2_REGISTERS = 12
# How much of the work is done where all of it would take minutes: rows times users of the
# published sketch, ids of sketches in pure Python, ids of 4096-row MinHash.
_PUBLISHED_WORK = 2**26
_PYTHON_IDS = 200_000
_MINHASH_IDS = 10_000

_JOIN = "SELECT a.label, b.label, count(*) FROM a JOIN b USING ({on}) GROUP BY ALL"


def _kmeans(inputs: Inputs, *, n_init: int) -> Task:
    from sklearn.cluster import KMeans

    rows = inputs.rows

    def task() -> None:
        KMeans(N_CLUSTERS, n_init=n_init, random_state=0).fit(rows)

    return task


def _published(inputs: Inputs, *, gamma: float, tuned: bool = False) -> Prepared:
    given = plan_of(inputs, "sketch-paper").membership
    assert isinstance(given, PublishedSketch)
    law = PublishedSketch(
        epsilon=given.epsilon, delta=given.delta, gamma=gamma, repetitions=given.repetitions
    )
    ids, labels = inputs.ids(0), inputs.labels(0, k=LOCAL_CLUSTERS)
    key, rng = fresh_key()[:16], np.random.default_rng()
    rows = min(_REPETITIONS, max(16, _PUBLISHED_WORK // inputs.n))
    row_keys = rng.integers(2**64, size=rows, dtype=np.uint64)

    def task() -> None:
        published_sketch(
            hash_ids(key, ids)[:, 0],
            labels,
            law=law,
            n_clusters=LOCAL_CLUSTERS,
            row_keys=row_keys,
            rng=rng,
            tuned=tuned,
        )

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


def _apache(inputs: Inputs, *, kind: str) -> Prepared:
    library = importlib.import_module("datasketches")
    clusters, n = _ids_by_cluster(inputs, 1_000_000)

    def empty() -> Any:
        if kind == "hll":
            return library.hll_sketch(_LOG2_REGISTERS, library.HLL_8)
        return library.update_theta_sketch(_LOG2_REGISTERS)

    def task() -> None:
        for ids in clusters:
            sketch = empty()
            for text in ids:
                sketch.update(text)

    return _part(task, done=n, of=inputs.n, what="users")


def _hyperloglog(inputs: Inputs) -> Prepared:
    library = importlib.import_module("datasketch")
    clusters, n = _ids_by_cluster(inputs, _PYTHON_IDS)
    encoded = [[text.encode() for text in ids] for ids in clusters]

    def task() -> None:
        for ids in encoded:
            sketch = library.HyperLogLog(p=_LOG2_REGISTERS)
            for text in ids:
                sketch.update(text)

    return _part(task, done=n, of=inputs.n, what="users")


def _minhash(inputs: Inputs) -> Prepared:
    library = importlib.import_module("datasketch")
    clusters, n = _ids_by_cluster(inputs, _MINHASH_IDS)
    encoded = [[text.encode() for text in ids] for ids in clusters]

    def task() -> None:
        for ids in encoded:
            library.MinHash(num_perm=_REPETITIONS).update_batch(ids)

    return _part(task, done=n, of=inputs.n, what="users")


def _pandas(inputs: Inputs) -> Task:
    pandas = importlib.import_module("pandas")
    frames = [
        pandas.DataFrame(
            {"id": inputs.ids(party).to_pylist(), "label": inputs.labels(party, k=LOCAL_CLUSTERS)}
        )
        for party in range(2)
    ]

    def task() -> None:
        joined = frames[0].merge(frames[1], on="id", suffixes=("_a", "_b"))
        joined.groupby(["label_a", "label_b"]).size()

    return task


def _duckdb(inputs: Inputs, *, by_tag: bool) -> Task:
    duckdb = importlib.import_module("duckdb")
    connection = duckdb.connect(config={"threads": _cores()})
    key = fresh_key()[:16]
    for party, name in enumerate("ab"):
        ids, labels = inputs.ids(party), inputs.labels(party, k=LOCAL_CLUSTERS)
        if by_tag:
            tags = hash_ids(key, ids)
            columns = {"high": tags[:, 0].copy(), "low": tags[:, 1].copy(), "label": labels}
        else:
            columns = {"id": ids, "label": labels}
        connection.register("given", pa.table(columns))
        connection.execute(f"CREATE TABLE {name} AS SELECT * FROM given")
        connection.unregister("given")
    query = _JOIN.format(on="high, low" if by_tag else "id")

    def task() -> None:
        connection.execute(query).fetchall()

    return task


def _cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _diffprivlib(inputs: Inputs) -> Task:
    models = import_diffprivlib()
    rows = np.ascontiguousarray(inputs.rows[:, : inputs.rows.shape[1] // 2])

    def task() -> None:
        models.KMeans(LOCAL_CLUSTERS, epsilon=1.0, bounds=(-1.0, 1.0)).fit(rows)

    return task


def import_diffprivlib() -> Any:
    """Return `diffprivlib.models`.

    Version 0.6.6 does not load beside scikit-learn 1.9, because its random forests use names that
    are gone there. Its k-means does not use them, so an empty module stands in for the forests.
    """
    try:
        return importlib.import_module("diffprivlib.models")
    except ImportError:
        if importlib.util.find_spec("diffprivlib") is None:
            raise
    forest = types.ModuleType("diffprivlib.models.forest")
    vars(forest).update(RandomForestClassifier=None, DecisionTreeClassifier=None)
    sys.modules[forest.__name__] = forest
    return importlib.import_module("diffprivlib.models")


_SKETCHES = ("encode sketch", "encode sketch, gamma 1", "encode sketch-paper")
_JOINS = ("combine decoy", "combine decoy, tags")
_FITS = ("run decoy", "check and run decoy", "run sketch", "check and run sketch")
_NO_PRIVACY = "not private; sets are united and sizes estimated afterwards, not here"

_PEERS = (
    *(
        Peer(
            name=f"scikit-learn KMeans, n_init={n_init}",
            group="fit",
            does="k-means on the pooled table, which no party has; not private",
            against=_FITS,
            prepare=partial(_kmeans, n_init=n_init),
        )
        for n_init in (1, 10)
    ),
    Peer(
        name="published sketch",
        group="encode",
        does="Algorithms 2 and 3 as written, in NumPy: every user hashed 4096 times; gamma 1",
        against=_SKETCHES,
        prepare=partial(_published, gamma=1.0),
    ),
    Peer(
        name="published sketch, gamma 0.1",
        group="encode",
        does="the same with finer registers",
        against=_SKETCHES,
        prepare=partial(_published, gamma=0.1),
    ),
    Peer(
        name="published sketch, tuned",
        group="encode",
        does="the same registers, logarithms taken of the maxima only; gamma 1",
        against=_SKETCHES,
        prepare=partial(_published, gamma=1.0, tuned=True),
    ),
    Peer(
        name="Apache datasketches HLL",
        group="encode",
        does=f"one sketch of 4096 registers per cluster, one register a user; {_NO_PRIVACY}",
        against=_SKETCHES,
        prepare=partial(_apache, kind="hll"),
    ),
    Peer(
        name="Apache datasketches theta",
        group="encode",
        does=f"one sketch of 4096 hashes per cluster, which can intersect; {_NO_PRIVACY}",
        against=_SKETCHES,
        prepare=partial(_apache, kind="theta"),
    ),
    Peer(
        name="datasketch HyperLogLog",
        group="encode",
        does=f"one sketch of 4096 registers per cluster, in Python; {_NO_PRIVACY}",
        against=_SKETCHES,
        prepare=_hyperloglog,
    ),
    Peer(
        name="datasketch MinHash",
        group="encode",
        does=f"4096 rows per cluster, every user in every row, in NumPy; {_NO_PRIVACY}",
        against=_SKETCHES,
        prepare=_minhash,
    ),
    Peer(
        name="pandas merge",
        group="combine",
        does="join on the ids themselves and count by labels; not private",
        against=_JOINS,
        prepare=_pandas,
    ),
    Peer(
        name="DuckDB join of ids",
        group="combine",
        does="join on the ids themselves, loaded before, and count by labels; not private",
        against=_JOINS,
        prepare=partial(_duckdb, by_tag=False),
    ),
    Peer(
        name="DuckDB join of tags",
        group="combine",
        does="join on 128-bit tags as two numbers, loaded before, and count by labels; no decoys",
        against=_JOINS,
        prepare=partial(_duckdb, by_tag=True),
    ),
    Peer(
        name="diffprivlib KMeans",
        group="local",
        does="DPLloyd on one party's eight columns, epsilon 1; noise on floating-point numbers",
        against=("local dplloyd", "local tree-lloyd", "local dplsf"),
        prepare=_diffprivlib,
        most_users=1_000_000,
    ),
)

PEERS = {peer.name: peer for peer in _PEERS}
