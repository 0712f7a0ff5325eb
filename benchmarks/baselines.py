"""Baselines: what clustering costs without a split, or without privacy.

The compared methods of the paper's evaluation that are not instances of the protocol. They see more
than any participant of a real run, and return centres in distance units (grid / GRID_UNITS).
"""

from collections.abc import Sequence

import numpy as np

from splitmeans._types import FloatArray, IntArray
from splitmeans.errors import ParameterError
from splitmeans.kmeans.weighted_kmeans import weighted_kmeans
from splitmeans.local.dplsf_paper import DplsfPaper
from splitmeans.privacy.noise import NoiseSource
from splitmeans.simulate.evaluation import assign_labels
from splitmeans.study.features import GRID_UNITS


def central_dplsf(
    grid_rows: IntArray,
    bounds: IntArray,
    *,
    n_clusters: int,
    epsilon: float,
    delta: float,
    noise: NoiseSource,
    rng: np.random.Generator,
) -> FloatArray:
    """Cluster pooled rows with the differentially private LSH tree, as one trusted party would.

    Guarantee: (epsilon, delta) for adding or removing one user, towards whoever sees the centres;
    none towards the one who pools the rows.

    Args:
        grid_rows: All parties' columns on the grid, shape (n, d).
        bounds: Largest grid integer of each column, shape (d,).
        n_clusters: Number of centres, k.
        epsilon: Privacy loss of the whole clustering.
        delta: What probabilities may exceed that bound by.
        noise: Privacy noise.
        rng: Start of the final clustering.
    """
    mechanism = DplsfPaper(
        n_clusters=n_clusters,
        bounds=tuple(int(bound) for bound in bounds),
        epsilon=epsilon,
        delta=delta,
        sums="gaussian",
    )
    return mechanism.release(grid_rows, noise=noise, rng=rng).centres / GRID_UNITS


def vertical_kmeans(
    grid_rows: Sequence[IntArray],
    n_clusters: int,
    *,
    n_local_clusters: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Cluster split rows without privacy: local k-means, exact cell counts, weighted k-means.

    Ding et al., "K-means clustering with distributed dimensions" (2016), the frame that the paper
    makes private. Only cells with users are built, so many parties are no problem.

    Args:
        grid_rows: For each party its columns on the grid, shape (n, d_l), same users in the same
            order.
        n_clusters: Number of centres, k.
        n_local_clusters: Clusters of each party, k'.
        rng: Starts of all clusterings.
    """
    if len({len(rows) for rows in grid_rows}) != 1:
        raise ParameterError("all parties must have the same users")
    centres, labels = [], []
    for rows in grid_rows:
        scaled = rows / GRID_UNITS
        local = weighted_kmeans(scaled, np.ones(len(rows)), n_clusters=n_local_clusters, rng=rng)
        centres.append(local)
        labels.append(assign_labels(scaled, local))
    cells, counts = np.unique(np.column_stack(labels), axis=0, return_counts=True)
    nodes = np.hstack([centre[cells[:, party]] for party, centre in enumerate(centres)])
    return weighted_kmeans(nodes, counts.astype(np.float64), n_clusters=n_clusters, rng=rng)
