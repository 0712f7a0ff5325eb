"""IND-LAP: cell weights as if parties were independent (paper, section 4.1, baseline 1)."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from splitmeans._types import FloatArray, IntArray
from splitmeans.kmeans.nearest import nearest_centres
from splitmeans.paper.basic_est import consistent
from splitmeans.paper.mechanisms import laplace_counts
from splitmeans.privacy.noise import NoiseSource


@dataclass(frozen=True, kw_only=True, eq=False)
class NoisyHistogram:
    """The message of one party: noisy sizes of its clusters, shape (k',)."""

    noisy_sizes: IntArray

    @property
    def n_bytes(self) -> int:
        """Size of the message."""
        return self.noisy_sizes.nbytes


def ind_lap_encode(
    rows: FloatArray, centres: FloatArray, *, epsilon_2: float, noise: NoiseSource
) -> NoisyHistogram:
    """Return the noisy sizes of a party's clusters, empty ones included.

    Guarantee: epsilon_2-DP for adding or removing one user. The noise is added to counts, as the
    paper writes; the authors' code adds it to fractions of n, which is n times too much.
    """
    counts = np.bincount(nearest_centres(rows, centres), minlength=len(centres))
    return NoisyHistogram(noisy_sizes=laplace_counts(counts, epsilon=epsilon_2, noise=noise))


def ind_lap_estimate(noisy_count: float, histograms: Sequence[NoisyHistogram]) -> FloatArray:
    """Return n-hat times the product of the parties' noisy shares, shape (k', ..., k').

    Negative sizes count as zero, since two of them would multiply to a positive weight, and the
    weights are made consistent with n-hat as those of Algorithm 4; the paper says neither.
    """
    n = max(float(noisy_count), 1.0)
    shares = [np.maximum(own.noisy_sizes, 0) / n for own in histograms]
    product: FloatArray = functools.reduce(np.multiply.outer, shares)
    return consistent(product * n, total=n)
