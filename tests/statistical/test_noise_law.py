"""Noise has its distribution: chi-square against the exact probabilities, and against OpenDP.

A test of the secure source, which cannot be seeded, fails by chance with probability 1e-4, and one
that compares with OpenDP with probability 1e-6 (20 tests: about once in 1,000 runs). The seeded
source has fixed draws and never fails by chance.
"""

import numpy as np
import opendp.prelude as dp
import pytest
from scipy import stats

from splitmeans.privacy.noise import InsecureSeededNoise, SecureNoise

SMALLEST_P = 1e-4
SIZE = 20_000
SOURCES = [SecureNoise(), InsecureSeededNoise(11)]
by_name = pytest.mark.parametrize("source", SOURCES, ids=lambda source: type(source).__name__)


def laplace_weight(values, scale):
    return np.exp(-np.abs(values) / scale)


def gaussian_weight(values, scale):
    return np.exp(-(values**2) / (2 * scale**2))


def p_value(drawn, weight, scale):
    """Chi-square p-value of integers against a pmf, with tails joined to cells of >= 10."""
    reach = int(60 * scale) + 10  # beyond it lies less than e^-60
    values = np.arange(-reach, reach + 1)
    expected = weight(values.astype(float), scale)
    expected *= len(drawn) / expected.sum()
    inner = np.flatnonzero(expected >= 10)
    low, high = values[inner[0]], values[inner[-1]]
    observed = np.bincount(np.clip(drawn, low - 1, high + 1) - (low - 1), minlength=high - low + 3)
    cells = np.concatenate(
        [[expected[: inner[0]].sum()], expected[inner], [expected[inner[-1] + 1 :].sum()]]
    )
    # The two tails are one cell each and may still be small; put them together.
    observed = np.append(observed[1:-1], observed[0] + observed[-1])
    cells = np.append(cells[1:-1], cells[0] + cells[-1])
    return stats.chisquare(observed, cells).pvalue


@by_name
@pytest.mark.parametrize("scale", [0.2, 0.7, 4.0])
def test_laplace_law(source, scale):
    assert p_value(source.laplace(scale, SIZE), laplace_weight, scale) > SMALLEST_P


@by_name
def test_gaussian_law(source):
    # At this scale a rounded Gaussian (the seeded source) and a discrete one cannot be told apart.
    assert p_value(source.gaussian(6.0, SIZE), gaussian_weight, 6.0) > SMALLEST_P


@pytest.mark.parametrize("scale", [0.3, 0.8, 1.0])
def test_discrete_gaussian_law_at_a_small_scale(scale):
    assert p_value(SecureNoise().gaussian(scale, SIZE), gaussian_weight, scale) > SMALLEST_P


# ---- against another implementation ----

TWIN_P = 1e-6


def drawn_by_opendp(kind, scale):
    dp.enable_features("contrib")
    if kind == "laplace":
        space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
        twin = dp.m.make_laplace(*space, scale=scale)
    else:
        space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")
        twin = dp.m.make_gaussian(*space, scale=scale)
    return np.array(twin([0] * SIZE))


def p_of_one_distribution(first, second):
    """Chi-square p-value that two samples are of one distribution, by at most 40 cells of values.

    Edges are quantiles of both samples together, so each cell holds draws enough.
    """
    both = np.concatenate([first, second])
    edges = np.unique(np.quantile(both, np.linspace(0, 1, 41)[1:-1], method="nearest"))
    cells = len(edges) + 1
    counts = np.array(
        [np.bincount(np.searchsorted(edges, own), minlength=cells) for own in (first, second)]
    )
    counts = counts[:, counts.sum(axis=0) > 0]
    return stats.chi2_contingency(counts, correction=False).pvalue


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("scale", [0.4, 0.95, 1.0, 17.3, 3e5, 2.0**49])
def test_draws_are_distributed_as_those_of_opendp(kind, scale):
    own = getattr(SecureNoise(), kind)(scale, SIZE)
    assert p_of_one_distribution(own, drawn_by_opendp(kind, scale)) > TWIN_P


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_a_scale_that_is_not_that_of_opendp_is_caught(kind):
    """A tenth less noise; missed with a probability far below that of a false failure."""
    own = getattr(SecureNoise(), kind)(15.5, SIZE)
    assert p_of_one_distribution(own, drawn_by_opendp(kind, 17.3)) < TWIN_P


@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_a_wrong_scale_is_caught(factor):
    source = InsecureSeededNoise(12)
    assert p_value(source.laplace(4.0 * factor, SIZE), laplace_weight, 4.0) < SMALLEST_P
    assert p_value(source.gaussian(6.0 * factor, SIZE), gaussian_weight, 6.0) < SMALLEST_P


@by_name
def test_words_are_uniform(source):
    words = source.words(SIZE)
    for shift in (0, 28, 56):
        counts = np.bincount(
            ((words >> np.uint64(shift)) & np.uint64(255)).astype(int), minlength=256
        )
        assert stats.chisquare(counts).pvalue > SMALLEST_P / 3
    # Bits are fair: 64 counts within 5 standard errors, probability 64 * 6e-7 = 4e-5.
    bits = np.unpackbits(words.view(np.uint8)).reshape(SIZE, 64).sum(axis=0)
    assert np.abs(bits - SIZE / 2).max() < 5 * np.sqrt(SIZE) / 2


def test_spawned_streams_are_uncorrelated():
    root = InsecureSeededNoise(13)
    streams = np.array(
        [root.spawn(label).gaussian(100.0, SIZE) for label in ("a", "b", "c")]
        + [root.gaussian(100.0, SIZE)]
    )
    correlations = np.corrcoef(streams)[np.triu_indices(4, k=1)]
    # Standard error 1 / sqrt(n) each.
    assert np.abs(correlations).max() < 5 / np.sqrt(SIZE)
