"""Algorithms 2 to 5 and the rule for k': by hand, against naive twins, and their distributions."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from splitmeans.errors import PrivacyError
from splitmeans.paper.basic_est import basic_est, cardinality, consistent, union_cardinalities
from splitmeans.paper.dpfm import SketchParameters, dpfm
from splitmeans.paper.dpfmps_gen import PartitionSketch, dpfmps_gen
from splitmeans.paper.local_k import local_k, weight_deviation
from splitmeans.paper.two_party_est import (
    LEAST_WEIGHT,
    fit_to_pairs,
    independent,
    n_steps,
    step_size,
    two_party_est,
)
from splitmeans.privacy.noise import InsecureSeededNoise

SMALL = SketchParameters(epsilon_2=1.0, delta_2=0.01, repetitions=32)
KEY = bytes(range(16))


def test_parameters_by_hand() -> None:
    # docs/concepts/published-argument.md: a total of (0.49, 5e-5) at two parties.
    two = SketchParameters(epsilon_2=0.245, delta_2=2.5e-5)
    assert two.epsilon_prime == pytest.approx(0.245 / (4 * 64 * math.sqrt(math.log(40_000))))
    assert (two.phantoms, two.floor) == (3401, 12)
    # epsilon' = 1 / (4 sqrt(32 ln 100)) = 0.02059: 1 / (e^0.02059 - 1) = 48.07; log2(49.07) = 5.6.
    assert (SMALL.phantoms, SMALL.floor) == (49, 6)
    with pytest.raises(PrivacyError, match=r"epsilon_2 must be <= 2 ln\(1/delta_2\) = 9.21"):
        SketchParameters(epsilon_2=9.3, delta_2=0.01)


def test_sketch_of_a_set_has_the_distribution_of_algorithm_2() -> None:
    """max(phantoms, elements, alpha_min): F(v)^(n_p + size), all below alpha_min at it.

    A chi-squared test with a fixed seed: false failure with probability 1e-4.
    """
    parameters = SketchParameters(epsilon_2=1.0, delta_2=0.01, repetitions=20_000)
    noise = InsecureSeededNoise(3)
    size = 500
    hashes = noise.words(2 * size).reshape(-1, 2)
    alpha = dpfm(hashes, parameters, noise=noise)
    assert alpha.shape == (20_000,)
    assert alpha.min() == parameters.floor
    values = np.arange(parameters.floor, parameters.floor + 8)
    cdf = (1 - 2.0**-values) ** (parameters.phantoms + size)
    shares = np.diff(np.concatenate([[0.0], cdf[:-1], [1.0]]))
    counts = np.bincount(np.minimum(alpha, values[-1]) - values[0], minlength=len(values))
    assert stats.chisquare(counts, shares * alpha.size).pvalue > 1e-4


def test_parties_with_the_same_key_agree_on_their_users() -> None:
    """One cluster of all users: registers differ only where a phantom is the largest."""
    rows = np.zeros((3_000, 1))
    centres = np.array([[0.0], [1.0]])
    first, second = (
        dpfmps_gen(rows, centres, SMALL, hash_key=KEY, noise=InsecureSeededNoise(seed))
        for seed in (1, 2)
    )
    assert first.registers.shape == (32, 2)
    assert first.registers.dtype == np.uint16
    assert first.n_bytes == 128
    # 3,000 users against 49 phantoms: a phantom is the largest in 1 of 62 rows; of 32 rows more
    # than 8 differ with probability below 1e-6 (binomial, p = 2/62).
    assert np.count_nonzero(first.registers[:, 0] != second.registers[:, 0]) <= 8
    other = dpfmps_gen(rows, centres, SMALL, hash_key=KEY[::-1], noise=InsecureSeededNoise(1))
    assert np.count_nonzero(first.registers[:, 0] != other.registers[:, 0]) > 8


def test_cardinality_by_hand() -> None:
    registers = np.array([[1, 3], [2, 3]], dtype=np.uint16)
    # Column sums of 2^-register are 3/4 and 1/4; M = 2; 1/(2 ln 2) and 3 ln 2 - 1 at gamma = 1.
    factor = 1 / (2 * math.log(2)) / (1 + (3 * math.log(2) - 1) / 2)
    found = cardinality(registers, gamma=1.0)
    np.testing.assert_allclose(found, [2 / 0.75 * factor, 2 / 0.25 * factor], rtol=1e-12)


def test_constants_are_those_of_the_authors_at_gamma_one() -> None:
    registers = np.full((4096, 1), 10, dtype=np.uint16)
    published = 2**10 * 0.7213 / (1 + 1.079 / 4096)
    assert cardinality(registers, gamma=1.0)[0] == pytest.approx(published, rel=1e-4)


def made_up(*widths: int) -> list[PartitionSketch]:
    # Few different values, so that ties for the largest are frequent.
    values = np.random.default_rng(0)
    return [
        PartitionSketch(
            registers=(SMALL.floor + values.integers(0, 5, size=(32, k))).astype(np.uint16)
        )
        for k in widths
    ]


@pytest.mark.parametrize("widths", [(2, 2), (3, 4), (2, 3, 4)])
def test_unions_against_algorithm_4_cell_by_cell(widths: tuple[int, ...]) -> None:
    sketches = made_up(*widths)
    tables = [sketch.registers for sketch in sketches]
    expected = np.zeros(widths)
    for cell in itertools.product(*map(range, widths)):
        union = [
            max(
                table[row, a]
                for table, own in zip(tables, cell, strict=True)
                for a in range(table.shape[1])
                if a != own
            )
            for row in range(32)
        ]
        expected[cell] = cardinality(np.array(union, dtype=np.uint16), gamma=1.0)
    np.testing.assert_allclose(union_cardinalities(tables, gamma=1.0), expected, rtol=1e-12)
    raw = 900 - (expected - sum(k - 1 for k in widths) * SMALL.phantoms)
    found = basic_est(900, SMALL, sketches)
    np.testing.assert_allclose(found, consistent(raw, total=900))
    assert found.min() >= 0
    assert found.sum() == pytest.approx(900)


def test_consistency_by_hand() -> None:
    # Minus 5 from both leaves 10; the third is cut off.
    assert consistent(np.array([12.0, 8.0, 1.0]), total=10).tolist() == [7.0, 3.0, 0.0]
    assert consistent(np.array([12.0, 8.0]), total=-3).tolist() == [0.0, 0.0]


def test_basic_est_finds_the_cells() -> None:
    """Errors of cells are within 6 deviations of Theorem 6 of their truth.

    Four cells, close to normal: false failure below 4 * 2e-9 for a fixed seed.
    """
    n = 20_000
    labels = np.random.default_rng(1).integers(4, size=n)
    centres = np.array([[-1.0], [1.0]])
    parameters = SketchParameters(epsilon_2=2.0, delta_2=1e-5)
    sketches = [
        dpfmps_gen(
            np.where(bit, 1.0, -1.0)[:, None],
            centres,
            parameters,
            hash_key=KEY,
            noise=InsecureSeededNoise(seed),
        )
        for seed, bit in enumerate((labels >= 2, labels % 2 == 1))
    ]
    found = basic_est(n, parameters, sketches)
    truth = np.bincount(labels, minlength=4).reshape(2, 2)
    deviation = weight_deviation(n, n / 4, parameters, n_local_clusters=2)
    assert np.abs(found - truth).max() < 6 * deviation
    assert np.array_equal(
        two_party_est(n, parameters, sketches, rng=np.random.default_rng(0)), found
    )


def test_steps_of_2pest() -> None:
    assert [n_steps(s) for s in (3, 4, 5)] == [120, 240, 300]
    assert step_size(2, n_parties=3) == 0.5 * 0.96**2
    assert step_size(19, n_parties=4) == 0.5 * 0.95
    assert step_size(100, n_parties=6) == 0.5 * 0.95**2


def test_independent_start_by_hand() -> None:
    start = independent(10, [np.array([4.0, 6.0]), np.array([10.0, -3.0])])
    assert start.tolist() == [[4.0, 0.0], [6.0, 0.0]]
    assert independent(-1, [np.ones(2), np.ones(3)]).tolist() == [[0.0] * 3] * 2


def test_fit_against_algorithm_5_cell_by_cell() -> None:
    cells = np.random.default_rng(0).gamma(0.5, 40.0, size=(2, 3, 2))
    total = float(cells.sum())
    sizes = [cells.sum(axis=tuple(a for a in range(3) if a != party)) for party in range(3)]
    pairs = {(0, 1): cells.sum(axis=2), (0, 2): cells.sum(axis=1), (1, 2): cells.sum(axis=0)}
    found = fit_to_pairs(total, sizes, pairs, rng=np.random.default_rng(5))

    rng = np.random.default_rng(5)
    weights = {
        cell: total * math.prod(sizes[p][a] / total for p, a in enumerate(cell))
        for cell in itertools.product(range(2), range(3), range(2))
    }
    for t in range(n_steps(3)):
        pair = list(pairs)[int(rng.integers(3))]
        eta = step_size(t, n_parties=3)
        projected: dict[tuple[int, int], float] = {}
        for cell, weight in weights.items():
            place = cell[pair[0]], cell[pair[1]]
            projected[place] = projected.get(place, 0.0) + weight
        slice_cells = math.prod(cells.shape) / math.prod(pairs[pair].shape)
        for cell in weights:
            place = cell[pair[0]], cell[pair[1]]
            weights[cell] -= eta / slice_cells * (projected[place] - pairs[pair][place])
            weights[cell] = max(weights[cell], LEAST_WEIGHT)
    np.testing.assert_allclose(found, np.array(list(weights.values())).reshape(cells.shape))
    # The fit explains the tables of pairs better than independent parties do.
    before = np.abs(independent(total, sizes).sum(axis=2) - pairs[0, 1]).sum()
    assert np.abs(found.sum(axis=2) - pairs[0, 1]).sum() < 0.2 * before


def test_number_of_local_clusters_by_hand() -> None:
    parameters = SketchParameters(epsilon_2=0.245, delta_2=2.5e-5)
    # 0.649 (20000 - 5000) / 64 + 4 * 0.649 * 2 sqrt(10.597) / 0.245 = 152 + 69.
    deviation = weight_deviation(20_000, 5_000, parameters, n_local_clusters=2)
    assert deviation == pytest.approx(152.1 + 69.0, abs=0.1)
    found = local_k(20_000, parameters, n_clusters=5, n_parties=2)
    for k0, reached in ((found - 1, False), (found, True)):
        sigma = weight_deviation(20_000, 20_000 / k0**2, parameters, n_local_clusters=k0)
        assert (2 * sigma >= 20_000 / k0**2) == reached
    # A grid of fewer than k nodes would be too small.
    assert local_k(10, parameters, n_clusters=100, n_parties=2) == 10
    assert local_k(-5, parameters, n_clusters=5, n_parties=4) == 2
