"""The LSH tree: which nodes exist, and how much noise they carry, by hand."""

import math
from dataclasses import dataclass, field
from statistics import NormalDist

import numpy as np
import pytest

from splitmeans.errors import ParameterError
from splitmeans.local.dplsf import Dplsf
from splitmeans.local.dplsf_paper import DplsfPaper, Leaf, _count_errors, grow, min_points, sim_hash
from splitmeans.local.law import COUNT_UNITS
from splitmeans.privacy.events import GaussianEvent, LaplaceEvent
from splitmeans.privacy.gaussian import discrete_slack

UNIT = 2**20


@dataclass
class ScriptedNoise:
    """Hands out the given numbers, then zeros, and notes what was asked for."""

    script: list[int] = field(default_factory=list)
    asked: list[tuple[str, float, int]] = field(default_factory=list)
    secure: bool = False

    def laplace(self, scale: float, size: int):
        return self._draw("laplace", scale, size)

    def gaussian(self, scale: float, size: int):
        return self._draw("gaussian", scale, size)

    def _draw(self, law, scale, size):
        self.asked.append((law, scale, size))
        drawn = [self.script.pop(0) if self.script else 0 for _ in range(size)]
        return np.array(drawn, dtype=np.int64)


def bits_of(hashes: list[str]) -> np.ndarray:
    """Turn one hash text per row into the (depth, n) array."""
    return np.array([[bit == "1" for bit in text] for text in hashes]).T


def grown(hashes, *, script=(), low_noise_points=2, n_clusters=1, noise=None):
    noise = noise or ScriptedNoise(script=list(script))
    leaves = grow(
        bits_of(hashes),
        count_scale=7.0,
        low_noise_points=low_noise_points,
        n_clusters=n_clusters,
        noise=noise,
    )
    return {leaf.prefix: (leaf.noisy_count, leaf.raw_members.tolist()) for leaf in leaves}


# Twelve rows; theta = min(2, 12 // 2) = 2, so nodes with 6 or more branch:
# root 12 -> "0" 8, "1" 4; "0" -> "00" 7, "01" 1 (dropped); "00" -> "000" 6, "001" 1 (dropped).
TWELVE = ["000"] * 6 + ["001"] + ["010"] + ["110"] * 4


def test_tree_by_hand_without_noise():
    assert grown(TWELVE) == {"1": (4, [8, 9, 10, 11]), "000": (6, [0, 1, 2, 3, 4, 5])}


def test_every_level_asks_for_noise_on_both_children():
    noise = ScriptedNoise()
    grown(TWELVE, noise=noise)
    # Root, its two children, the children of "0", the children of "00"; "1" does not branch.
    assert noise.asked == [("laplace", 7.0, size) for size in (1, 2, 2, 2)]


def test_noise_is_added_to_the_child_it_was_drawn_for():
    # Root +0; "0" 8 - 3 = 5 (leaf); "1" 4 + 2 = 6 branches into "10" 0 + 1 and "11" 4 + 5 = 9,
    # which branches once more into "110" 4 - 1 and "111" 0 + 0.
    leaves = grown(TWELVE, script=[0, -3, 2, 1, 5, -1, 0])
    assert leaves == {"0": (5, list(range(8))), "110": (3, [8, 9, 10, 11])}


def test_an_empty_child_can_survive_on_noise():
    # All six rows go to "0"; the empty "1" gets +2 = theta and stays, with no rows.
    assert grown(["0"] * 6, script=[0, 0, 2]) == {"0": (6, [0, 1, 2, 3, 4, 5]), "1": (2, [])}


def test_an_empty_child_below_theta_is_dropped():
    assert grown(["0"] * 6, script=[0, 0, 1]) == {"0": (6, [0, 1, 2, 3, 4, 5])}


def test_a_node_that_loses_both_children_is_a_leaf():
    assert grown(["0"] * 3 + ["1"] * 3, script=[0, -2, -2]) == {"": (6, [0, 1, 2, 3, 4, 5])}


def test_branching_starts_at_exactly_three_theta():
    assert set(grown(["0"] * 3 + ["1"] * 3, script=[0])) == {"0", "1"}  # 6 = 3 * 2
    assert set(grown(["0"] * 3 + ["1"] * 3, script=[-1])) == {""}  # 5 < 6


def test_a_negative_root_count_gives_one_leaf():
    assert grown(["0", "1"], script=[-40]) == {"": (-38, [0, 1])}


@pytest.mark.parametrize(
    ("root", "low_noise", "k", "theta"),
    [(1000, 30, 5, 30), (1000, 300, 5, 100), (1009, 300, 5, 100), (3, 300, 5, 1), (-50, 9, 2, 1)],
)
def test_theta(root, low_noise, k, theta):
    assert min_points(root, low_noise_points=low_noise, n_clusters=k) == theta


def test_rows_of_leaves_are_disjoint():
    rng = np.random.default_rng(5)
    bits = rng.random((6, 500)) < 0.4
    noise = ScriptedNoise(script=rng.integers(-9, 10, 2000).tolist())
    leaves = grow(bits, count_scale=1.0, low_noise_points=4, n_clusters=3, noise=noise)
    members = np.concatenate([leaf.raw_members for leaf in leaves])
    assert len(members) == len(set(members.tolist()))
    for leaf in leaves:
        for level, bit in enumerate(leaf.prefix):
            assert (bits[level, leaf.raw_members] == (bit == "1")).all()
    prefixes = [leaf.prefix for leaf in leaves]
    assert not any(a != b and b.startswith(a) for a in prefixes for b in prefixes)


def test_sim_hash_by_hand():
    rows = np.array([[1, 0], [-1, 0], [3, -4], [0, 0]])
    normals = np.array([[1, 0], [4, 3], [-1, -1]])
    assert sim_hash(rows, normals).tolist() == [
        [True, False, True, True],
        [True, False, True, True],  # (3, -4) lies exactly on the second plane: side one
        [False, True, True, True],
    ]


def test_a_hash_does_not_depend_on_other_rows():
    rng = np.random.default_rng(2)
    rows = rng.integers(-UNIT, UNIT, (300, 5))
    normals = rng.integers(-UNIT, UNIT, (20, 5))
    bits = sim_hash(rows, normals)
    order = rng.permutation(300)[:170]
    assert (sim_hash(rows[order], normals) == bits[:, order]).all()


def test_laplace_scales_by_hand():
    tree = DplsfPaper(n_clusters=3, bounds=(UNIT, UNIT, UNIT // 2), epsilon=1.3)
    # Counts: 0.2 * 1.3 / 21 per level gives 80.7692..., rounded up to 1/1024.
    assert tree.count_scale == 82_708 / 1024
    # Sums: L1 = 2.5 * 2^20, over 0.8 * 1.3 gives 2520615.38...
    assert tree.sum_scale == 2_520_616
    # In units of the widest column: 10 sqrt(3) * sqrt(2) * 2520616 / 2^20 = 58.88...
    assert tree.low_noise_points == 58


def test_laplace_event_lists_every_level_and_the_sums():
    tree = DplsfPaper(n_clusters=3, bounds=(UNIT, UNIT, UNIT // 2), epsilon=1.3, depth=4)
    *levels, sums = tree.event.parts
    # 0.26 / 5 per level: 19.23..., rounded up to 19692/1024.
    assert levels == [LaplaceEvent(noise_multiplier=19_693 / 1024, single_count=True)] * 5
    assert sums == LaplaceEvent(noise_multiplier=2_520_616 / 2_621_440)


def gaussian_delta(multiplier: float, epsilon: float) -> float:
    """Exact delta of the Gaussian mechanism (Balle and Wang 2018, Theorem 8)."""
    cdf = NormalDist().cdf
    half, shift = 1 / (2 * multiplier), epsilon * multiplier
    return cdf(half - shift) - math.exp(epsilon) * cdf(-half - shift)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 5e-5), (0.25, 5e-5), (6.0, 1e-7)])
def test_gaussian_scale_is_just_enough(epsilon, delta):
    bounds = (UNIT,) * 4  # L2 = 2^21
    tree = DplsfPaper(n_clusters=5, bounds=bounds, epsilon=epsilon, delta=delta, sums="gaussian")
    multiplier = tree.sum_scale / 2**21
    assert gaussian_delta(multiplier, 0.8 * epsilon) <= delta
    assert gaussian_delta(multiplier * 0.9999, 0.8 * epsilon) > delta
    slack = discrete_slack(tree.sum_scale, mu=2**21 / tree.sum_scale, coordinates=4)
    expected = GaussianEvent(noise_multiplier=multiplier, slack=slack, delta=delta)
    assert tree.event.parts[-1] == expected
    assert tree.low_noise_points == math.floor(20 * multiplier)


def test_gaussian_scale_by_known_value():
    tree = DplsfPaper(n_clusters=5, bounds=(UNIT,) * 4, epsilon=1, delta=5e-5, sums="gaussian")
    assert tree.sum_scale / 2**21 == pytest.approx(4.0977142, rel=1e-6)


def test_gaussian_noise_is_never_finer_than_the_discrete_proof_allows():
    tree = DplsfPaper(n_clusters=5, bounds=(100,), epsilon=1, delta=1e-5, sums="gaussian")
    assert tree.sum_scale == 2**16


def test_leaf_sums_are_exact_sums_plus_the_drawn_noise():
    rows = np.array([[1, 10], [2, 20], [3, 30]])
    leaves = [
        Leaf(prefix="0", noisy_count=2, raw_members=np.array([0, 2])),
        Leaf(prefix="1", noisy_count=1, raw_members=np.array([], dtype=np.int64)),
    ]
    noise = ScriptedNoise(script=[5, -5, 1, 2])
    tree = DplsfPaper(n_clusters=2, bounds=(10, 100), epsilon=1)
    assert tree.leaf_sums(rows, leaves, noise=noise).tolist() == [[9, 35], [1, 2]]
    assert noise.asked == [("laplace", tree.sum_scale, 4)]


def test_release_draws_counts_first_and_sums_last():
    tree = DplsfPaper(n_clusters=2, bounds=(UNIT, UNIT), epsilon=1, delta=1e-3, sums="gaussian")
    rows = np.random.default_rng(0).integers(-UNIT, UNIT, (4000, 2))
    noise = ScriptedNoise()
    centres = tree.release(rows, noise=noise, rng=np.random.default_rng(1)).centres
    *counts, sums = noise.asked
    assert counts[0] == ("laplace", tree.count_scale, 1)
    assert all(call[:2] == ("laplace", tree.count_scale) for call in counts)
    assert len(counts) <= tree.depth + 1
    assert sums[:2] == ("gaussian", tree.sum_scale)
    assert centres.shape == (2, 2)


def test_rows_outside_the_bounds_are_clipped_before_they_are_summed():
    # Ten rows stay one leaf, so the centre is their mean: 10 after clipping, without noise.
    tree = DplsfPaper(n_clusters=1, bounds=(10, 10), epsilon=1)
    rows = np.full((10, 2), 10**9)
    rng = np.random.default_rng(0)
    assert tree.release(rows, noise=ScriptedNoise(), rng=rng).centres.tolist() == [[10, 10]]


def test_a_leaf_does_not_print_its_rows():
    assert "members" not in repr(Leaf(prefix="0", noisy_count=1, raw_members=np.arange(3)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"epsilon": 0}, "epsilon must be > 0"),
        ({"depth": 0}, "depth must be a whole number >= 1"),
        ({"sum_share": 1}, "sum_share must be between 0 and 1"),
        ({"sums": "cauchy"}, "sums must be one of 'laplace', 'gaussian'"),
        ({"sums": "gaussian"}, "delta must be a finite number, got None"),
        ({"delta": 1e-5}, "delta must be None with Laplace sums"),
        ({"bounds": (2**37, 2**37)}, "less than 2\\^38"),
        ({"n_clusters": 0}, "n_clusters must be a whole number >= 1"),
    ],
)
def test_wrong_parameters_are_refused(change, message):
    with pytest.raises(ParameterError, match=message):
        DplsfPaper(**{"n_clusters": 2, "bounds": (UNIT,), "epsilon": 1.0} | change)


def test_gaussian_counts_are_drawn_in_fine_units():
    # A root of 12 rows with noise of +3 units of 2^20, then -3 and +2 rows for its children:
    # "0" 8 - 3 = 5 is a leaf, "1" 4 + 2 = 6 branches into "10" 0 and "11" 4. Noise is rounded.
    noise = ScriptedNoise(script=[3 * UNIT, -3 * UNIT, UNIT + UNIT // 2 + 1])
    leaves = grow(
        bits_of(TWELVE),
        count_scale=7.0,
        low_noise_points=2,
        n_clusters=1,
        noise=noise,
        law="gaussian",
    )
    assert {leaf.prefix: leaf.noisy_count for leaf in leaves} == {"0": 5, "11": 4}
    assert noise.asked[:2] == [("gaussian", 7.0, 1), ("gaussian", 7.0, 2)]


def test_gaussian_tree_scales_by_hand():
    tree = Dplsf(n_clusters=3, bounds=(UNIT,) * 4, mu=0.5, depth=8, sum_share=0.64)
    # Counts: 0.5 sqrt(0.36 / 9) = 0.1 per level; sums: 0.5 * 0.8 = 0.4 for an L2 norm of 2.
    assert tree.count_scale == pytest.approx(10 * UNIT, abs=1)
    assert tree.sum_scale == pytest.approx(5 * UNIT, abs=1)
    assert tree.low_noise_points == 50
    *levels, sums = tree.event.parts
    assert len(levels) == 9
    assert levels[0].noise_multiplier == pytest.approx(10, rel=1e-6)
    # A coordinate adds ((12 + mu)^2 + 1) / (24 scale^2) to the loss.
    assert levels[0].slack == pytest.approx((12.1**2 + 1) / 24 / (10 * UNIT) ** 2, rel=1e-3)
    assert sums.noise_multiplier == pytest.approx(2.5, rel=1e-6)
    assert sums.slack == pytest.approx(4 * (12.4**2 + 1) / 24 / (5 * UNIT) ** 2, rel=1e-3)


def test_gaussian_tree_draws_counts_first_and_sums_last():
    tree = Dplsf(n_clusters=2, bounds=(UNIT, UNIT), mu=1.0)
    rows = np.random.default_rng(0).integers(-UNIT, UNIT, (4000, 2))
    noise = ScriptedNoise()
    centres = tree.release(rows, noise=noise, rng=np.random.default_rng(1)).centres
    *counts, sums = noise.asked
    assert counts[0] == ("gaussian", tree.count_scale, 1)
    assert all(call[:2] == ("gaussian", tree.count_scale) for call in counts)
    assert sums[:2] == ("gaussian", tree.sum_scale)
    assert centres.shape == (2, 2)


def test_rounded_count_noise_moves_with_the_count():
    """count + error must be a function of count + noise, or rounding is not post-processing."""

    class Halves:
        secure = False

        def gaussian(self, scale: float, size: int) -> np.ndarray:
            return np.array([COUNT_UNITS // 2, -COUNT_UNITS // 2, COUNT_UNITS // 2 - 1, 0])

    errors = _count_errors("gaussian", 1.0, 4, noise=Halves())
    # 0 + half and 1 - half are the same noisy count, so they must be released alike.
    assert errors.tolist() == [1, 0, 0, 0]
