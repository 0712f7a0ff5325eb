"""How many clusters each party makes for the decoy join when the study says "auto".

From public quantities only; docs/concepts/budget.md has the measurements.
"""

import math

from splitmeans.membership.method import enough_clusters
from splitmeans.privacy.gaussian import gaussian_multiplier
from splitmeans.privacy.split import tight_split
from splitmeans.study import Study
from splitmeans.study.methods import MANY_PARTIES

# Limits of k', of that of six parties and more by noise alone, and with partial sets.
_FEWEST, _MOST, _MOST_OF_MANY, _MOST_OF_PARTIAL = 4, 64, 24, 16
# Cells of a grid that is fitted in seconds.
_WHOLE_GRID = 2**22
# Of two parties: the least k' that noise allowing is worth its cells whatever k, and from how many
# users per deviation on finer cells pay, down to half as many users in each.
_NEEDED_BY_TWO = 10
_PLENTY = 1_500
# Of three or more parties: so many local clusters for each segment find nearly all, or most, that
# are clearly apart, if cells then have as many users per deviation of their noise as this.
_FOR_EACH = ((1.2, 1.4), (0.9, 1.2))
# Of six parties and more: if noise allows fewer local clusters than this share of the segments,
# these are not told apart anyway, and cells that are mostly noise only cost.
_WORTH_TRYING = 0.4
# Of three or more parties with partial user sets: how many users, per deviation of its noise, a
# cell of a pair table should have on average where each label is in two tables. How many two
# parties share nobody knows. A quarter of a party's users is a cautious guess: with half, a run
# whose parties share a twentieth loses twice as much, and with 70 % shared nothing is gained.
_USERS_PER_CELL = 6
_AT_BOTH = 0.25


def decoy_local_clusters(study: Study, users: int) -> int:
    """Return k' for a study with about this many users."""
    partial = study.user_sets == "partial" and len(study.parties) > 2
    chosen = _partial_clusters(study, users) if partial else _pair_clusters(study, users)
    return max(chosen, enough_clusters(study))


def _partial_clusters(study: Study, users: int) -> int:
    """Return k' where pair tables of three or more parties have "absent" as one more label.

    Segments that are far apart are merged if there are fewer local clusters than segments; so there
    is at least one more, whatever the noise.
    """
    shared = _AT_BOTH * users / _cell_deviation(study)
    tables = (len(study.parties) - 1) / 2
    wanted = round(math.sqrt(shared * tables / _USERS_PER_CELL))
    return min(max(wanted, study.n_clusters + 1), _MOST_OF_PARTIAL)


def _pair_clusters(study: Study, users: int) -> int:
    """Return k' from how many users there are to a deviation of a cell's noise.

    The more there are, the finer a grid is worth its noise. Segments that are clearly apart need
    about as many local clusters as there are of them to be told apart at all, which is worth cells
    of which each alone is mostly noise.
    """
    k, n_parties = study.n_clusters, len(study.parties)
    precision = users / _cell_deviation(study)
    if n_parties >= MANY_PARTIES:
        fine = min(math.sqrt(precision / 5), _MOST_OF_MANY)
        needed = min(k, math.sqrt(precision / 2.5), _MOST_OF_MANY)
        if needed < _WORTH_TRYING * k:
            needed = 0.0
        return round(min(max(fine, needed, _told_apart(k, precision), _FEWEST), _MOST))
    per_cell = min(max(3 * math.sqrt(20 / k), 3.0), 6.0)
    if n_parties == 2:
        # One table has no other that it must agree with, and noise in it is cut well.
        per_cell = max(per_cell * min(max(_PLENTY / precision, 0.5), 1.0), 3.0)
        needed = min(max(1.6 * k, _NEEDED_BY_TWO), math.sqrt(precision / 1.5))
    else:
        needed = max(min(1.6 * k, math.sqrt(precision / 2)), _told_apart(k, precision))
    fine = math.sqrt(precision / per_cell)
    # Finer than what can be fitted whole only to tell segments apart.
    whole = float(_WHOLE_GRID ** (1 / n_parties))
    return math.floor(min(max(min(fine, whole), needed, _FEWEST), _MOST) + 0.5)


def _told_apart(k: int, precision: float) -> float:
    """Return the k' that tells k clear segments apart, or 0 where noise does not allow it."""
    for for_each, users_to_find in _FOR_EACH:
        if precision >= users_to_find * (for_each * k) ** 2:
            return for_each * k
    return 0.0


def _cell_deviation(study: Study) -> float:
    """Roughly the noise on a published cell of a pair: decoys and the server's noise."""
    sigma = gaussian_multiplier(study.budget.epsilon, study.budget.delta)
    sigma *= math.sqrt(study.n_runs)
    n_pairs = math.comb(len(study.parties), 2)
    at_one = tight_split(study, n_groups=n_pairs, n_sizes=0, scale=1.0)
    return math.sqrt(2) * sigma / at_one.membership
