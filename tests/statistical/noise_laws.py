"""Whether errors of releases have a law: p-values, and the errors themselves."""

import math
from collections.abc import Callable

import numpy as np
from scipy import stats

from audits.noise_twins import Silence
from splitmeans._types import FloatArray, IntArray
from splitmeans.privacy.noise import NoiseSource

# Of one side of one comparison. A case makes two comparisons of two sides at most, so it fails by
# chance with probability 2e-8, and all cases of all files that use this below 1e-6.
TAIL = 5e-9

Release = Callable[[NoiseSource], FloatArray | IntArray]


def errors_of(release: Release, times: int, source: Callable[[], NoiseSource]) -> FloatArray:
    """What noise does to a release, shape (times, values)."""
    plain = np.ravel(release(Silence()))
    return np.array([np.ravel(release(source())) - plain for _ in range(times)], dtype=float)


def p_gaussian(errors: FloatArray, scale: float) -> float:
    """The smaller p-value of two: of all values' variance, and of the sums over one release.

    Values of one release that share a draw are as large as they should be, and their sum is not.
    """
    sums = errors.sum(axis=1) / math.sqrt(errors.shape[1])
    return min(
        min(stats.chi2.cdf(total, own.size), stats.chi2.sf(total, own.size))
        for own in (errors.ravel(), sums)
        for total in [float(np.square(own / scale).sum())]
    )


def p_laplace(errors: FloatArray, scale: float) -> float:
    """The p-value of the mean size of values, whose law is nearly continuous at a large scale."""
    assert scale > 10
    total = float(np.abs(errors).sum()) / scale
    return min(stats.gamma.cdf(total, errors.size), stats.gamma.sf(total, errors.size))


def p_table(values: IntArray, weights: tuple[float, ...]) -> float:
    """The p-value of whole numbers against an exact table, by chi-square; rare values together."""
    chances = np.array(weights, dtype=float) / sum(weights)
    common = chances * values.size >= 20
    observed = np.bincount(values, minlength=len(weights))
    found, wanted = (
        np.append(own[common], own[~common].sum()) for own in (observed, chances * values.size)
    )
    return float(stats.chisquare(found, wanted).pvalue)


def p_share(hits: int, trials: int, chance: float) -> float:
    """The p-value of a number of successes."""
    law = stats.binom(trials, chance)
    return float(min(law.cdf(hits), law.sf(hits - 1)))
