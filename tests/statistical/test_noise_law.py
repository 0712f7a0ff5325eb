"""Noise follows its law: chi-square against the exact pmf.

A test of the secure source, which cannot be seeded, fails by chance with probability 1e-4 (five
tests: about once in 2,000 runs). The seeded source has fixed draws and never fails by chance.
"""

import numpy as np
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
@pytest.mark.parametrize("scale", [0.7, 4.0])
def test_laplace_law(source, scale):
    assert p_value(source.laplace(scale, SIZE), laplace_weight, scale) > SMALLEST_P


@by_name
def test_gaussian_law(source):
    # At this scale a rounded Gaussian (the seeded source) and a discrete one cannot be told apart.
    assert p_value(source.gaussian(6.0, SIZE), gaussian_weight, 6.0) > SMALLEST_P


def test_discrete_gaussian_law_at_a_small_scale():
    assert p_value(SecureNoise().gaussian(0.8, SIZE), gaussian_weight, 0.8) > SMALLEST_P


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
