import itertools
import time
from dataclasses import dataclass

import numpy as np
import pytest

from splitmeans.synopsis import pairs_paper
from splitmeans.synopsis.joint import joint_weights
from splitmeans.synopsis.pairs_paper import FLOOR, fit_steps, step_size, two_party_weights


@dataclass
class Table:
    """An estimator whose answers are the margins of one array, plus optional errors of pairs."""

    cells: np.ndarray
    pair_error: float = 0.0

    @property
    def n_local_clusters(self):
        return self.cells.shape

    def one(self, party):
        return self._margin((party,))

    def joint(self, parties):
        margin = self._margin(tuple(parties))
        # A pattern that adds nothing to the total.
        pattern = (-1.0) ** np.indices(margin.shape).sum(axis=0)
        return margin + self.pair_error * (pattern - pattern.mean())

    def _margin(self, parties):
        others = tuple(axis for axis in range(self.cells.ndim) if axis not in parties)
        return np.transpose(self.cells.sum(axis=others), np.argsort(np.argsort(parties)))


def random_table(*shape, seed=0):
    return Table(np.random.default_rng(seed).gamma(0.5, 40.0, size=shape))


def naive_fit(estimator, *, total, rng):
    """Algorithm 5 cell by cell."""
    shape = estimator.n_local_clusters
    n_parties = len(shape)
    pairs = list(itertools.combinations(range(n_parties), 2))
    cells = list(itertools.product(*map(range, shape)))
    ones = [estimator.one(party) for party in range(n_parties)]
    weights = {c: total * np.prod([ones[p][a] / total for p, a in enumerate(c)]) for c in cells}
    for step in range(fit_steps(n_parties)):
        first, second = pairs[int(rng.integers(len(pairs)))]
        target = estimator.joint((first, second))
        slices = {}
        for cell in cells:
            slices.setdefault((cell[first], cell[second]), []).append(cell)
        for pair_cell, members in slices.items():
            excess = sum(weights[cell] for cell in members) - target[pair_cell]
            for cell in members:
                weights[cell] -= step_size(step, n_parties=n_parties) / len(members) * excess
                weights[cell] = max(weights[cell], FLOOR)
    return np.array([weights[cell] for cell in cells]).reshape(shape)


def test_schedule_by_hand():
    assert [fit_steps(n) for n in (3, 4, 5)] == [120, 240, 300]
    assert step_size(0, n_parties=3) == 0.5
    assert step_size(2, n_parties=3) == pytest.approx(0.5 * 0.96**2)
    assert step_size(9, n_parties=4) == 0.5
    assert step_size(20, n_parties=4) == pytest.approx(0.5 * 0.95**2)
    assert step_size(49, n_parties=5) == 0.5
    assert step_size(50, n_parties=8) == pytest.approx(0.5 * 0.95)


def test_one_step_by_hand(monkeypatch):
    monkeypatch.setattr(pairs_paper, "fit_steps", lambda n_parties: 1)
    # Users: 8 in cell 000 and 8 in cell 111. Independence puts 2 in each cell, so every pair's
    # table starts as 4 everywhere and should be 8 on its diagonal: excess -4 and +4. Half a step
    # over slices of two cells moves each cell by 0.5 / 2 * 4 = 1.
    cells = np.zeros((2, 2, 2))
    cells[0, 0, 0] = cells[1, 1, 1] = 8
    rng = np.random.default_rng(0)
    weights = two_party_weights(Table(cells), total=16, rng=rng)
    first, second = [(0, 1), (0, 2), (1, 2)][int(np.random.default_rng(0).integers(3))]
    index = np.indices((2, 2, 2))
    np.testing.assert_allclose(weights, np.where(index[first] == index[second], 3, 1))


@pytest.mark.parametrize("shape", [(3, 3, 3), (2, 4, 3)])
def test_equals_its_naive_twin(shape):
    table = random_table(*shape)
    total = float(table.cells.sum())
    fast = two_party_weights(table, total=total, rng=np.random.default_rng(5))
    naive = naive_fit(table, total=total, rng=np.random.default_rng(5))
    np.testing.assert_allclose(fast, naive, atol=1e-8 * total)


SHAPES = pytest.mark.parametrize("shape", [(4, 3, 5), (3, 3, 3, 3), (2, 2, 2, 2, 2)])


def pair_errors(weights, table):
    """Summed absolute error of each pair's table, as a share of the total."""
    pairs = itertools.combinations(range(table.cells.ndim), 2)
    differences = [Table(weights).joint(pair) - table.joint(pair) for pair in pairs]
    return np.array([np.abs(each).sum() for each in differences]) / table.cells.sum()


@SHAPES
def test_margins_of_exact_pairs_are_reproduced(shape):
    table = Table(np.random.default_rng(0).gamma(5.0, 40.0, size=shape))
    total = float(table.cells.sum())
    weights = two_party_weights(table, total=total, rng=np.random.default_rng(1))
    # Three parties have the fewest steps, and the decaying step leaves 0.15 %.
    assert pair_errors(weights, table).max() < 0.003
    assert weights.sum() == pytest.approx(total)


@SHAPES
def test_sparse_grids_are_fitted_better_than_independence(shape):
    table = random_table(*shape)
    total = float(table.cells.sum())
    weights = two_party_weights(table, total=total, rng=np.random.default_rng(1))
    assert weights.min() >= 0
    # Many cells of the fit would be negative. The floor corrects that step by step.
    assert pair_errors(weights, table).max() < 0.04
    start = pair_errors(_independent(table, total), table)
    assert (pair_errors(weights, table) < start).all()


def _independent(table, total):
    cells = np.array(total)
    for party in range(table.cells.ndim):
        cells = np.multiply.outer(cells, table.one(party) / total)
    return cells


def test_the_floor_is_the_smallest_weight():
    table = random_table(4, 3, 5)
    total = float(table.cells.sum())
    weights = two_party_weights(table, total=total, rng=np.random.default_rng(0))
    assert weights.min() == FLOOR == 1e-5


def test_noisy_pairs_and_negative_sizes_give_valid_weights():
    table = random_table(3, 4, 3)
    table.cells[0] -= 30
    table.pair_error = 20.0
    weights = two_party_weights(table, total=700.0, rng=np.random.default_rng(2))
    assert np.isfinite(weights).all()
    assert weights.min() >= 0
    assert weights.sum() == pytest.approx(700, rel=0.2)


def test_without_a_total_the_pairs_decide():
    table = random_table(3, 3, 3)
    total = float(table.cells.sum())
    given_total = two_party_weights(table, total=total, rng=np.random.default_rng(3))
    no_total = two_party_weights(table, total=None, rng=np.random.default_rng(3))
    np.testing.assert_allclose(no_total, given_total, rtol=1e-6, atol=1e-9 * total)


@pytest.mark.parametrize("n_parties", [1, 2])
def test_up_to_two_parties_are_fitted_directly(n_parties):
    table = random_table(*(3, 4)[:n_parties])
    table.pair_error = 60.0
    weights = two_party_weights(table, total=99.0, rng=np.random.default_rng(0))
    np.testing.assert_array_equal(weights, joint_weights(table, total=99.0))


def test_no_users_give_only_the_floor():
    table = Table(np.zeros((2, 2, 2)))
    rng = np.random.default_rng(0)
    assert two_party_weights(table, total=0.0, rng=rng).max() <= 1e-5


def test_same_generator_same_weights():
    table = random_table(3, 3, 3)
    first, second = (
        two_party_weights(table, total=500.0, rng=np.random.default_rng(8)) for _ in range(2)
    )
    np.testing.assert_array_equal(first, second)


def test_four_parties_of_eight_clusters_take_a_moment():
    table = random_table(8, 8, 8, 8)
    total = float(table.cells.sum())
    start = time.perf_counter()
    two_party_weights(table, total=total, rng=np.random.default_rng(0))
    # 0.015 s on one core; the bound leaves room for a busy machine.
    assert time.perf_counter() - start < 2.0


@dataclass
class Noise:
    """Sizes and cells that are far more noise than users."""

    n_local_clusters: tuple[int, ...]
    size: float

    def one(self, party):
        return np.full(self.n_local_clusters[party], self.size)

    def joint(self, parties):
        return np.full([self.n_local_clusters[party] for party in parties], self.size)


@pytest.mark.parametrize("n_parties", [3, 10])
def test_sizes_far_above_the_users_do_not_multiply(n_parties):
    noise = Noise((3,) * n_parties, size=1e6)
    weights = two_party_weights(noise, total=2.0, rng=np.random.default_rng(4))
    assert np.isfinite(weights).all()
    # The floor of 1e-5 in each of 59,049 cells is part of what is left.
    assert weights.sum() < 3.0 + 2 * 1e-5 * weights.size
