"""Clustering without privacy or without a split of the columns (paper, sections 3.2 and 6)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from splitmeans._types import FloatArray, LabelArray
from splitmeans.errors import ParameterError
from splitmeans.kmeans.nearest import nearest_centres
from splitmeans.kmeans.weighted_kmeans import weighted_kmeans
from splitmeans.paper.dplsf import dplsf
from splitmeans.privacy.noise import NoiseSource
from splitmeans.simulate.baselines import central_kmeans

__all__ = ["central_dplsf", "central_kmeans", "vertical_kmeans"]


@dataclass(frozen=True, kw_only=True, eq=False)
class PlainLabels:
    """The message of one party without privacy: each user's cluster, shape (n,)."""

    labels: LabelArray = field(repr=False)
    n_local_clusters: int

    @property
    def n_bytes(self) -> int:
        """Size of the message, with one byte for each user."""
        return self.labels.size


def plain_kmeans(rows: FloatArray, n_clusters: int, *, rng: np.random.Generator) -> FloatArray:
    """Return exact k-means centres of the rows. Guarantee: none."""
    return weighted_kmeans(rows, np.ones(len(rows)), n_clusters=n_clusters, rng=rng)


def plain_labels(rows: FloatArray, centres: FloatArray) -> PlainLabels:
    """Return every user's cluster. Guarantee: none."""
    return PlainLabels(labels=nearest_centres(rows, centres), n_local_clusters=len(centres))


def count_cells(messages: Sequence[PlainLabels]) -> FloatArray:
    """Return the exact number of users in each cell, shape (k', ..., k')."""
    shape = tuple(message.n_local_clusters for message in messages)
    cells = np.ravel_multi_index(tuple(message.labels for message in messages), shape)
    return np.bincount(cells, minlength=math.prod(shape)).reshape(shape).astype(np.float64)


def vertical_kmeans(
    datasets: Sequence[FloatArray],
    n_clusters: int,
    *,
    n_local_clusters: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Return k centres of split rows without privacy, shape (k, m).

    Ding et al., "K-means clustering with distributed dimensions" (2016), which Algorithm 1 makes
    private: local k-means, exact cell counts, weighted k-means. Only cells with users are built.
    """
    if len({len(rows) for rows in datasets}) != 1:
        raise ParameterError("datasets must have the same users in the same order")
    centres = [plain_kmeans(rows, n_local_clusters, rng=rng) for rows in datasets]
    labels = [nearest_centres(*own) for own in zip(datasets, centres, strict=True)]
    cells, counts = np.unique(np.column_stack(labels), axis=0, return_counts=True)
    nodes = np.hstack([own[cells[:, party]] for party, own in enumerate(centres)])
    return weighted_kmeans(nodes, counts.astype(np.float64), n_clusters=n_clusters, rng=rng)


def central_dplsf(
    rows: FloatArray,
    n_clusters: int,
    *,
    epsilon: float,
    delta: float,
    noise: NoiseSource,
    rng: np.random.Generator,
) -> FloatArray:
    """Return centres of pooled rows by DPLSF with Gaussian sums, as one trusted party would.

    Guarantee: (epsilon, delta)-DP for adding or removing one user, towards anyone who sees the
    centres; none towards the party that pools the rows.
    """
    return dplsf(rows, n_clusters, epsilon=epsilon, delta=delta, noise=noise, rng=rng)
