"""What an observer gets from a hash tree, with and without a user: counts, sums, a centre.

The user sits where a proof has its worst case, at the bounds; all other rows are at one point.
"""

import numpy as np

from audits.case import Scores
from audits.noise_twins import Tape
from splitmeans._types import FloatArray, IntArray
from splitmeans.local.dplsf import Dplsf
from splitmeans.local.dplsf_paper import DplsfPaper, Leaf, grow
from splitmeans.local.rows import LocalClustering
from splitmeans.privacy.noise import NoiseSource

# Users beside the one who comes or goes.
_OTHERS = 5


def leaf_sum(tree: DplsfPaper | Dplsf, trials: int, noise: NoiseSource) -> Scores:
    """The noisy sum of a leaf; every leaf of one call is a trial, all with the same rows.

    The score is the log likelihood ratio of the sum.
    """
    user = np.array(tree.bounds, dtype=np.int64)
    others = np.zeros((_OTHERS, len(tree.bounds)), dtype=np.int64)

    def released(rows: IntArray) -> FloatArray:
        leaf = Leaf(prefix="", noisy_count=len(rows), raw_members=np.arange(len(rows)))
        sums = tree.leaf_sums(rows, [leaf] * trials, noise=noise).astype(np.float64)
        if not isinstance(tree, DplsfPaper) or tree.sums == "gaussian":
            return sums @ user
        return np.asarray((np.abs(sums) - np.abs(sums - user)).sum(axis=1))

    return Scores(with_user=released(np.vstack([others, user])), without=released(others))


def tree_counts(
    trials: int, noise: NoiseSource, *, count_scale: float, depth: int, law: str
) -> Scores:
    """All noisy counts on a user's way through a hash tree, one per level.

    The leaves of a tree that is cut after l levels show the counts of level l, so the same noise is
    played to trees of every depth. All rows go the same way, and thresholds are such that the
    way is never cut and its siblings are (with probability above 1 - 10^-6).
    """
    rows, low_noise_points = 400, 60

    def counts(n: int) -> FloatArray:
        bits = np.zeros((depth, n), dtype=np.bool_)
        found = np.empty((trials, depth + 1))
        for trial in range(trials):
            tape = Tape(noise)
            for level in reversed(range(depth + 1)):
                leaves = grow(
                    bits[:level],
                    count_scale=count_scale,
                    low_noise_points=low_noise_points,
                    n_clusters=1,
                    noise=tape.rewind(),
                    law=law,
                )
                way = [leaf.noisy_count for leaf in leaves if leaf.prefix == "0" * level]
                found[trial, level] = way[0] if way else rows
        if law == "gaussian":
            return np.asarray(found.sum(axis=1))
        # The log likelihood ratio, in units of the scale.
        return np.asarray((np.abs(found - rows) - np.abs(found - rows - 1)).sum(axis=1))

    return Scores(with_user=counts(rows + 1), without=counts(rows))


def local_centre(
    mechanism: LocalClustering, trials: int, noise: NoiseSource, *, user: IntArray, others: IntArray
) -> Scores:
    """The centre that a local clustering with one cluster releases, projected on the user's row.

    The other rows should lie in the user's direction, so that a hash of directions keeps them
    together, and be enough that the noisy mean is hardly ever clipped. All that is computed on the
    way is hidden, so this needs many trials.
    """
    rows = np.vstack([others, user])

    def released(n: int, rng: np.random.Generator) -> FloatArray:
        sources = (noise.spawn(f"{n} rows, trial {trial}") for trial in range(trials))
        centres = [mechanism.release(rows[:n], noise=source, rng=rng).centres for source in sources]
        return np.array([float(centre[0] @ user) for centre in centres])

    first, second = np.random.default_rng(0).spawn(2)
    return Scores(with_user=released(len(others) + 1, first), without=released(len(others), second))
