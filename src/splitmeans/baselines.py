"""Baselines: what clustering costs without privacy, without a split, or without both.

The compared methods of the paper's evaluation that are not instances of the protocol. All of them
see more than any participant of a real run, so they are for simulation and benchmarks only. All
return centres in distance units (grid / GRID_UNITS), columns in party order.
"""

from collections.abc import Sequence

import numpy as np

from splitmeans._types import FloatArray, IntArray
from splitmeans.errors import ParameterError
from splitmeans.evaluation import assign_labels
from splitmeans.features import GRID_UNITS
from splitmeans.grid.weighted_kmeans import weighted_kmeans
from splitmeans.local.lsh_tree import LshTree
from splitmeans.privacy.noise import NoiseSource

# Restarts of scikit-learn's k-means: the yardstick should be a good optimum, not a lucky one.
_N_INIT = 10


def central_kmeans(
    scaled_rows: FloatArray, n_clusters: int, *, random_state: int | None = None
) -> FloatArray:
    """Cluster pooled rows without privacy (scikit-learn, best of ten starts).

    Args:
        scaled_rows: All parties' columns, shape (n, d), in distance units.
        n_clusters: Number of centres, k.
        random_state: Seed of the starts.

    Returns:
        Centres, shape (k, d).
    """
    # Imported on first use, as everywhere: it takes a second to load.
    from sklearn.cluster import KMeans

    fitted = KMeans(n_clusters, n_init=_N_INIT, random_state=random_state).fit(scaled_rows)
    return np.asarray(fitted.cluster_centers_, dtype=np.float64)


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

    Returns:
        Centres, shape (k, d).
    """
    mechanism = LshTree(
        n_clusters=n_clusters,
        bounds=tuple(int(bound) for bound in bounds),
        epsilon=epsilon,
        delta=delta,
        sums="gaussian",
    )
    return mechanism.release(grid_rows, noise=noise, rng=rng) / GRID_UNITS


def vertical_kmeans(
    grid_rows: Sequence[IntArray],
    n_clusters: int,
    *,
    n_local_clusters: int | Sequence[int],
    rng: np.random.Generator,
) -> FloatArray:
    """Cluster split rows without privacy: local k-means, exact cell counts, weighted k-means.

    Ding et al., "K-means clustering with distributed dimensions" (2016), the frame that the paper
    makes private. Only cells with users are built, so many parties are no problem.

    Args:
        grid_rows: For each party its columns on the grid, shape (n, d_l), same users in the same
            order.
        n_clusters: Number of centres, k.
        n_local_clusters: Clusters of each party, k', one number for all or one for each.
        rng: Starts of all clusterings.

    Returns:
        Centres, shape (k, sum of d_l).
    """
    sizes = (
        [n_local_clusters] * len(grid_rows)
        if isinstance(n_local_clusters, int)
        else list(n_local_clusters)
    )
    if len(sizes) != len(grid_rows) or len({len(rows) for rows in grid_rows}) != 1:
        raise ParameterError(
            "n_local_clusters must be one number or one for each party, and all parties must have "
            "the same users"
        )
    centres, labels = [], []
    for rows, size in zip(grid_rows, sizes, strict=True):
        scaled = rows / GRID_UNITS
        local = weighted_kmeans(scaled, np.ones(len(rows)), n_clusters=size, rng=rng)
        centres.append(local)
        labels.append(assign_labels(scaled, local))
    cells, counts = np.unique(np.column_stack(labels), axis=0, return_counts=True)
    nodes = np.hstack([centre[cells[:, party]] for party, centre in enumerate(centres)])
    return weighted_kmeans(nodes, counts.astype(np.float64), n_clusters=n_clusters, rng=rng)
