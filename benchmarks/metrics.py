"""Figures that only someone with all parties' rows can compute; none of them is private."""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from splitmeans._types import FloatArray, IntArray
from splitmeans.errors import ParameterError


def silhouette(
    scaled_rows: FloatArray,
    labels: npt.ArrayLike,
    *,
    rng: np.random.Generator,
    max_rows: int = 4000,
) -> float:
    """Return the mean silhouette of a clustering, between -1 and 1.

    Args:
        scaled_rows: Shape (n, d), in distance units.
        labels: The cluster of each row.
        rng: Picks the rows that stand for all, where there are more than `max_rows`.
        max_rows: The time grows with the square of it.
    """
    from sklearn.metrics import silhouette_score

    chosen = np.asarray(labels)
    if len(scaled_rows) > max_rows:
        picked = np.sort(rng.choice(len(scaled_rows), size=max_rows, replace=False))
        scaled_rows, chosen = scaled_rows[picked], chosen[picked]
    if len(np.unique(chosen)) < 2:
        raise ParameterError("labels must name at least two clusters among the picked rows")
    return float(silhouette_score(scaled_rows, chosen))


def true_cell_weights(labels: Sequence[npt.ArrayLike], n_local_clusters: Sequence[int]) -> IntArray:
    """Count the users of each cell exactly.

    Args:
        labels: For each party the local cluster of each user, the same users in the same order.
        n_local_clusters: Number of local clusters of each party.

    Returns:
        Counts, shape `n_local_clusters`; its flat order is that of the weighted grid.
    """
    shape = tuple(n_local_clusters)
    if len(shape) != len(labels):
        raise ParameterError(
            f"n_local_clusters must have one number for each of {len(labels)} parties, "
            f"got {len(shape)}"
        )
    cells = np.ravel_multi_index(tuple(np.asarray(party) for party in labels), shape)
    return np.bincount(cells, minlength=math.prod(shape)).reshape(shape).astype(np.int64)
