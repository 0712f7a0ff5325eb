"""Joint cells: estimate every combination of clusters directly (BasicEst; paper, section 4.3)."""

import math

import numpy as np

from splitmeans._types import FloatArray
from splitmeans.errors import ParameterError
from splitmeans.grid.projection import project_to_simplex
from splitmeans.membership.estimator import WeightEstimator

# A dense grid of this size takes 80 MB per array and still clusters in minutes.
MAX_CELLS = 10_000_000


# Cells below this many deviations are taken for noise, if those above hold this share of all users.
NOISE_DEVIATIONS = 3.0
_LEAST_SHARE = 0.5


def joint_weights(
    estimator: WeightEstimator, *, total: float | None, deviation: float | None = None
) -> FloatArray:
    """Return consistent weights of all cells, shape (k'_1, ..., k'_S).

    Args:
        estimator: What the messages say about cell sizes.
        total: The number of users that the weights must add up to; None keeps the sum of the
            estimate itself (zero where that is negative).
        deviation: Standard deviation of the noise on a cell, where it is known. With thousands of
            cells that are mostly empty, their noise together outweighs the users; cells that
            do not stand out are then left out.
    """
    check_dense(estimator)
    estimate = estimator.joint(range(len(estimator.n_local_clusters)))
    if total is None:
        total = max(float(np.sum(estimate)), 0.0)
    if deviation is not None:
        standing_out = np.where(estimate > NOISE_DEVIATIONS * deviation, estimate, 0.0)
        if standing_out.sum() >= _LEAST_SHARE * total:
            return standing_out
    return project_to_simplex(estimate, total=total)


def check_dense(estimator: WeightEstimator) -> None:
    """Check that an array over all cells is small enough to build."""
    n_cells = math.prod(estimator.n_local_clusters)
    if n_cells > MAX_CELLS:
        raise ParameterError(
            f"the grid must have at most {MAX_CELLS} cells, got {n_cells}; use fewer local clusters"
        )
