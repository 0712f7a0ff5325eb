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
from splitmeans.bench.speed.party import LOCAL_CLUSTERS
from splitmeans.bench.speed.sketch_peers import (
    apache_peer,
    hyperloglog_peer,
    minhash_peer,
    published_peer,
)
from splitmeans.bench.speed.stage import Peer
from splitmeans.kernels.siphash import hash_ids

_JOIN = "SELECT a.label, b.label, count(*) FROM a JOIN b USING ({on}) GROUP BY ALL"


def _kmeans(inputs: Inputs, *, n_init: int) -> Task:
    from sklearn.cluster import KMeans

    rows = inputs.rows

    def task() -> None:
        KMeans(N_CLUSTERS, n_init=n_init, random_state=0).fit(rows)

    return task


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
        does="Algorithms 2 and 3 as written, in NumPy: each user hashed 4096 times; gamma 1",
        against=_SKETCHES,
        prepare=partial(published_peer, gamma=1.0),
    ),
    Peer(
        name="published sketch, gamma 0.1",
        group="encode",
        does="the same with finer registers",
        against=_SKETCHES,
        prepare=partial(published_peer, gamma=0.1),
    ),
    Peer(
        name="published sketch, tuned",
        group="encode",
        does="the same registers, logarithms taken of the maxima only; gamma 1",
        against=_SKETCHES,
        prepare=partial(published_peer, gamma=1.0, tuned=True),
    ),
    Peer(
        name="Apache datasketches HLL",
        group="encode",
        does=f"one sketch of 4096 registers per cluster, one register a user; {_NO_PRIVACY}",
        against=_SKETCHES,
        prepare=partial(apache_peer, kind="hll"),
    ),
    Peer(
        name="Apache datasketches theta",
        group="encode",
        does=f"one sketch of 4096 hashes per cluster, which can intersect; {_NO_PRIVACY}",
        against=_SKETCHES,
        prepare=partial(apache_peer, kind="theta"),
    ),
    Peer(
        name="datasketch HyperLogLog",
        group="encode",
        does=f"one sketch of 4096 registers per cluster, in Python; {_NO_PRIVACY}",
        against=_SKETCHES,
        prepare=hyperloglog_peer,
    ),
    Peer(
        name="datasketch MinHash",
        group="encode",
        does=f"4096 rows per cluster, every user in every row, in NumPy; {_NO_PRIVACY}",
        against=_SKETCHES,
        prepare=minhash_peer,
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
