"""What people would use instead: libraries and plain ways, measured on the same tables.

None of the libraries is needed to run splitmeans (`pip install splitmeans[bench]` has them all); a
missing one becomes a line that says so. Conversions to a library's own format are not timed.
"""

import importlib
import os
from collections.abc import Callable
from functools import partial

import numpy as np
import pyarrow as pa

from benchmarks.peer_libraries import import_diffprivlib
from benchmarks.speed.inputs import N_CLUSTERS, Inputs, fresh_key
from benchmarks.speed.measure import Task
from benchmarks.speed.party import LOCAL_CLUSTERS
from benchmarks.speed.sketch_peers import (
    apache_peer,
    hyperloglog_peer,
    minhash_peer,
    published_peer,
)
from benchmarks.speed.stage import Peer, Prepared
from benchmarks.speed.start import FIT
from splitmeans.kernels.siphash import hash_ids

_JOIN = "SELECT a.label, b.label, count(*) FROM a JOIN b USING ({on}) GROUP BY ALL"


def _kmeans(inputs: Inputs, *, n_init: int) -> Task:
    from sklearn.cluster import KMeans

    rows = inputs.rows
    return lambda: KMeans(N_CLUSTERS, n_init=n_init, random_state=0).fit(rows)


def _minibatch(inputs: Inputs) -> Task:
    from sklearn.cluster import MiniBatchKMeans

    rows = inputs.rows
    return lambda: MiniBatchKMeans(N_CLUSTERS, n_init=1, random_state=0).fit(rows)


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

    return lambda: connection.execute(query).fetchall()


def _cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _diffprivlib(inputs: Inputs) -> Task:
    models = import_diffprivlib()
    rows = np.ascontiguousarray(inputs.rows[:, : inputs.rows.shape[1] // 2])
    return lambda: models.KMeans(LOCAL_CLUSTERS, epsilon=1.0, bounds=(-1.0, 1.0)).fit(rows)


_NO_PRIVACY = "not private; sets are united and sizes estimated afterwards, not here"
_POOLED = "k-means on the pooled table, which no party has; not private"
_FITS = (FIT, "run decoy", "check and run decoy", "run sketch", "check and run sketch")

_SKETCH_PEERS: tuple[tuple[str, str, Callable[[Inputs], Prepared]], ...] = (
    (
        "published sketch",
        "Algorithms 2 and 3 as written, in NumPy: each user hashed 4096 times; gamma 1",
        partial(published_peer, gamma=1.0),
    ),
    (
        "published sketch, gamma 0.1",
        "the same with finer registers",
        partial(published_peer, gamma=0.1),
    ),
    (
        "published sketch, tuned",
        "the same registers, logarithms taken of the maxima only; gamma 1",
        partial(published_peer, gamma=1.0, tuned=True),
    ),
    (
        "Apache datasketches HLL",
        f"one sketch of 4096 registers per cluster, one register a user; {_NO_PRIVACY}",
        partial(apache_peer, kind="hll"),
    ),
    (
        "Apache datasketches theta",
        f"one sketch of 4096 hashes per cluster, which can intersect; {_NO_PRIVACY}",
        partial(apache_peer, kind="theta"),
    ),
    (
        "datasketch HyperLogLog",
        f"one sketch of 4096 registers per cluster, in Python; {_NO_PRIVACY}",
        hyperloglog_peer,
    ),
    (
        "datasketch MinHash",
        f"4096 rows per cluster, every user in every row, in NumPy; {_NO_PRIVACY}",
        minhash_peer,
    ),
)
_JOINS: tuple[tuple[str, str, Callable[[Inputs], Task]], ...] = (
    ("pandas merge", "join on the ids themselves and count by labels; not private", _pandas),
    (
        "DuckDB join of ids",
        "join on the ids themselves, loaded before, and count by labels; not private",
        partial(_duckdb, by_tag=False),
    ),
    (
        "DuckDB join of tags",
        "join on 128-bit tags as two numbers, loaded before, and count by labels; no decoys",
        partial(_duckdb, by_tag=True),
    ),
)

_PEERS = (
    *(
        Peer(
            name=f"scikit-learn KMeans, n_init={n_init}",
            group="fit",
            does=_POOLED,
            against=_FITS,
            prepare=partial(_kmeans, n_init=n_init),
        )
        for n_init in (1, 10)
    ),
    Peer(
        name="scikit-learn MiniBatchKMeans",
        group="fit",
        does="the same on batches of 1,024 rows: faster, and of a larger loss",
        against=_FITS,
        prepare=_minibatch,
    ),
    *(
        Peer(
            name=name,
            group="encode",
            does=does,
            against=("encode sketch", "encode sketch, gamma 1"),
            prepare=prepare,
        )
        for name, does, prepare in _SKETCH_PEERS
    ),
    *(
        Peer(
            name=name,
            group="combine",
            does=does,
            against=("combine decoy", "combine decoy, tags"),
            prepare=join,
        )
        for name, does, join in _JOINS
    ),
    Peer(
        name="diffprivlib KMeans",
        group="local",
        does="DPLloyd on one party's eight columns, epsilon 1; noise on floating-point numbers",
        against=("local guided-lloyd",),
        prepare=_diffprivlib,
        most_users=1_000_000,
    ),
)

PEERS = {peer.name: peer for peer in _PEERS}
