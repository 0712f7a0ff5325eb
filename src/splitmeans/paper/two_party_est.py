"""DPFMPS-2PEst: cell weights from all pairs of parties (paper, Algorithm 5).

Cells of two parties are estimated far better than cells of many. The fit starts from independent
parties and moves the grid, one random pair at a time, towards that pair's table. The paper leaves
the number and size of the steps open; both are those of the authors' code, and so is the smallest
weight, which Algorithm 5 as printed does not have.
"""

import functools
import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np

from splitmeans._types import FloatArray
from splitmeans.paper.basic_est import basic_est, cardinality
from splitmeans.paper.dpfm import SketchParameters
from splitmeans.paper.dpfmps_gen import PartitionSketch

FIRST_STEP = 0.5
# Every weight is raised to this after each step.
LEAST_WEIGHT = 1e-5
# With little budget a party's noisy sizes may add up to any multiple of n-hat, and their product to
# more than any count. Shares are taken as they are up to this sum.
_MOST_SHARES = 2.0


def two_party_est(
    noisy_count: float,
    parameters: SketchParameters,
    sketches: Sequence[PartitionSketch],
    *,
    rng: np.random.Generator,
) -> FloatArray:
    """Return weights of all cells, shape (k', ..., k'); with two parties those of `basic_est`.

    `noisy_count` is n-hat; `rng` selects the pair of each step.
    """
    if len(sketches) <= 2:
        return basic_est(noisy_count, parameters, sketches)
    sizes = [
        cardinality(sketch.registers, gamma=parameters.gamma) - parameters.phantoms
        for sketch in sketches
    ]
    pairs = {
        (first, second): basic_est(noisy_count, parameters, [sketches[first], sketches[second]])
        for first, second in itertools.combinations(range(len(sketches)), 2)
    }
    return fit_to_pairs(noisy_count, sizes, pairs, rng=rng)


def fit_to_pairs(
    noisy_count: float,
    sizes: Sequence[FloatArray],
    pairs: Mapping[tuple[int, int], FloatArray],
    *,
    rng: np.random.Generator,
) -> FloatArray:
    """Return weights that fit the tables of all pairs (lines 5 to 17).

    `sizes` has the shape (k',) for each party, `pairs` consistent weights of shape (k', k'); `rng`
    selects the pair of each step.
    """
    weights = independent(noisy_count, sizes)
    chosen_from = list(pairs)
    for step in range(n_steps(len(sizes))):
        pair = chosen_from[int(rng.integers(len(chosen_from)))]
        others = tuple(axis for axis in range(weights.ndim) if axis not in pair)
        slice_cells = math.prod(weights.shape[axis] for axis in others)
        difference = weights.sum(axis=others) - pairs[pair]
        eta = step_size(step, n_parties=len(sizes))
        weights -= np.expand_dims(eta / slice_cells * difference, others)
        np.maximum(weights, LEAST_WEIGHT, out=weights)
    return weights


def independent(noisy_count: float, sizes: Sequence[FloatArray]) -> FloatArray:
    """Return n-hat times the product of all cluster shares (line 5).

    Negative sizes count as zero: two of them would multiply to a positive weight.
    """
    if noisy_count <= 0:
        return np.zeros([len(own) for own in sizes])
    shares = [np.maximum(own, 0.0) / noisy_count for own in sizes]
    shares = [share / max(1.0, float(share.sum()) / _MOST_SHARES) for share in shares]
    product: FloatArray = functools.reduce(np.multiply.outer, shares)
    return product * noisy_count


def n_steps(n_parties: int) -> int:
    """Return the number of steps T: 20 S (S-1), or 15 S (S-1) above four parties."""
    return (20 if n_parties <= 4 else 15) * n_parties * (n_parties - 1)


def step_size(step: int, *, n_parties: int) -> float:
    """Return the size eta_t of a step, counted from 0; more parties slow the decay."""
    if n_parties < 4:
        return FIRST_STEP * 0.96**step
    if n_parties == 4:
        return FIRST_STEP * 0.95 ** (step // 10)
    return FIRST_STEP * 0.95 ** (step // 50)
