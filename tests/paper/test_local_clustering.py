"""DPLSF and DPLloyd: trees by hand, budgets from the draws, and clear clusters found."""

import math
from dataclasses import dataclass, field

import numpy as np
import pytest

from splitmeans.paper.datasets import mixed_gaussian
from splitmeans.paper.dplloyd import count_weight, dplloyd, n_iterations, pack_spheres
from splitmeans.paper.dplsf import COUNT_SHARE, DEPTH, SUM_SHARE, dplsf, grow
from splitmeans.paper.mechanisms import GRID, gaussian_sums, laplace_counts, laplace_sums, to_grid
from splitmeans.paper.metrics import normalised_loss
from splitmeans.privacy.gaussian import gaussian_multiplier
from splitmeans.privacy.noise import InsecureSeededNoise

DATA = mixed_gaussian(5_000, n_columns=3, n_clusters=4, std=0.05, random_state=4)


@dataclass
class NoNoise:
    """A source of zeros that keeps the scales it was asked for, with the number of draws."""

    secure: bool = False
    asked: list[tuple[str, float, int]] = field(default_factory=list)

    def laplace(self, scale: float, size: int) -> np.ndarray:
        self.asked.append(("laplace", scale, size))
        return np.zeros(size, dtype=np.int64)

    def gaussian(self, scale: float, size: int) -> np.ndarray:
        self.asked.append(("gaussian", scale, size))
        return np.zeros(size, dtype=np.int64)

    def words(self, size: int) -> np.ndarray:
        raise AssertionError("local clustering draws no words")

    def spawn(self, label: str) -> "NoNoise":
        return self


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_mechanisms_by_hand() -> None:
    noise = NoNoise()
    assert laplace_counts(np.array([3, 0]), epsilon=0.5, noise=noise).tolist() == [3, 0]
    sums = to_grid(np.array([[0.5, 2.0], [-0.25, -1.0]]))
    assert sums.tolist() == [[GRID // 2, GRID], [-GRID // 4, -GRID]]
    assert laplace_sums(sums, sensitivity=2, epsilon=0.5, noise=noise).tolist() == [
        [0.5, 1.0],
        [-0.25, -1.0],
    ]
    gaussian_sums(sums, deviation=3.0, noise=noise)
    assert noise.asked == [
        ("laplace", 2.0, 2),
        ("laplace", 4.0 * GRID, 4),
        ("gaussian", 3.0 * GRID, 4),
    ]


def test_tree_by_hand() -> None:
    """Twelve rows, theta = min(2, 12 // 4) = 2: nodes of 6 and more are branched."""
    first = np.array([0] * 8 + [1] * 4, dtype=bool)  # 8 rows and 4: the 4 are a leaf
    second = np.array([0] * 7 + [1] * 5, dtype=bool)  # of the 8: 7 rows, and 1, which is dropped
    third = np.zeros(12, dtype=bool)  # of the 7: all on one side
    leaves = grow(
        np.array([first, second, third]),
        count_epsilon=1.0,
        most_points=2,
        n_clusters=2,
        noise=NoNoise(),
    )
    assert [leaf.raw_members.tolist() for leaf in leaves] == [[8, 9, 10, 11], list(range(7))]
    assert [leaf.noisy_count for leaf in leaves] == [4, 7]


def test_small_tables_have_one_leaf() -> None:
    bits = np.zeros((DEPTH, 2), dtype=bool)
    (leaf,) = grow(bits, count_epsilon=1.0, most_points=50, n_clusters=3, noise=NoNoise())
    assert leaf.raw_members.tolist() == [0, 1]
    centres = dplsf(np.array([[0.5], [0.7]]), 3, epsilon=1.0, noise=NoNoise(), rng=rng())
    np.testing.assert_allclose(centres, [[0.6]] * 3, atol=1e-6)


@pytest.mark.parametrize("delta", [None, 1e-5])
def test_draws_of_dplsf_add_up_to_epsilon(delta: float | None) -> None:
    noise = NoNoise()
    dplsf(DATA.rows, 4, epsilon=2.0, delta=delta, noise=noise, rng=rng())
    *counts, (kind, scale, size) = noise.asked
    # Counts: scale 1 / (share of a level), 21 levels; children of a level are disjoint.
    level = COUNT_SHARE * 2.0 / (DEPTH + 1)
    assert {(name, of) for name, of, _ in counts} == {("laplace", 1 / level)}
    assert size % 3 == 0
    if delta is None:
        # A row changes a sum by at most 3 in L1.
        assert (kind, scale) == ("laplace", pytest.approx(GRID * 3 / (SUM_SHARE * 2.0)))
    else:
        multiplier = gaussian_multiplier(SUM_SHARE * 2.0, delta)
        assert (kind, scale) == ("gaussian", pytest.approx(GRID * multiplier * math.sqrt(3)))


def test_draws_of_dplloyd_add_up_to_epsilon() -> None:
    noise = NoNoise()
    dplloyd(DATA.rows, 4, epsilon=2.0, noise=noise, rng=rng())
    (_, size_scale, _), *rest = noise.asked
    iterations = len(rest) // 2
    spent = 1 / size_scale
    for (_, count_scale, _), (_, sum_scale, drawn) in zip(rest[::2], rest[1::2], strict=True):
        assert drawn == 4 * 3
        # A row is in one cluster: one count, and one sum in each of 3 columns.
        spent += 1 / count_scale + 3 * GRID / sum_scale
    assert spent == pytest.approx(2.0)
    assert iterations == n_iterations(5_000, n_clusters=4, n_columns=3, epsilon=0.98 * 2.0)


def test_iterations_of_dplloyd_by_hand() -> None:
    # sqrt(500 * 8 * (1 + w)^3) / n with w = cbrt(4 * 0.225^2) = 0.5873: 126.4 / n.
    assert count_weight(1) == pytest.approx(0.5873, abs=1e-4)
    assert n_iterations(1000, n_clusters=2, n_columns=1, epsilon=0.5) == 3
    assert n_iterations(10, n_clusters=2, n_columns=1, epsilon=0.5) == 2
    assert n_iterations(10**6, n_clusters=2, n_columns=1, epsilon=0.5) == 7


def test_spheres_do_not_overlap() -> None:
    centres = pack_spheres(4, 2, rng=rng())
    gaps = np.linalg.norm(centres[:, None] - centres, axis=2)[np.triu_indices(4, 1)]
    # Four circles of radius 0.5 fill a square of half-width 1; random ones get near 0.4.
    assert gaps.min() > 0.6
    assert np.abs(centres).max() < 0.7


@pytest.mark.parametrize("algorithm", [dplsf, dplloyd])
def test_losses_fall_with_epsilon(algorithm) -> None:  # type: ignore[no-untyped-def]
    """Over eight fixed seeds a mean loss at epsilon 50 is well below that at 0.05."""

    def loss(epsilon: float) -> float:
        found = [
            algorithm(
                DATA.rows,
                4,
                epsilon=epsilon,
                noise=InsecureSeededNoise(seed),
                rng=np.random.default_rng(seed),
            )
            for seed in range(8)
        ]
        assert all(np.abs(centres).max() <= 1 for centres in found)
        return float(np.mean([normalised_loss(DATA.rows, centres) for centres in found]))

    assert loss(50.0) < 0.8 * loss(0.05)
