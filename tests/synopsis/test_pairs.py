import itertools
import time
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from splitmeans.errors import ParameterError
from splitmeans.synopsis import pairs as pairs_module
from splitmeans.synopsis.pairs import clean_pair_tables, max_entropy_weights


@dataclass
class Table:
    """An estimator whose answers are the margins of one array, with Gaussian noise on pairs."""

    cells: np.ndarray
    deviation: float = 0.0
    seed: int = 0
    answers: dict = field(default_factory=dict)

    def __post_init__(self):
        rng = np.random.default_rng(self.seed)
        for pair in itertools.combinations(range(self.cells.ndim), 2):
            margin = margin_of(self.cells, pair)
            self.answers[pair] = margin + self.deviation * rng.standard_normal(margin.shape)

    @property
    def n_local_clusters(self):
        return self.cells.shape

    def one(self, party):
        return margin_of(self.cells, (party,))

    def joint(self, parties):
        if len(parties) == 1:
            return self.one(parties[0])
        return self.answers[tuple(parties)]


def margin_of(cells, parties):
    return cells.sum(axis=tuple(axis for axis in range(cells.ndim) if axis not in parties))


def independent(*sizes):
    """A grid of independent parties: the margins alone determine it."""
    total = sizes[0].sum()
    grid = sizes[0]
    for size in sizes[1:]:
        grid = np.multiply.outer(grid, size / total)
    return grid


def clustered(*, n_parties, width, n=20_000, n_classes=5, purity=0.9, seed=0):
    """Users of a few classes; each party's label depends on the class only, plus chance."""
    rng = np.random.default_rng(seed)
    classes = rng.integers(n_classes, size=n)
    cells = np.zeros((width,) * n_parties)
    home = rng.integers(width, size=(n_parties, n_classes))
    labels = np.where(
        rng.random((n_parties, n)) < purity, home[:, classes], (home[:, classes] + 1) % width
    )
    np.add.at(cells, tuple(labels), 1.0)
    return cells


def naive_fit(tables, shape, total, rounds):
    """Proportional fitting cell by cell."""
    cells = list(itertools.product(*map(range, shape)))
    weights = {cell: total / len(cells) for cell in cells}
    for _ in range(rounds):
        for (i, j), target in tables.items():
            margin = np.zeros(target.shape)
            for cell in cells:
                margin[cell[i], cell[j]] += weights[cell]
            for cell in cells:
                at = cell[i], cell[j]
                weights[cell] *= target[at] / margin[at] if margin[at] > 0 else 0.0
    return np.array([weights[cell] for cell in cells]).reshape(shape)


def error(weights, cells):
    return np.abs(weights - cells).sum() / cells.sum()


# ---- exact tables ----


def test_two_parties_give_their_table():
    cells = np.array([[5.0, 0.0, 1.0], [0.0, 7.0, 2.0]])
    np.testing.assert_allclose(max_entropy_weights(Table(cells)), cells, atol=1e-9)


def test_independent_parties_are_restored():
    cells = independent(np.array([10.0, 30.0]), np.array([8.0, 12.0, 20.0]), np.array([1.0, 39.0]))
    np.testing.assert_allclose(max_entropy_weights(Table(cells)), cells, rtol=1e-4)


def test_equal_labels_are_restored():
    """Every party has the same label for a user: pairs rule out all cells off the diagonal."""
    cells = np.zeros((3, 3, 3))
    cells[0, 0, 0], cells[1, 1, 1], cells[2, 2, 2] = 5, 6, 7
    np.testing.assert_allclose(max_entropy_weights(Table(cells)), cells, atol=1e-9)


def test_maximum_entropy_by_hand():
    """Parties 1 and 2 are independent given party 0, which is what the pairs cannot contradict."""
    cells = np.zeros((2, 2, 2))
    cells[0] = np.outer([0.9, 0.1], [0.8, 0.2]) * 60
    cells[1] = np.outer([0.3, 0.7], [0.5, 0.5]) * 40
    np.testing.assert_allclose(max_entropy_weights(Table(cells)), cells, rtol=1e-2)


def test_fast_fit_equals_naive_fit(monkeypatch):
    monkeypatch.setattr(pairs_module, "_NEGLIGIBLE", 0.0)
    monkeypatch.setattr(pairs_module, "_TOLERANCE", 0.0)
    estimator = Table(np.random.default_rng(3).gamma(0.5, 40.0, size=(2, 3, 4)), deviation=4.0)
    tables, total = clean_pair_tables(estimator, deviation=4.0)
    slow = naive_fit(tables, (2, 3, 4), total, rounds=pairs_module._ROUNDS)
    fast = max_entropy_weights(estimator, deviation=4.0)
    np.testing.assert_allclose(fast, slow * (total / slow.sum()), rtol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_pairs_of_the_fit_are_those_of_the_tables(seed):
    cells = clustered(n_parties=3, width=5, seed=seed)
    fitted = max_entropy_weights(Table(cells))
    for pair in itertools.combinations(range(3), 2):
        assert error(margin_of(fitted, pair), margin_of(cells, pair)) < 0.01


# ---- noisy tables ----


@pytest.mark.parametrize("deviation", [5.0, 20.0, 70.0])
def test_noisy_pairs_beat_independence_and_have_little_spurious_weight(deviation):
    cells = clustered(n_parties=4, width=8)
    estimator = Table(cells, deviation=deviation)
    sizes = [margin_of(cells, (party,)) for party in range(4)]
    cut, uncut = max_entropy_weights(estimator, deviation=deviation), max_entropy_weights(estimator)
    assert error(cut, cells) < 0.15 * error(independent(*sizes), cells)
    # Weight where no user is: what makes centres wrong.
    assert cut[cells == 0].sum() < 0.7 * uncut[cells == 0].sum()


def test_tables_agree_before_the_cut():
    tables = dict(Table(clustered(n_parties=3, width=4), deviation=30.0).answers)
    sizes, total = pairs_module._agree((4, 4, 4), tables)
    for (i, j), table in tables.items():
        np.testing.assert_allclose(table.sum(axis=1), sizes[i])
        np.testing.assert_allclose(table.sum(axis=0), sizes[j])
        assert table.sum() == pytest.approx(total)


def test_agreement_is_least_squares():
    """The agreed tables solve the normal equations: the change is orthogonal to all margins."""
    shape = (2, 3, 4)
    rng = np.random.default_rng(0)
    pairs = list(itertools.combinations(range(3), 2))
    tables = {p: rng.normal(size=(shape[p[0]], shape[p[1]])) for p in pairs}
    # Brute force: least squares over tables that are margins of one (signed) grid.
    design = np.concatenate(
        [
            np.stack([margin_of(unit.reshape(shape), p).ravel() for unit in np.eye(24)], axis=1)
            for p in pairs
        ]
    )
    observed = np.concatenate([tables[p].ravel() for p in pairs])
    fitted = design @ np.linalg.lstsq(design, observed, rcond=None)[0]
    pairs_module._agree(shape, tables)
    np.testing.assert_allclose(np.concatenate([tables[p].ravel() for p in pairs]), fitted)


def test_cells_within_the_noise_are_cut():
    cells = np.zeros((6, 6))
    cells[np.diag_indices(6)] = 3000.0
    tables, total = clean_pair_tables(Table(cells, deviation=10.0), deviation=10.0)
    table = tables[0, 1]
    assert (table[np.diag_indices(6)] > 2900).all()
    # 30 empty cells, each above 3 deviations with probability 0.13 %: four or more have 1e-7.
    assert np.count_nonzero(table) - 6 < 4
    assert table.sum() == pytest.approx(total)


def test_a_cluster_spread_over_many_cells_survives():
    """Each cell is below the cut, their sum is not: the cluster keeps its largest cells."""
    cells = np.full((2, 40, 1), 15.0)
    cells[1] = 1000.0
    tables, _ = clean_pair_tables(Table(cells, deviation=10.0), deviation=10.0)
    assert tables[0, 1][0].sum() > 0.7 * 600


def test_two_parties_cut_cells_where_most_users_stay_and_keep_the_total():
    noise_and_rare = np.array([[1000.0, 34.0], [-2.0, 500.0]])
    weights = max_entropy_weights(Table(noise_and_rare), deviation=10.0)
    np.testing.assert_allclose(weights, np.array([[1000, 0], [0, 500]]) * 1532 / 1500)
    many_are_rare = np.array([[100.0, 29.0], [-2.0, 50.0]])
    weights = max_entropy_weights(Table(many_are_rare), deviation=10.0)
    np.testing.assert_allclose(weights, np.array([[100, 29], [0, 50]]) * 177 / 179)


def test_noise_alone_is_projected():
    table = np.array([[15.0, 12.0], [14.0, -1.0]])
    weights = max_entropy_weights(Table(table), deviation=10.0)
    np.testing.assert_allclose(weights, [[15 - 1 / 3, 12 - 1 / 3], [14 - 1 / 3, 0]])


def test_explaining_marks_by_hand():
    table = np.array([[5.0, 1.0, 3.0, -2.0], [1.0, 1.0, -1.0, 0.0], [9.0, 9.0, 9.0, 9.0]])
    marks = pairs_module.explaining(np.array([6.0, 10.0, -1.0]), table)
    assert marks.tolist() == [
        [True, False, True, False],
        [True, True, False, False],
        [False, False, False, False],
    ]


def test_contradicting_cuts_do_not_lose_users():
    """Supports that no cell satisfies (0=1, 1=2, 0!=2) still give weights with the right sum."""
    same, crossed = np.diag([50.0, 50.0]), np.array([[0.0, 50.0], [50.0, 0.0]])
    estimator = Table(np.zeros((2, 2, 2)))
    estimator.answers = {(0, 1): same, (1, 2): same, (0, 2): crossed}
    weights = max_entropy_weights(estimator, deviation=1.0)
    assert weights.sum() == pytest.approx(100)
    assert np.isfinite(weights).all()
    assert weights.min() >= 0


@settings(max_examples=50, deadline=None)
@given(
    shape=st.lists(st.integers(1, 4), min_size=2, max_size=4),
    scale=st.sampled_from([0.0, 1e-3, 1.0, 1e4]),
    deviation=st.sampled_from([None, 0.0, 1e-6, 1.0, 1e5]),
    seed=st.integers(0, 2**32 - 1),
)
def test_weights_are_always_valid(shape, scale, deviation, seed):
    cells = np.random.default_rng(seed).gamma(0.1, 1.0, size=shape) * scale
    estimator = Table(cells, deviation=deviation or 0.0, seed=seed)
    weights = max_entropy_weights(estimator, deviation=deviation)
    total = clean_pair_tables(estimator, deviation=deviation)[1]
    assert weights.shape == tuple(shape)
    assert np.isfinite(weights).all()
    assert weights.min() >= 0
    assert weights.sum() == pytest.approx(total)


def test_no_users_give_no_weight():
    weights = max_entropy_weights(Table(np.full((2, 2, 2), -1.0)), deviation=1.0)
    assert weights.tolist() == np.zeros((2, 2, 2)).tolist()


def test_bad_arguments_are_refused():
    with pytest.raises(ParameterError, match=r"deviation must be >= 0, got -1\.0"):
        max_entropy_weights(Table(np.ones((2, 2))), deviation=-1.0)
    with pytest.raises(ParameterError, match="deviation must be a finite number"):
        max_entropy_weights(Table(np.ones((2, 2))), deviation=np.nan)


def test_the_estimator_is_not_changed():
    estimator = Table(clustered(n_parties=3, width=3), deviation=5.0)
    before = {pair: table.copy() for pair, table in estimator.answers.items()}
    max_entropy_weights(estimator, deviation=5.0)
    for pair, table in estimator.answers.items():
        np.testing.assert_array_equal(table, before[pair])


def test_twenty_thousand_cells_are_fast():
    estimator = Table(clustered(n_parties=4, width=12), deviation=20.0)
    start = time.process_time()
    max_entropy_weights(estimator, deviation=20.0)
    assert time.process_time() - start < 0.5  # measured: 0.01 s
