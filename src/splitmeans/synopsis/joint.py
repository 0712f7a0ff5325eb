"""Joint cells: estimate every combination of clusters directly (BasicEst; paper, section 4.3)."""

import math

import numpy as np

from splitmeans._types import FloatArray
from splitmeans.errors import ParameterError
from splitmeans.kmeans.simplex import project_to_simplex
from splitmeans.membership.estimator import WeightEstimator
from splitmeans.plan.grid_limits import MAX_CELLS

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
            do not stand out are then left out, and the others scaled to the same total.
    """
    check_dense(estimator)
    estimate = estimator.joint(range(len(estimator.n_local_clusters)))
    if total is None:
        total = max(float(np.sum(estimate)), 0.0)
    if deviation is not None:
        standing_out = np.where(estimate > NOISE_DEVIATIONS * deviation, estimate, 0.0)
        found = float(standing_out.sum())
        if found > 0 and found >= _LEAST_SHARE * total:
            # Small cells with users are cut with the noise, up to half of all users. The sum of
            # all cells has no bias, so the cells that are left are scaled to it.
            return standing_out * (total / found)
    return project_to_simplex(estimate, total=total)


def check_dense(estimator: WeightEstimator) -> None:
    """Check that an array over all cells is small enough to build."""
    n_cells = math.prod(estimator.n_local_clusters)
    if n_cells > MAX_CELLS:
        raise ParameterError(
            f"the grid must have at most {MAX_CELLS} cells, got {n_cells}; use fewer local clusters"
        )
