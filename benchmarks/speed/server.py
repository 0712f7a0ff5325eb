"""Stages at the server: from received bytes to tables, to pseudo-users, and k-means on them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from benchmarks.speed.inputs import N_CLUSTERS, Inputs, fresh_key
from benchmarks.speed.measure import Task
from benchmarks.speed.party import (
    LOCAL_CLUSTERS,
    METHODS,
    encode_party,
    plan_of,
    some_centres,
)
from benchmarks.speed.stage import Stage
from splitmeans._types import FloatArray
from splitmeans.kmeans.weighted_kmeans import RESTARTS, weighted_kmeans
from splitmeans.membership.bundles import Bundles
from splitmeans.plan.grid_limits import N_POINTS
from splitmeans.plan.plan import Plan
from splitmeans.privacy.noise import SecureNoise
from splitmeans.server.combine import check_release, combine
from splitmeans.synopsis.build import build_synopsis
from splitmeans.synopsis.decode import Released
from splitmeans.synopsis.decode import decode as decode_tables
from splitmeans.synopsis.synopsis import Synopsis
from splitmeans.wire.codec import decode, encode
from splitmeans.wire.messages import PartyRelease

# The large case of the paper's timing table.
MANY_PARTIES, MANY_CLUSTERS = 4, 8


def _received(inputs: Inputs, plan: Plan) -> list[bytes]:
    """Return every party's release as bytes."""
    run_key = fresh_key()
    releases = []
    for position, party in enumerate(plan.study.parties):
        membership = encode_party(inputs, plan, position, run_key=run_key)
        k = plan.n_local_clusters[position]
        centres = some_centres(len(party.columns), k=k)
        n_points = plan.study.n_points
        points = some_centres(len(party.columns), k=n_points).astype(np.int32)
        release = PartyRelease(centres=centres, points=points, membership=membership)
        releases.append(encode(release))
    return releases


def _combine(inputs: Inputs, *, method: str, k: int = LOCAL_CLUSTERS, n_parties: int = 2) -> Task:
    plan = plan_of(inputs, method, k=k, n_parties=n_parties)
    received = _received(inputs, plan)

    def task() -> None:
        releases = [decode(data) for data in received]
        for party, release in zip(plan.study.party_names, releases, strict=True):
            check_release(plan, party, release)
        combine(plan, releases, noise=SecureNoise(), rng=np.random.default_rng())

    return task


@dataclass(frozen=True, kw_only=True)
class _Counted:
    """An estimator that knows the whole table, so that decoding alone is timed; all are there."""

    counts: FloatArray

    @property
    def n_local_clusters(self) -> tuple[int, ...]:
        return self.counts.shape

    def one(self, party: int) -> FloatArray:
        return self.joint([party])

    def joint(self, parties: Sequence[int]) -> FloatArray:
        others = tuple(axis for axis in range(self.counts.ndim) if axis not in parties)
        return np.asarray(self.counts.sum(axis=others))

    def with_absent(self, pair: tuple[int, ...]) -> FloatArray:
        return np.pad(self.joint(pair), ((0, 1), (0, 1)))

    def presence(self) -> tuple[FloatArray, float]:
        found = np.zeros((2,) * self.counts.ndim)
        found.flat[0] = self.counts.sum()
        return found, 1.0

    def deviation(self, group: tuple[int, ...]) -> float:
        return float(MANY_CLUSTERS)


def _counted(inputs: Inputs) -> _Counted:
    shape = (MANY_CLUSTERS,) * MANY_PARTIES
    # Labels by user: each party's rows are in an order of its own.
    labels = []
    for party in range(MANY_PARTIES):
        by_user = np.empty(inputs.n, dtype=np.int64)
        by_user[inputs.order(party)] = inputs.labels(party, k=MANY_CLUSTERS)
        labels.append(by_user)
    cells = np.ravel_multi_index(tuple(labels), shape)
    counts = np.bincount(cells, minlength=MANY_CLUSTERS**MANY_PARTIES).reshape(shape)
    noise = np.random.default_rng(0).normal(0, 1, shape)
    return _Counted(counts=counts + noise)


def _decode(inputs: Inputs) -> Task:
    parties = inputs.study(n_parties=MANY_PARTIES).parties
    widths = (MANY_CLUSTERS,) * MANY_PARTIES
    released = Released(
        estimator=_counted(inputs),
        bundles=Bundles(n_local_clusters=widths, n_labels=widths),
        centres=[some_centres(len(party.columns), k=MANY_CLUSTERS) for party in parties],
        points=[some_centres(len(party.columns), k=N_POINTS) for party in parties],
        n_segments=N_CLUSTERS,
    )
    return lambda: decode_tables(released, rng=np.random.default_rng())


def _grid(inputs: Inputs) -> Synopsis:
    weights = np.maximum(_counted(inputs).counts, 0.0)
    parties = inputs.study(n_parties=MANY_PARTIES).parties
    centres = [some_centres(len(party.columns), k=MANY_CLUSTERS) for party in parties]
    return build_synopsis(weights, centres, parties)


def _kmeans(inputs: Inputs) -> Task:
    grid = _grid(inputs)
    points, weights = grid.scaled_nodes, grid.weights
    return lambda: weighted_kmeans(
        points, weights, n_clusters=N_CLUSTERS, rng=np.random.default_rng()
    )


def _kmeans_of_scikit_learn(inputs: Inputs) -> Task:
    """The peer of our own k-means, with as many starts."""
    from sklearn.cluster import KMeans

    grid = _grid(inputs)
    seen = grid.weights > 0
    points, weights = grid.scaled_nodes[seen], grid.weights[seen]
    return lambda: KMeans(N_CLUSTERS, n_init=RESTARTS).fit(points, sample_weight=weights)


_LARGE = f"S={MANY_PARTIES}, k'={MANY_CLUSTERS}"

SERVER_STAGES = (
    *(
        Stage(name=f"combine {method}", group="combine", prepare=partial(_combine, method=method))
        for method in METHODS
    ),
    Stage(
        name=f"combine decoy, {_LARGE}",
        group="combine",
        prepare=partial(_combine, method="decoy", k=MANY_CLUSTERS, n_parties=MANY_PARTIES),
    ),
    *(
        Stage(name=f"{name}, {_LARGE}", group=group, prepare=prepare, by_users=False)
        for name, group, prepare in (
            ("decode tables", "grid", _decode),
            ("k-means", "k-means", _kmeans),
            ("k-means of scikit-learn", "k-means", _kmeans_of_scikit_learn),
        )
    ),
)
