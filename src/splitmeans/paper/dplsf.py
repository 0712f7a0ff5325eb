"""DPLSF: noisy leaves of a locality-sensitive hash tree, clustered.

Paper, section 3.5 and appendix "DPLSF Details", after Google's open-source central clustering.
Random hyperplanes through the origin give every row a bit string. A prefix tree grows from the root
where noisy counts are large. Leaves release a noisy sum, and weighted k-means on the leaf means
gives the centres. A party adds Laplace noise to the sums; the central form adds Gaussian noise.
"""

import math
from dataclasses import dataclass

import numpy as np

from splitmeans._types import FloatArray, IntArray
from splitmeans.kmeans.weighted_kmeans import weighted_kmeans
from splitmeans.paper.mechanisms import gaussian_sums, laplace_counts, laplace_sums, to_grid
from splitmeans.privacy.gaussian import gaussian_multiplier
from splitmeans.privacy.noise import NoiseSource

# The paper's L: hash bits, and levels below the root.
DEPTH = 20
# Shares of epsilon_1, those of the authors' code.
SUM_SHARE, COUNT_SHARE = 0.8, 0.2
# A node with this many times theta rows is branched.
BRANCH_FACTOR = 3
# Normals of hyperplanes are whole numbers, so that a row's bits do not depend on other rows.
_NORMAL_UNITS = 2**20


@dataclass(frozen=True, kw_only=True, eq=False)
class Node:
    """A node of the tree: its noisy count, and which rows are in it (private)."""

    noisy_count: int
    raw_members: IntArray


def dplsf(
    rows: FloatArray,
    n_clusters: int,
    *,
    epsilon: float,
    delta: float | None = None,
    noise: NoiseSource,
    rng: np.random.Generator,
) -> FloatArray:
    """Return private centres, shape (n_clusters, m).

    Guarantee: epsilon-DP for adding or removing one row, or (epsilon, delta)-DP with a delta. A row
    is in one node of each level, so the levels share a fifth of epsilon; leaves are disjoint, so
    one release of sums has the rest. Children of a branched node are counted even if empty.

    Rows have values in [-1, 1]; `epsilon` is the paper's epsilon_1. A delta gives the central form,
    with Gaussian sums; None gives the form of a party.
    """
    grid_rows = to_grid(rows)
    m = rows.shape[1]
    sum_epsilon = SUM_SHARE * epsilon
    if delta is None:
        # Sensitivity m in L1; the paper's sigma is the deviation of the noise.
        sigma = math.sqrt(2) * m / sum_epsilon
    else:
        # Sensitivity sqrt(m) in L2; Google's sigma is relative to it.
        sigma = gaussian_multiplier(sum_epsilon, delta)
    leaves = grow(
        sim_hash(grid_rows, rng=rng),
        count_epsilon=COUNT_SHARE * epsilon / (DEPTH + 1),
        most_points=math.floor(10 * math.sqrt(m) * sigma),
        n_clusters=n_clusters,
        noise=noise,
    )
    sums = np.array([grid_rows[leaf.raw_members].sum(axis=0) for leaf in leaves])
    if delta is None:
        noisy_sums = laplace_sums(sums, sensitivity=m, epsilon=sum_epsilon, noise=noise)
    else:
        noisy_sums = gaussian_sums(sums, deviation=sigma * math.sqrt(m), noise=noise)
    noisy_counts = np.array([leaf.noisy_count for leaf in leaves], dtype=np.float64)
    # Only a root that is the sole leaf can have a count below 1.
    means = np.clip(noisy_sums / np.maximum(noisy_counts, 1)[:, np.newaxis], -1, 1)
    return weighted_kmeans(means, noisy_counts, n_clusters=n_clusters, rng=rng)


def sim_hash(grid_rows: IntArray, *, rng: np.random.Generator) -> np.ndarray:
    """Return on which side of each of L random hyperplanes each row lies, shape (L, n)."""
    normals = np.rint(rng.standard_normal((DEPTH, grid_rows.shape[1])) * _NORMAL_UNITS)
    return np.array([grid_rows @ normal >= 0 for normal in normals.astype(np.int64)])


def grow(
    bits: np.ndarray,
    *,
    count_epsilon: float,
    most_points: int,
    n_clusters: int,
    noise: NoiseSource,
) -> list[Node]:
    """Grow the tree and return its leaves.

    A node with a noisy count of at least 3 theta is branched at its next bit, where theta is
    min(10 sigma sqrt(m), n / 2k). A child below theta is dropped with its rows; a node that is not
    branched, or loses both children, is a leaf.

    Guarantee: each level is one release of disjoint counts, count_epsilon-DP.

    `bits` has the shape (L, n), `count_epsilon` is the cost of the counts of one level, and
    `most_points` is 10 sigma sqrt(m).
    """
    n = bits.shape[1]
    (root_count,) = laplace_counts(np.array([n]), epsilon=count_epsilon, noise=noise).tolist()
    theta = max(1, min(most_points, root_count // (2 * n_clusters)))
    level = [Node(noisy_count=root_count, raw_members=np.arange(n))]
    leaves: list[Node] = []
    for level_bits in bits:
        branched = [node for node in level if node.noisy_count >= BRANCH_FACTOR * theta]
        leaves += [node for node in level if node.noisy_count < BRANCH_FACTOR * theta]
        level = []
        for node in branched:
            side = level_bits[node.raw_members]
            halves = node.raw_members[~side], node.raw_members[side]
            counts = np.array([len(half) for half in halves])
            noisy = laplace_counts(counts, epsilon=count_epsilon, noise=noise).tolist()
            children = [
                Node(noisy_count=count, raw_members=half)
                for count, half in zip(noisy, halves, strict=True)
                if count >= theta
            ]
            level += children
            leaves += [] if children else [node]
    return leaves + level
