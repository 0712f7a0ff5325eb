"""Joint cells: estimate every combination of clusters directly (BasicEst; paper, section 4.3)."""

import math

import numpy as np

from splitmeans import _validate
from splitmeans._types import FloatArray
from splitmeans.errors import ParameterError
from splitmeans.kmeans.simplex import project_to_simplex
from splitmeans.membership.estimator import WeightEstimator
from splitmeans.plan.grid_limits import MAX_CELLS
from splitmeans.synopsis.regions import Regions, where_users_are

# Cells below this many deviations are taken for noise: the first of these that leaves most of all
# users. A few users less cost little, users where there are none cost much: noise above 2.5
# deviations in one of a few hundred empty cells, far from everybody, can draw a centre there.
NOISE_DEVIATIONS = (3.5, 3.0, 2.5, 2.0)
_MOST_USERS = 0.95
# With less than this share of all users left even by the last, no cell is cut.
_LEAST_SHARE = 0.5


def joint_weights(
    estimator: WeightEstimator,
    *,
    total: float | None,
    deviation: float | None = None,
    regions: Regions | None = None,
) -> FloatArray:
    """Return consistent weights of all cells, shape (k'_1, ..., k'_S).

    Args:
        estimator: What the messages say about cell sizes.
        total: The number of users that the weights must add up to; None keeps the sum of the
            estimate itself (zero where that is negative).
        deviation: Standard deviation of the noise on a cell, where it is known. With thousands of
            cells that are mostly empty, their noise together outweighs the users; cells that
            do not stand out are then left out, and the others scaled to the same total.
        regions: Of two parties' clusters, where cells of regions without users are left out too.
    """
    check_dense(estimator)
    check_deviation(deviation)
    estimate = estimator.joint(range(len(estimator.n_local_clusters)))
    if total is None:
        total = max(float(np.sum(estimate)), 0.0)
    if deviation:
        for cut in NOISE_DEVIATIONS:
            standing_out = np.where(estimate > cut * deviation, estimate, 0.0)
            found = float(standing_out.sum())
            if found >= _MOST_USERS * total:
                break
        if regions is not None and len(regions) == 2:
            somebody = where_users_are(estimate, *regions, deviation=deviation)
            left = float(standing_out[somebody].sum())
            if left >= _LEAST_SHARE * found:
                standing_out, found = np.where(somebody, standing_out, 0.0), left
        if found > 0 and found >= _LEAST_SHARE * total:
            # Small cells with users are cut with the noise, up to half of all users. The sum of
            # all cells has no bias, so the cells that are left are scaled to it.
            return standing_out * (total / found)
    return project_to_simplex(estimate, total=total)


def check_deviation(deviation: float | None) -> None:
    """Check that the standard deviation of a cell's noise is one, where it is known."""
    if deviation is not None:
        _validate.finite(deviation=deviation)
        if deviation < 0:
            raise ParameterError(f"deviation must be >= 0, got {deviation!r}")


def check_dense(estimator: WeightEstimator) -> None:
    """Check that an array over all cells is small enough to build."""
    n_cells = math.prod(estimator.n_local_clusters)
    if n_cells > MAX_CELLS:
        raise ParameterError(
            f"the grid must have at most {MAX_CELLS} cells, got {n_cells}; use fewer local clusters"
        )
