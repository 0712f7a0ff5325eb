"""How many labels and local clusters each party has in the decoy join, where the study says "auto".

From public quantities only; docs/concepts/budget.md has the measurements.
"""

import math

from splitmeans.membership.decoy.law import TRUNCATION_SHARE, rough_truncation
from splitmeans.membership.method import enough_clusters
from splitmeans.privacy.gaussian import gaussian_multiplier
from splitmeans.privacy.split import PRESENCE_SHARE, split_precision
from splitmeans.study import Study
from splitmeans.study.methods import MANY_PARTIES

# Limits of labels, and of those of six parties and more by noise alone.
_FEWEST, _MOST, _MOST_OF_MANY = 4, 64, 24
# Cells of a grid that is fitted in seconds.
_WHOLE_GRID = 2**22
# Of two parties: the least k' that noise allowing is worth its cells whatever k, and from how many
# users per deviation on finer cells pay, down to half as many users in each.
_NEEDED_BY_TWO = 10
_PLENTY = 1_500
# Of three or more parties: so many users per deviation of its noise should a cell have to tell
# segments apart; and so many decoys for each user may be in a table.
_USERS_IN_A_CELL, _USERS_IN_A_CELL_OF_MANY = 2.0, 2.5
_MOST_DECOYS = 1.95
# Of six parties and more: if noise allows fewer labels than this share of the segments, these are
# not told apart anyway, and cells that are mostly noise only cost.
_WORTH_TRYING = 0.4


def decoy_labels(study: Study, users: int) -> int:
    """Return how many labels a party has in a table, for a study with about this many users."""
    return max(_pair_labels(study, users), enough_clusters(study))


def _pair_labels(study: Study, users: int) -> int:
    """Return the labels from how many users there are to a deviation of a cell's noise.

    The more there are, the finer a grid is worth its noise. Segments that are clearly apart need
    about as many local clusters as there are of them to be told apart at all, which is worth cells
    of which each alone is mostly noise.
    """
    k, n_parties = study.n_clusters, len(study.parties)
    precision = users / _cell_deviation(study)
    most = _MOST if n_parties == 2 else min(_MOST, _most_by_decoys(study, users))
    if n_parties >= MANY_PARTIES:
        fine = min(math.sqrt(precision / 5), _MOST_OF_MANY)
        needed = math.sqrt(precision / _USERS_IN_A_CELL_OF_MANY)
        labels = math.floor(min(min(k, needed) + 0.5, most))
        if labels < _WORTH_TRYING * k:
            labels = 0
        return max(labels, math.floor(min(fine + 0.5, most)), _FEWEST)
    per_cell = min(max(3 * math.sqrt(20 / k), 3.0), 6.0)
    if n_parties == 2:
        # One table has no other that it must agree with, and noise in it is cut well.
        per_cell = max(per_cell * min(max(_PLENTY / precision, 0.5), 1.0), 3.0)
        needed = min(max(1.6 * k, _NEEDED_BY_TWO), math.sqrt(precision / 1.5))
    else:
        needed = min(1.6 * k, math.sqrt(precision / _USERS_IN_A_CELL))
    fine = math.sqrt(precision / per_cell)
    # Finer than what can be fitted whole only to tell segments apart.
    whole = float(_WHOLE_GRID ** (1 / n_parties))
    return max(math.floor(min(max(min(fine, whole), needed) + 0.5, most)), _FEWEST)


def _most_by_decoys(study: Study, users: int) -> float:
    """Return for how many labels a table has about `_MOST_DECOYS` decoys for each user."""
    n_tables = math.comb(len(study.parties), 2) + 1
    share = TRUNCATION_SHARE * study.budget.delta / (n_tables * study.n_runs)
    in_a_cell = rough_truncation(_cell_deviation(study) / math.sqrt(2), delta_share=share)
    # A party is in k' (k' + 1) cells of a table, "absent" of the other one among them.
    return math.sqrt(_MOST_DECOYS * users / in_a_cell + 0.25) - 0.5


def _cell_deviation(study: Study) -> float:
    """Roughly the noise on a published cell of a pair: decoys and the server's noise."""
    sigma = gaussian_multiplier(study.budget.epsilon, study.budget.delta)
    sigma *= math.sqrt(study.n_runs)
    n_groups: float = math.comb(len(study.parties), 2)
    if n_groups > 1:
        n_groups /= 1 - PRESENCE_SHARE
    at_one = split_precision(study, n_groups=n_groups, n_sizes=0, scale=1.0)
    return math.sqrt(2) * sigma / at_one.membership
