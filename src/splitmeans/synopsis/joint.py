"""Joint cells: estimate every combination of clusters directly (BasicEst; paper, section 4.3)."""

import math

import numpy as np

from splitmeans._types import FloatArray, IntArray
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


def mend_sums(
    weights: FloatArray, estimate: FloatArray, *, deviation: float, blocks: IntArray
) -> FloatArray:
    """Move the sum of each block of cells towards its sum before cells were cut.

    Cells that were cut as noise may hold most users of a region where users are spread thinly, so
    the cells left there count too few. The sum over all cells of a block, cut or not, has no bias,
    but the noise of all its cells. How far the two differ beyond that noise, over all blocks, tells
    how much to trust the first (its mean squared bias is estimated by moments). A common factor
    does not move the mean of a block: blocks that k-means found are found again. The total stays.

    Args:
        weights: Weights of all cells after cutting, none negative.
        estimate: The unbiased estimate that they were made from, same shape.
        deviation: Standard deviation of the noise on a cell of the estimate.
        blocks: The block of each cell, shape (cells,), in the order of ravel.
    """
    if weights.sum() <= 0:  # nobody was counted, so there are no blocks
        return weights
    after = np.bincount(blocks, weights=weights.ravel())
    before = np.bincount(blocks, weights=estimate.ravel())
    noise = deviation**2 * np.bincount(blocks)
    bias = max(0.0, float(np.mean(np.square(before - after) - noise)))
    trusted = np.divide(bias, bias + noise, out=np.zeros_like(noise), where=bias + noise > 0)
    sums = np.maximum(after + trusted * (before - after), 0.0)
    factors = np.divide(sums, after, out=np.zeros_like(sums), where=after > 0)
    scaled = weights * factors[blocks].reshape(weights.shape)
    if scaled.sum() <= 0:
        return weights
    return np.asarray(scaled * (weights.sum() / scaled.sum()))


def check_dense(estimator: WeightEstimator) -> None:
    """Check that an array over all cells is small enough to build."""
    n_cells = math.prod(estimator.n_local_clusters)
    if n_cells > MAX_CELLS:
        raise ParameterError(
            f"the grid must have at most {MAX_CELLS} cells, got {n_cells}; use fewer local clusters"
        )
