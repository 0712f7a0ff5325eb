"""Expectation maximisation for a mixture over weighted rows of numbers and categories.

In a component the numbers are Gaussian, with a full or a diagonal covariance matrix, and each
column of categories has probabilities of its own, independent of the rest. Rows are weighted, and
may have shares of categories in place of one: their log likelihood is the expected one.
"""

import functools
import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from splitmeans._types import FloatArray

# Added to every variance, in the scale of columns from -1 to 1: half a per cent of a column's
# range is finer than any histogram that a party releases, and keeps a component on one place, or on
# a column with one value, from growing without end.
LEAST_DEVIATION = 0.01
# As many users of the average kind are added to the categories of each component: a category that
# it was not seen with is rare in it, not impossible.
_PRIOR_USERS = 1.0
_LEAST_SHARE = 1e-12
_CHUNK_NUMBERS = 2**18


@dataclass(frozen=True, kw_only=True, eq=False)
class Components:
    """The components of a mixture, in the scale of columns from -1 to 1.

    Attributes:
        shares: Of all users, adding up to one, shape (k,).
        means: Of the d columns of numbers, shape (k, d).
        covariances: Shape (k, d, d), or (k, d) of variances alone if diagonal.
        probabilities: For each column of categories those of its categories, each (k, L).
    """

    shares: FloatArray
    means: FloatArray
    covariances: FloatArray
    probabilities: tuple[FloatArray, ...]

    @property
    def is_diagonal(self) -> bool:
        """Whether numbers are independent within a component."""
        return self.covariances.ndim == 2

    def log_densities(self, numbers: FloatArray, shares: list[FloatArray]) -> FloatArray:
        """Return the logarithm of share times density of each component, shape (n, k)."""
        k, d = self.means.shape
        found = np.empty((len(numbers), k))
        # Small enough for the processor's own memory: the work is many short products.
        step = max(64, _CHUNK_NUMBERS // max(1, k * d))
        for start in range(0, len(numbers), step):
            rows = slice(start, start + step)
            found[rows] = self._squares(numbers[rows])
        found += self._log_sizes + d * math.log(2 * math.pi)
        found *= -0.5
        for part, own in zip(shares, self.probabilities, strict=True):
            found += part @ np.log(np.maximum(own, _LEAST_SHARE)).T
        return found + np.log(np.maximum(self.shares, _LEAST_SHARE))

    def _squares(self, numbers: FloatArray) -> FloatArray:
        """Return squared distances in deviations of each component, shape (n, k)."""
        k, d = self.means.shape
        if self.is_diagonal:
            gaps = (numbers[:, np.newaxis] - self.means) * self._roots
        else:
            gaps = (numbers @ self._stacked_roots).reshape(len(numbers), k, d)
            gaps -= self._root_means
        return np.asarray(np.einsum("nkd,nkd->nk", gaps, gaps))

    @functools.cached_property
    def _roots(self) -> FloatArray:
        """Inverse deviations, shape (k, d), or inverse Cholesky factors, shape (k, d, d)."""
        if self.is_diagonal:
            return np.asarray(1 / np.sqrt(self.covariances))
        return np.asarray(np.linalg.inv(np.linalg.cholesky(self.covariances)))

    @functools.cached_property
    def _stacked_roots(self) -> FloatArray:
        """All factors side by side, shape (d, k d), so that one product is enough for all."""
        k, d = self.means.shape
        return np.ascontiguousarray(self._roots.transpose(2, 0, 1).reshape(d, k * d))

    @functools.cached_property
    def _root_means(self) -> FloatArray:
        return np.asarray(np.einsum("kij,kj->ki", self._roots, self.means))

    @functools.cached_property
    def _log_sizes(self) -> FloatArray:
        """Logarithms of the determinants of the covariances, shape (k,)."""
        roots = self._roots
        own = roots if self.is_diagonal else np.diagonal(roots, axis1=1, axis2=2)
        return np.asarray(-2 * np.log(own).sum(axis=1))

    def of_columns(
        self, numbers: npt.NDArray[np.bool_], categories: npt.NDArray[np.bool_]
    ) -> "Components":
        """Return the mixture that these columns alone have: its margin."""
        covariances = (
            self.covariances[:, numbers]
            if self.is_diagonal
            else self.covariances[:, numbers][:, :, numbers]
        )
        kept = zip(self.probabilities, categories, strict=True)
        return Components(
            shares=self.shares,
            means=self.means[:, numbers],
            covariances=covariances,
            probabilities=tuple(own for own, is_kept in kept if is_kept),
        )


def responsibilities(log_densities: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the probability of each component, shape (n, k), and log likelihoods, shape (n,)."""
    largest = log_densities.max(axis=1, keepdims=True)
    scaled = np.exp(log_densities - largest)
    sums = scaled.sum(axis=1, keepdims=True)
    return scaled / sums, (largest + np.log(sums)).ravel()


def best_components(
    numbers: FloatArray,
    shares: list[FloatArray],
    weights: FloatArray,
    given: FloatArray,
    *,
    diagonal: bool,
) -> Components:
    """Return the components for given probabilities of them, shape (n, k): the M step.

    Components without users are left out. A full covariance is drawn towards its diagonal by as
    many users as there are columns, so that it is regular however few it is made of.
    """
    parts = given * weights[:, np.newaxis]
    sizes = parts.sum(axis=0)
    used = sizes > _LEAST_SHARE * weights.sum()
    parts, sizes = parts[:, used], sizes[used]
    means = (parts.T @ numbers) / sizes[:, np.newaxis]
    # Users who stand at few nodes say no more about a shape than those nodes do.
    nodes = np.minimum(sizes, np.square(sizes) / np.square(parts).sum(axis=0))
    covariances = np.stack(
        [
            _covariance(numbers, part, mean, own, diagonal=diagonal)
            for part, mean, own in zip(parts.T, means, nodes, strict=True)
        ]
    )
    probabilities = []
    for part in shares:
        overall = weights @ part / weights.sum()
        counts = parts.T @ part + _PRIOR_USERS * overall
        probabilities.append(counts / counts.sum(axis=1, keepdims=True))
    return Components(
        shares=sizes / sizes.sum(),
        means=means,
        covariances=covariances,
        probabilities=tuple(probabilities),
    )


def _covariance(
    numbers: FloatArray, part: FloatArray, mean: FloatArray, nodes: float, *, diagonal: bool
) -> FloatArray:
    # Most rows are far from most components.
    near = np.flatnonzero(part > _LEAST_SHARE * part.max())
    gaps, shares = numbers[near] - mean, part[near] / part[near].sum()
    least = LEAST_DEVIATION**2
    if diagonal:
        return np.asarray(shares @ np.square(gaps) + least)
    found = (gaps * shares[:, np.newaxis]).T @ gaps
    own = np.diag(np.diag(found))
    d = len(found)
    return np.asarray((nodes * found + d * own) / (nodes + d) + least * np.eye(d))
