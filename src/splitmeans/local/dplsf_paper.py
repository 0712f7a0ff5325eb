"""DPLSF: noisy leaves of a locality-sensitive hash tree, clustered.

The paper, section 3.5 and appendix "DPLSF Details", after Google's open-source central clustering.
Random hyperplanes through the origin give every row a bit string. A prefix tree grows from the
root as long as noisy counts are large; leaves release a noisy sum, and weighted k-means on the
leaf means gives the centres. The published form for one party alone uses Laplace sums; the form
for pooled data, which the paper compares with, uses Gaussian sums. `dplsf.py` is the form
for tight accounting.

What the tree looks like is decided by noisy counts alone. A user is in one node per level, so
every level is one noisy histogram of sensitivity 1; children of a branching node are released
whether or not any row is in them (rule R14).
"""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from splitmeans._types import FloatArray, IntArray
from splitmeans.kmeans.weighted_kmeans import weighted_kmeans
from splitmeans.local.law import COUNT_UNITS, to_grid
from splitmeans.local.laws.dplsf import DplsfPaperLaw
from splitmeans.local.rows import LocalRelease, clip_rows
from splitmeans.privacy.noise import NoiseSource
from splitmeans.table.walk.interface import RawRows

# A node is branched at this many times the smallest count that a node may have.
BRANCH_FACTOR = 3

# Hyperplane normals are whole numbers, so that a row's hash is exact and depends on that row alone.
_NORMAL_UNITS = 2**20


@dataclass(frozen=True, kw_only=True)
class Leaf:
    """A leaf of the tree: its hash prefix, its released count, and which rows are in it."""

    prefix: str
    noisy_count: int
    raw_members: IntArray = field(repr=False, compare=False)


class DplsfPaper(DplsfPaperLaw):
    """Noisy means of the leaves of a hash tree, clustered; for what they cost see the law."""

    def release(
        self, raw_rows: IntArray | RawRows, *, noise: NoiseSource, rng: np.random.Generator
    ) -> LocalRelease:
        """Return the centres, shape (k', d); see `LocalClustering`."""
        rows = clip_rows(raw_rows, self.bounds)
        leaves = grow(
            sim_hash(rows, random_normals(self.depth, self.bounds, rng=rng)),
            count_scale=self.count_scale,
            low_noise_points=self.low_noise_points,
            n_clusters=self.n_clusters,
            noise=noise,
        )
        noisy_sums = self.leaf_sums(rows, leaves, noise=noise)
        noisy_means, noisy_counts = leaf_means(leaves, noisy_sums, bounds=self.bounds)
        centres = weighted_kmeans(noisy_means, noisy_counts, n_clusters=self.n_clusters, rng=rng)
        return LocalRelease.of_centres(to_grid(centres, self.bounds))

    def leaf_sums(self, raw_rows: IntArray, leaves: list[Leaf], *, noise: NoiseSource) -> IntArray:
        """Return the noisy sum of each leaf's rows, shape (leaves, d).

        Guarantee: one noisy vector sum; leaves share no rows, so a row is in one sum only. The rows
        must be clipped to `bounds` already.
        """
        raw_sums = exact_sums(raw_rows, leaves)
        draw = noise.gaussian if self.sums == "gaussian" else noise.laplace
        return raw_sums + draw(self.sum_scale, raw_sums.size).reshape(raw_sums.shape)


def random_normals(depth: int, bounds: tuple[int, ...], *, rng: np.random.Generator) -> IntArray:
    """Return whole-numbered normals of random hyperplanes, shape (depth, d)."""
    drawn = rng.standard_normal((depth, len(bounds))) * _NORMAL_UNITS
    return np.asarray(np.rint(drawn), dtype=np.int64)


def exact_sums(raw_rows: IntArray, leaves: list[Leaf]) -> IntArray:
    """Return the sum of each leaf's rows, shape (leaves, d)."""
    return np.array([raw_rows[leaf.raw_members].sum(axis=0) for leaf in leaves])


def leaf_means(
    leaves: list[Leaf], noisy_sums: IntArray, *, bounds: tuple[int, ...]
) -> tuple[FloatArray, FloatArray]:
    """Return the noisy means of leaves inside the bounds, shape (leaves, d), and their counts."""
    noisy_counts = np.array([leaf.noisy_count for leaf in leaves], dtype=np.float64)
    # Only a root that is the sole leaf can have a count below one.
    noisy_means = noisy_sums / np.maximum(noisy_counts, 1)[:, np.newaxis]
    limits = np.array(bounds, dtype=np.float64)
    return np.clip(noisy_means, -limits, limits), noisy_counts


def sim_hash(raw_rows: IntArray, normals: IntArray) -> npt.NDArray[np.bool_]:
    """Return on which side of each hyperplane each row lies, shape (depth, n).

    Integer arithmetic: a row's bits do not depend on the other rows (rule R7).
    """
    bits = np.empty((len(normals), len(raw_rows)), dtype=np.bool_)
    for level, normal in enumerate(normals):
        bits[level] = raw_rows @ normal >= 0
    return bits


def min_points(noisy_root_count: int, *, low_noise_points: int, n_clusters: int) -> int:
    """Return theta, the smallest noisy count with which a node stays in the tree."""
    return max(1, min(low_noise_points, noisy_root_count // (2 * n_clusters)))


def grow(
    raw_bits: npt.NDArray[np.bool_],
    *,
    count_scale: float,
    low_noise_points: int,
    n_clusters: int,
    noise: NoiseSource,
    law: str = "laplace",
) -> list[Leaf]:
    """Grow the tree and return its leaves, from the root downwards.

    A node with a noisy count of at least 3 theta is branched at its next bit. A child below theta
    is dropped with its rows; a node that is not branched, or loses both children, is a leaf.

    Guarantee: releases counts only, one noisy histogram of sensitivity 1 per level.

    Args:
        raw_bits: Hash bits, shape (depth, n).
        count_scale: Scale of the noise on each node's count.
        low_noise_points: Upper limit of theta.
        n_clusters: Number of centres wanted, k'.
        noise: Hides the users.
        law: "laplace", or "gaussian" with `count_scale` in 1/COUNT_UNITS of a row.
    """
    n_rows = raw_bits.shape[1]
    noisy_root_count = n_rows + int(_count_errors(law, count_scale, 1, noise=noise)[0])
    theta = min_points(noisy_root_count, low_noise_points=low_noise_points, n_clusters=n_clusters)
    level = [Leaf(prefix="", noisy_count=noisy_root_count, raw_members=np.arange(n_rows))]
    leaves: list[Leaf] = []
    for bits in raw_bits:
        branching = [node for node in level if node.noisy_count >= BRANCH_FACTOR * theta]
        leaves += [node for node in level if node.noisy_count < BRANCH_FACTOR * theta]
        errors = _count_errors(law, count_scale, 2 * len(branching), noise=noise).reshape(-1, 2)
        level = []
        for node, (error_0, error_1) in zip(branching, errors.tolist(), strict=True):
            children = [
                child
                for child in _children(node, bits, errors=(error_0, error_1))
                if child.noisy_count >= theta
            ]
            level += children
            leaves += [] if children else [node]
    return leaves + level


def _count_errors(law: str, scale: float, size: int, *, noise: NoiseSource) -> IntArray:
    """Draw count noise in whole rows.

    Rounding down after half a unit gives count + error = round(count + noise) for whole counts, so
    it is post-processing of the noisy count. (Rounding halves to even would not be.)
    """
    if law == "laplace":
        return noise.laplace(scale, size)
    return np.asarray((noise.gaussian(scale, size) + COUNT_UNITS // 2) // COUNT_UNITS)


def _children(
    node: Leaf, raw_bits: npt.NDArray[np.bool_], *, errors: tuple[int, int]
) -> tuple[Leaf, Leaf]:
    """Split a node at one hash bit; both children carry noise, also an empty one."""
    side = raw_bits[node.raw_members]
    members = node.raw_members[~side], node.raw_members[side]
    zero, one = (
        Leaf(prefix=node.prefix + bit, noisy_count=len(rows) + error, raw_members=rows)
        for bit, rows, error in zip("01", members, errors, strict=True)
    )
    return zero, one
