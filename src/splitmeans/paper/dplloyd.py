"""DPLloyd: Lloyd's iterations with noisy counts and sums (paper, section 3.5).

The paper names the method; the details are those of Su, Cao, Li, Bertino and Jin, "Differentially
Private K-Means Clustering" (CODASPY 2016): centres start spread over the box without looking at
data, and their error analysis gives the number of iterations and the budget of counts and sums.
They take the number of rows as public; here a small share of epsilon releases a noisy one.
"""

import math

import numpy as np

from splitmeans._types import FloatArray
from splitmeans.kmeans.nearest import nearest_centres
from splitmeans.paper.mechanisms import laplace_counts, laplace_sums, to_grid
from splitmeans.privacy.noise import NoiseSource

# Share of epsilon for the number of rows; it only decides the number of iterations.
SIZE_SHARE = 0.02
# From their analysis: rho is the typical coordinate of a centre in a box of half-width 1; the
# constant is 2 / 0.004, for a mean squared error of 0.004; beyond 7 iterations little is gained.
RHO = 0.225
ERROR_CONSTANT = 500
MIN_ITERATIONS, MAX_ITERATIONS = 2, 7
# A radius is too large when this many random points in a row do not fit.
_PACKING_TRIES, _PACKING_HALVINGS = 100, 20


def dplloyd(
    rows: FloatArray,
    n_clusters: int,
    *,
    epsilon: float,
    noise: NoiseSource,
    rng: np.random.Generator,
) -> FloatArray:
    """Return private centres, shape (n_clusters, m).

    Guarantee: epsilon-DP for adding or removing one row. A row is in one cluster, so a count has
    sensitivity 1 and the sum of a column has sensitivity 1; each has a budget of its own in every
    iteration, and all of them add up to epsilon.

    Rows have shape (n, m) and values in [-1, 1]; `rng` places the starting centres.
    """
    grid_rows = to_grid(rows)
    n, m = rows.shape
    noisy_size = n + int(noise.laplace(1 / (SIZE_SHARE * epsilon), 1)[0])
    left = (1 - SIZE_SHARE) * epsilon
    iterations = n_iterations(noisy_size, n_clusters=n_clusters, n_columns=m, epsilon=left)
    weight = count_weight(m)
    per_column = left / iterations / (m + weight)
    centres = pack_spheres(n_clusters, m, rng=rng)
    for _ in range(iterations):
        labels = nearest_centres(rows, centres)
        counts = np.bincount(labels, minlength=n_clusters)
        sums = np.zeros((n_clusters, m), dtype=np.int64)
        np.add.at(sums, labels, grid_rows)
        noisy_counts = laplace_counts(counts, epsilon=weight * per_column, noise=noise)
        noisy_sums = laplace_sums(sums, sensitivity=1, epsilon=per_column, noise=noise)
        # A count within one deviation of zero says nothing about where the centre is.
        useful = noisy_counts >= max(1.0, math.sqrt(2) / (weight * per_column))
        means = noisy_sums / np.where(useful, noisy_counts, 1)[:, np.newaxis]
        centres = np.where(useful[:, np.newaxis], np.clip(means, -1, 1), centres)
    return centres


def count_weight(n_columns: int) -> float:
    """Return a count's budget relative to that of one column's sum; it minimises the error."""
    return math.cbrt(4 * n_columns * RHO**2)


def n_iterations(noisy_size: int, *, n_clusters: int, n_columns: int, epsilon: float) -> int:
    """Return how many iterations the budget carries for this many rows."""
    columns = n_columns + count_weight(n_columns)
    least_epsilon = math.sqrt(ERROR_CONSTANT * n_clusters**3 * columns**3) / max(1, noisy_size)
    affordable = math.floor(epsilon / least_epsilon)
    return min(max(affordable, MIN_ITERATIONS), MAX_ITERATIONS)


def pack_spheres(n_centres: int, n_columns: int, *, rng: np.random.Generator) -> FloatArray:
    """Return centres in [-1, 1]^m far from each other and from the walls, shape (n_centres, m).

    Searches the largest radius at which random spheres still fit, by halving.
    """
    # Radius zero always fits, so there is a packing to return.
    packed = _try_packing(n_centres, n_columns, radius=0.0, rng=rng)
    assert packed is not None
    low, high = 0.0, math.sqrt(n_columns)
    for _ in range(_PACKING_HALVINGS):
        radius = (low + high) / 2
        found = _try_packing(n_centres, n_columns, radius=radius, rng=rng)
        if found is None:
            high = radius
        else:
            low, packed = radius, found
    return packed


def _try_packing(
    n_centres: int, n_columns: int, *, radius: float, rng: np.random.Generator
) -> FloatArray | None:
    inside = max(1 - radius, 0.0)
    centres = np.empty((n_centres, n_columns))
    for placed in range(n_centres):
        tries = rng.uniform(-inside, inside, size=(_PACKING_TRIES, n_columns))
        gaps = np.linalg.norm(tries[:, np.newaxis] - centres[np.newaxis, :placed], axis=2)
        fits = np.flatnonzero((gaps >= 2 * radius).all(axis=1))
        if len(fits) == 0:
            return None
        centres[placed] = tries[fits[0]]
    return centres
