"""The noise that local clustering promises is in what it releases.

Seeds are fixed, so a test that passes keeps passing; for a fresh seed, bounds of five standard
errors fail with probability below 1e-5 and p-value limits with probability 1e-4. The operating
system's noise has no seed: its one test has wider bounds.
"""

import math

import numpy as np
import pytest
from scipy import stats
from splitmeans.local.dplloyd import DpLloyd
from splitmeans.local.dplsf_paper import DplsfPaper, Leaf, grow

from splitmeans.privacy.noise import InsecureSeededNoise, SecureNoise

UNIT = 2**20
EMPTY = np.empty(0, dtype=np.int64)


def leaf_sum_errors(tree, *, n_leaves, noise):
    """Return sums of leaves without rows, in units of the stated scale."""
    leaves = [Leaf(prefix=str(i), noisy_count=1, raw_members=EMPTY) for i in range(n_leaves)]
    rows = np.empty((0, len(tree.bounds)), dtype=np.int64)
    return tree.leaf_sums(rows, leaves, noise=noise).ravel() / tree.sum_scale


def test_laplace_leaf_sums():
    tree = DplsfPaper(n_clusters=5, bounds=(UNIT, UNIT // 2), epsilon=0.5)
    errors = leaf_sum_errors(tree, n_leaves=2000, noise=InsecureSeededNoise(1))
    # Laplace of scale 1: variance 2, kurtosis 6, so the sample variance of 4,000 values has
    # standard error 2 sqrt(5 / 4000) = 0.071.
    assert errors.var() == pytest.approx(2, abs=5 * 0.071)
    assert stats.kstest(errors, "laplace").pvalue > 1e-4


def test_gaussian_leaf_sums():
    tree = DplsfPaper(n_clusters=5, bounds=(UNIT,) * 2, epsilon=0.5, delta=1e-5, sums="gaussian")
    errors = leaf_sum_errors(tree, n_leaves=2000, noise=InsecureSeededNoise(2))
    # Normal: the sample variance of 4,000 values has standard error sqrt(2 / 4000) = 0.0224.
    assert errors.var() == pytest.approx(1, abs=5 * 0.0224)
    assert stats.kstest(errors, "norm").pvalue > 1e-4


@pytest.mark.parametrize(
    ("sums", "delta", "variance"), [("laplace", None, 2), ("gaussian", 1e-5, 1)]
)
def test_secure_leaf_sums(sums, delta, variance):
    tree = DplsfPaper(n_clusters=5, bounds=(UNIT,) * 2, epsilon=0.5, delta=delta, sums=sums)
    errors = leaf_sum_errors(tree, n_leaves=2000, noise=SecureNoise())
    # Half or double the noise would be a factor of four. A factor of 1.3 is more than eight
    # standard errors of the variance of 4,000 values: fails with probability below 1e-9.
    assert variance / 1.3 < errors.var() < variance * 1.3


def test_tree_counts():
    # A root with 90 rows that branches once; theta is 1, so children almost never vanish: with
    # scale 2 a child of 45 rows falls below 1 with probability exp(-22) / 2.
    noise = InsecureSeededNoise(3)
    bits = np.array([[False] * 45 + [True] * 45])
    errors = []
    for _ in range(2000):
        leaves = grow(bits, count_scale=2.0, low_noise_points=1, n_clusters=1, noise=noise)
        errors += [leaf.noisy_count - 45 for leaf in leaves]
    assert len(errors) == 4000
    # Discrete Laplace of scale 2: variance 2 q / (1 - q)^2 with q = exp(-1/2), that is 7.835;
    # kurtosis below 6.2, so the standard error over 4,000 values is 7.835 sqrt(5.2 / 4000) = 0.283.
    q = math.exp(-0.5)
    assert np.var(errors) == pytest.approx(2 * q / (1 - q) ** 2, abs=5 * 0.283)
    assert np.mean(errors) == pytest.approx(0, abs=5 * math.sqrt(7.835 / 4000))


def test_empty_nodes_survive_as_often_as_their_noise_says():
    # Thirty rows all go to "0". Theta is min(3, 30 // 2) = 3, and the empty "1" stays when its
    # noise of scale 2 is 3 or more: q^3 / (1 + q) with q = exp(-1/2), that is 0.1389.
    noise = InsecureSeededNoise(4)
    bits = np.zeros((1, 30), dtype=np.bool_)
    survived = sum(
        any(
            leaf.prefix == "1"
            for leaf in grow(bits, count_scale=2.0, low_noise_points=3, n_clusters=1, noise=noise)
        )
        for _ in range(3000)
    )
    q = math.exp(-0.5)
    p = q**3 / (1 + q)
    # Five standard errors: 5 sqrt(p (1 - p) / 3000) = 0.032.
    assert survived / 3000 == pytest.approx(p, abs=5 * math.sqrt(p * (1 - p) / 3000))


def test_lloyd_centres_carry_the_noise_of_the_last_sums():
    # One cluster of 1,000 rows at zero: the centre is noise / noisy count. The budget affords all
    # 7 iterations, and only the last one shows. Count noise of deviation 17 in 1,000 changes the
    # variance by about 3 * (17 / 1000)^2 < 0.1 %.
    lloyd = DpLloyd(n_clusters=1, bounds=(UNIT, UNIT // 8), epsilon=2.0)
    rows = np.zeros((1000, 2), dtype=np.int64)
    noise = InsecureSeededNoise(5)
    released = np.array(
        [
            lloyd.release(rows, noise=noise, rng=np.random.default_rng(0)).centres[0]
            for _ in range(600)
        ]
    )
    assert lloyd.iterations(900) == 7
    _, sum_scales = lloyd.iteration_scales(7)
    relative = released * 1000 / np.array(sum_scales)
    # Laplace of scale 1: standard error of the variance of 600 values is 2 sqrt(5 / 600) = 0.183.
    assert relative[:, 0].var() == pytest.approx(2, abs=5 * 0.183)
    assert relative[:, 1].var() == pytest.approx(2, abs=5 * 0.183)
