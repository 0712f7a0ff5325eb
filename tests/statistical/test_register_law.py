"""Registers follow their law: chi-square tests at p > 1e-4 with fixed seeds.

A test of a correct kernel fails with probability 1e-4 for a fresh seed.
"""

import numpy as np
import pytest
from scipy import stats

from splitmeans.kernels.registers import user_registers
from splitmeans.membership.sketch.registers import RegisterLaw
from splitmeans.paper.dpfm import SketchParameters, dpfm
from splitmeans.privacy.noise import InsecureSeededNoise

LEAST_P = 1e-4


def sketch(n: int, *, rows: int, floor: int, gamma: float, labels=None, seed: int = 1):
    """Registers of n users, all in one cluster unless labels say otherwise."""
    law = RegisterLaw(gamma=gamma)
    labels = np.zeros(n, dtype=np.int32) if labels is None else labels
    return user_registers(
        InsecureSeededNoise(seed).words(2 * n).reshape(n, 2),
        labels,
        n_clusters=int(labels.max()) + 1,
        repetitions=rows,
        floor=floor,
        count_table=law.count_table(repetitions=rows, floor=floor),
        excess_table=law.value_table,
    )


def p_value(registers: np.ndarray, *, elements: int, floor: int, gamma: float) -> float:
    """Chi-square of registers against the cdf F^elements, floored; thin values are pooled."""
    values = np.arange(floor, floor + 2000)
    cdf = (1 - (1 + gamma) ** -values.astype(float)) ** elements
    masses = np.diff(cdf, prepend=0.0)
    # Bins of at least 20 expected registers; the first starts at the floor and holds all below it.
    edges = [floor]
    for value in values:
        enough = masses[edges[-1] - floor : value - floor].sum() * registers.size >= 20
        if enough and (1 - cdf[value - floor - 1]) * registers.size >= 20:
            edges.append(int(value))
    starts = np.array(edges) - floor
    expected = np.add.reduceat(masses, starts) * registers.size
    expected[-1] = registers.size - expected[:-1].sum()
    observed = np.histogram(registers, bins=[*edges, 70_000])[0]
    return float(stats.chisquare(observed, expected).pvalue)


@pytest.mark.parametrize(
    ("n", "floor", "gamma"),
    [(1, 0, 1.0), (1, 2, 1.0), (40, 3, 1.0), (40, 20, 0.1), (300, 400, 0.01), (3, 1, 3.0)],
)
def test_register_follows_the_floored_maximum(n: int, floor: int, gamma: float) -> None:
    registers = sketch(n, rows=16_384, floor=floor, gamma=gamma)
    assert registers.min() >= floor
    assert p_value(registers, elements=n, floor=floor, gamma=gamma) > LEAST_P


@pytest.mark.parametrize(("gamma", "floor"), [(1.0, 4), (0.2, 15)])
def test_registers_are_distributed_like_the_naive_form(gamma: float, floor: int) -> None:
    n, rows = 50, 4096
    rng = np.random.default_rng(2)
    values = rng.geometric(gamma / (1 + gamma), size=(n, rows))  # every user, every register
    naive = np.maximum(values.max(axis=0), floor)
    fast = sketch(n, rows=rows, floor=floor, gamma=gamma).ravel()
    edges = np.unique(np.quantile(naive, np.linspace(0, 1, 12)))
    edges[-1] = 70_000
    table = [np.histogram(sample, bins=edges)[0] for sample in (naive, fast)]
    assert stats.chi2_contingency(table).pvalue > LEAST_P


@pytest.mark.parametrize("floor", [1, 2])
def test_rows_of_one_user_are_independent(floor: int) -> None:
    # Every user has a cluster of its own; which of 4 rows exceed the floor is one of 16 patterns.
    n, rows = 20_000, 4
    own = np.arange(n, dtype=np.int32)
    registers = sketch(n, rows=rows, floor=floor, gamma=1.0, labels=own)
    above = (registers > floor).astype(int)
    patterns = np.bincount((above.T << np.arange(rows)).sum(axis=1), minlength=16)
    ones = np.array([pattern.bit_count() for pattern in range(16)])
    p = 2.0**-floor
    expected = n * p**ones * (1 - p) ** (rows - ones)
    assert stats.chisquare(patterns, expected).pvalue > LEAST_P
    for row in range(rows):
        assert p_value(registers[row], elements=1, floor=floor, gamma=1.0) > LEAST_P


def test_values_of_two_rows_are_independent() -> None:
    n = 20_000
    own = np.arange(n, dtype=np.int32)
    first, second = sketch(n, rows=2, floor=1, gamma=1.0, labels=own)
    table = np.histogram2d(np.minimum(first, 4), np.minimum(second, 4), bins=4)[0]
    assert stats.chi2_contingency(table).pvalue > LEAST_P


NOBODY = np.zeros((0, 2), dtype=np.uint64)


@pytest.mark.parametrize("gamma", [1.0, 0.1, 0.01])
def test_phantoms_follow_the_maximum_of_their_number(gamma: float) -> None:
    # Without users a register is the phantoms' maximum, raised to the floor.
    law = SketchParameters(epsilon_2=0.5, delta_2=1e-3, gamma=gamma, repetitions=8192)
    noise = InsecureSeededNoise(3)
    registers = np.column_stack([dpfm(NOBODY, law, noise=noise) for _ in range(2)])
    for cluster in range(2):
        p = p_value(registers[:, cluster], elements=law.phantoms, floor=law.floor, gamma=gamma)
        assert p > LEAST_P
    # Drawn for each cluster on its own: correlation of 8192 pairs is within 5 / sqrt(8192).
    assert abs(np.corrcoef(registers.T.astype(float))[0, 1]) < 5 / np.sqrt(8192)


def test_users_and_phantoms_add_up() -> None:
    law = SketchParameters(epsilon_2=2.0, delta_2=1e-3, gamma=1.0, repetitions=16_384)
    n = 700
    users = InsecureSeededNoise(7).words(2 * n).reshape(n, 2)
    registers = dpfm(users, law, noise=InsecureSeededNoise(6))
    elements = n + law.phantoms
    assert p_value(registers, elements=elements, floor=law.floor, gamma=1.0) > LEAST_P
