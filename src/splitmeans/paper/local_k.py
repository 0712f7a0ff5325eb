"""The number of local clusters k' (paper, section 5.2).

More local clusters keep more of a party's information, but every cell then holds fewer users while
the error of its weight grows. The rule stops where two deviations reach the size of a cell.
"""

import math

from splitmeans.paper.dpfm import SketchParameters

# Relative deviation of a Flajolet-Martin estimate times sqrt(M); the paper takes it from Lang 2017.
RHO = 0.649


def local_k(
    noisy_count: float, parameters: SketchParameters, *, n_clusters: int, n_parties: int
) -> int:
    """Return k' = max(k0, k^(1/S)), k0 the smallest with 2 sigma >= n-hat / k0^2.

    The second term makes sure that the grid has at least k nodes.
    """
    n = max(float(noisy_count), 1.0)
    k0 = 2
    while 2 * weight_deviation(n, n / k0**2, parameters, n_local_clusters=k0) < n / k0**2:
        k0 += 1
    enough_nodes = next(c for c in range(1, n_clusters + 1) if c**n_parties >= n_clusters)
    return max(k0, enough_nodes)


def weight_deviation(
    n: float, weight: float, parameters: SketchParameters, *, n_local_clusters: int
) -> float:
    """Return the standard deviation of one estimated cell of a pair of parties (Theorem 6)."""
    sampling = RHO * (n - weight) / math.sqrt(parameters.repetitions)
    united = 2 * (n_local_clusters - 1)  # 2PEst decodes pairs of parties, whatever their number
    phantoms = 4 * RHO * united * math.sqrt(math.log(1 / parameters.delta_2)) / parameters.epsilon_2
    return sampling + phantoms
