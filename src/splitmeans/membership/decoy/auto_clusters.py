"""How many clusters each party makes for the decoy join when the study says "auto".

From public quantities only; docs/concepts/budget.md has the measurements.
"""

import math

from splitmeans.membership.method import enough_clusters
from splitmeans.privacy.gaussian import gaussian_multiplier
from splitmeans.privacy.split import tight_split
from splitmeans.study import Study

# With at least this many users per standard deviation of a cell's noise, k' is worth its finer
# grid. Fewer users, and noisy cells and centres cost more than coarse ones.
_LEVELS = ((1500, 16), (600, 12), (60, 8), (0, 5))
_MOST_LOCAL_CLUSTERS = 16
# Cells of a grid that is fitted in seconds.
_WHOLE_GRID = 2**22
# Of three or more parties with partial user sets: how many users, per deviation of its noise, a
# cell of a pair table should have on average where each label is in two tables. How many two
# parties share nobody knows: half of a party's users are a guess.
_USERS_PER_CELL = 6
_AT_BOTH = 0.5


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
    return min(max(wanted, study.n_clusters + 1), _MOST_LOCAL_CLUSTERS)


def _pair_clusters(study: Study, users: int) -> int:
    precision = users / _cell_deviation(study)
    level = next(k for least, k in _LEVELS if precision >= least)
    if level >= 12:
        # More segments than local clusters cannot all be seen by a single party.
        level = max(level, min(study.n_clusters, _MOST_LOCAL_CLUSTERS))
    # A coarser grid that can be fitted whole beats a finer one that is only sampled: with six
    # parties of loan data k' = 12 lost 2.37 where k' = 16 lost 2.6 (docs/concepts/budget.md).
    for _, fewer in _LEVELS:
        if fewer <= level and fewer ** len(study.parties) <= _WHOLE_GRID:
            return level if level ** len(study.parties) <= _WHOLE_GRID else fewer
    return level


def _cell_deviation(study: Study) -> float:
    """Roughly the noise on a published cell of a pair: decoys and the server's noise."""
    sigma = gaussian_multiplier(study.budget.epsilon, study.budget.delta)
    n_pairs = math.comb(len(study.parties), 2)
    at_one = tight_split(study, n_groups=n_pairs, needs_count=False, scale=1.0)
    return math.sqrt(2) * sigma / at_one.membership
