"""2PEst: fit the whole grid to all pairs of parties (paper, section 5.1, Algorithm 5).

Cells of two parties are estimated far better than cells of many. The fit starts from independent
parties and moves the grid, one random pair at a time, towards that pair's table. The paper leaves
the number and size of the steps open; both are those of the authors' code here, and so is the floor
under every weight, which Algorithm 5 as printed does not have.
"""

import functools
import itertools
import math

import numpy as np

from splitmeans._types import FloatArray
from splitmeans.kmeans.simplex import project_to_simplex
from splitmeans.membership.estimator import WeightEstimator
from splitmeans.synopsis.joint import check_dense, joint_weights

_FIRST_STEP = 0.5
# Every weight is raised to this after each step.
FLOOR = 1e-5
# With little budget a party's noisy sizes may add up to any multiple of the users, and the product
# of many parties' shares to more than any count. Up to this sum shares are taken as they are.
_MOST_SHARES = 2.0


def fit_steps(n_parties: int) -> int:
    """Return the number of steps T: 20 S (S-1), or 15 S (S-1) above four parties."""
    return (20 if n_parties <= 4 else 15) * n_parties * (n_parties - 1)


def step_size(step: int, *, n_parties: int) -> float:
    """Return the size eta_t of one step, counted from 0; more parties slow the decay."""
    if n_parties < 4:
        return _FIRST_STEP * 0.96**step
    if n_parties == 4:
        return _FIRST_STEP * 0.95 ** (step // 10)
    return _FIRST_STEP * 0.95 ** (step // 50)


def two_party_weights(
    estimator: WeightEstimator, *, total: float | None, rng: np.random.Generator
) -> FloatArray:
    """Return weights of all cells fitted to the tables of all pairs, shape (k'_1, ..., k'_S).

    The weights are never negative. The result is not projected, so its sum is close to
    `total` but not equal to it. With two parties the one pair is the grid: `joint_weights`.

    Args:
        estimator: What the messages say about cluster and pair sizes.
        total: The number of users n̂ that each pair's table must add up to, zero or more; None
            takes the mean sum of the pair estimates (zero where that is negative).
        rng: Picks the pair of each step.
    """
    check_dense(estimator)
    n_parties = len(estimator.n_local_clusters)
    if n_parties <= 2:
        return joint_weights(estimator, total=total)
    pairs = list(itertools.combinations(range(n_parties), 2))
    estimates = [estimator.joint(pair) for pair in pairs]
    if total is None:
        total = max(float(np.mean([np.sum(estimate) for estimate in estimates])), 0.0)
    targets = [project_to_simplex(estimate, total=total) for estimate in estimates]

    weights = _independent_start(estimator, total=total)
    for step in range(fit_steps(n_parties)):
        chosen = int(rng.integers(len(pairs)))
        eta = step_size(step, n_parties=n_parties)
        _move_towards(targets[chosen], pairs[chosen], eta, weights)
        np.maximum(weights, FLOOR, out=weights)
    return weights


def _independent_start(estimator: WeightEstimator, *, total: float) -> FloatArray:
    """Return n̂ times the product of all cluster shares (Algorithm 5, line 5).

    Negative sizes count as zero: two of them would multiply to a positive weight for a cell that
    both parties report as empty.
    """
    if total == 0:
        return np.zeros(estimator.n_local_clusters)
    sizes = [estimator.one(party) for party in range(len(estimator.n_local_clusters))]
    shares = [np.maximum(size, 0.0) / total for size in sizes]
    shares = [share / max(1.0, float(share.sum()) / _MOST_SHARES) for share in shares]
    product: FloatArray = functools.reduce(np.multiply.outer, shares)
    return product * total


def _move_towards(
    target: FloatArray, pair: tuple[int, int], eta: float, weights: FloatArray
) -> None:
    """Shift `weights` (OUT) towards one pair's table, evenly over each slice (lines 11-16)."""
    other_axes = tuple(axis for axis in range(weights.ndim) if axis not in pair)
    slice_cells = math.prod(weights.shape[axis] for axis in other_axes)
    excess = weights.sum(axis=other_axes) - target
    weights -= np.expand_dims(eta / slice_cells * excess, other_axes)
