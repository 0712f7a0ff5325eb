"""How many local clusters each party makes: the paper's rule of section 5.2.

More local clusters keep more of a party's information, but every cell of the grid then holds fewer
users while the sketch's error per cell grows. The rule stops where the error reaches half a cell.
"""

import math

# Relative standard deviation of a Flajolet-Martin estimate times sqrt(M) (the paper takes it from
# Lang 2017).
FM_DEVIATION = 0.649

# The refined estimator only ever decodes pairs of parties, whatever their number.
_DECODED_PARTIES = 2


def cell_deviation(
    *,
    n_users: float,
    cell_users: float,
    n_local_clusters: int,
    repetitions: int,
    epsilon: float,
    delta: float,
) -> float:
    """Standard deviation of one estimated cell of a pair of parties (the paper's Theorem 6).

    `epsilon` and `delta` are those of one party's sketch, the ones that set its phantoms.
    """
    sampling = FM_DEVIATION * (n_users - cell_users) / math.sqrt(repetitions)
    phantoms = 4 * _DECODED_PARTIES * (n_local_clusters - 1) * math.sqrt(math.log(1 / delta))
    return sampling + FM_DEVIATION * phantoms / epsilon


def paper_local_clusters(
    *,
    noisy_count: float,
    n_clusters: int,
    n_parties: int,
    repetitions: int,
    epsilon: float,
    delta: float,
) -> int:
    """Return k' = max(k0, k^(1/S)), k0 the smallest with 2 x deviation >= n / k0^2.

    The second term makes sure that the grid has at least k nodes.
    """
    enough_nodes = next(c for c in range(2, n_clusters + 2) if c**n_parties >= n_clusters)
    n_users = max(float(noisy_count), 1.0)
    k0 = 2
    while (
        2
        * cell_deviation(
            n_users=n_users,
            cell_users=n_users / k0**2,
            n_local_clusters=k0,
            repetitions=repetitions,
            epsilon=epsilon,
            delta=delta,
        )
        < n_users / k0**2
    ):
        k0 += 1
    return max(k0, enough_nodes)
