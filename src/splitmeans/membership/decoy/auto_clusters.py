"""How many labels and local clusters each party has in the decoy join, where the study says "auto".

From public quantities only; docs/concepts/budget.md has the measurements.
"""

import math

from splitmeans.membership.decoy.law import TRUNCATION_SHARE, rough_truncation
from splitmeans.membership.method import enough_clusters
from splitmeans.privacy.gaussian import gaussian_multiplier
from splitmeans.privacy.split import split_precision
from splitmeans.study import Study
from splitmeans.study.methods import MANY_PARTIES

# Limits of labels, of those of six parties and more by noise alone, and with partial sets whatever
# the number of segments.
_FEWEST, _MOST, _MOST_OF_MANY, _MOST_OF_PARTIAL = 4, 64, 24, 16
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
# Labels for fewer than this share of the segments cannot tell clear ones apart, unless each stands
# for up to so many clusters (`membership/bundles.py`); a few more clusters than segments find
# nearly all. That needs a quarter of them as labels, and in all tables of a party so many cells for
# each segment: with fewer, tables without gaps lose more than clear ones gain.
_ENOUGH_LABELS, _FEWEST_BUNDLES = 0.75, 0.25
_MOST_IN_A_BUNDLE = 2
_CLUSTERS_FOR_EACH = 1.1
_CELLS_FOR_EACH = 30
# Of three or more parties with partial user sets: how many users, per deviation of its noise, a
# cell of a pair table should have on average where each label is in two tables. How many two
# parties share nobody knows. A quarter of a party's users is a cautious guess: with half, a run
# whose parties share a twentieth loses twice as much, and with 70 % shared nothing is gained.
_USERS_PER_CELL = 6
_AT_BOTH = 0.25
# One cluster more than segments while a cell has so many users per deviation of its noise: four
# parties, 70 % of 100,000 users at each, epsilon 1, k = 50 lose 1.02 with 51 and 1.16 with 44; with
# 20,000 users, epsilon 0.25 and k = 20, where it would be 0.3, they lose 2.7 with 25.
_USERS_TO_TELL_APART = 1.4


def decoy_labels(study: Study, users: int) -> int:
    """Return how many labels a party has in a table, for a study with about this many users."""
    partial = study.user_sets == "partial" and len(study.parties) > 2
    chosen = _partial_labels(study, users) if partial else _pair_labels(study, users)
    return max(chosen, enough_clusters(study))


def decoy_clusters(study: Study, labels: int) -> int:
    """Return how many local clusters a party makes for so many labels: as many, or a few more."""
    if not _bundles_pay(study, labels):
        return labels
    wanted = round(_CLUSTERS_FOR_EACH * study.n_clusters)
    return min(wanted, _MOST_IN_A_BUNDLE * labels, max(_MOST, labels))


def _bundles_pay(study: Study, labels: int) -> bool:
    """Whether so many labels should stand for more clusters than one each.

    Bundles need several tables, and every user in each table with the cluster that all of them are
    about: not where some users are absent or labels randomised, nor where the study says how the
    grid is made or counts columns in pairs.
    """
    possible = (
        len(study.parties) > 2
        and study.user_sets == "equal"
        and study.grid == "auto"
        and study.detail is None
        and study.decoy.collusion_epsilon is None
    )
    k, n_tables = study.n_clusters, len(study.parties) - 1
    few = _FEWEST_BUNDLES * k <= labels < _ENOUGH_LABELS * k
    return possible and few and n_tables * labels**2 >= _CELLS_FOR_EACH * k


def _partial_labels(study: Study, users: int) -> int:
    """Return the labels where pair tables of three or more parties have "absent" as one more label.

    Segments that are far apart are merged if there are fewer local clusters than segments; so there
    is at least one more, where noise allows cells that tell segments apart.
    """
    precision = users / _cell_deviation(study)
    tables = (len(study.parties) - 1) / 2
    wanted = round(math.sqrt(_AT_BOTH * precision * tables / _USERS_PER_CELL))
    enough = study.n_clusters + 1
    told_apart = min(enough, round(math.sqrt(precision / _USERS_TO_TELL_APART)), _MOST)
    return max(min(max(wanted, enough), _MOST_OF_PARTIAL), told_apart)


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
        if labels < _WORTH_TRYING * k and not _bundles_pay(study, labels):
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
    n_pairs = math.comb(len(study.parties), 2)
    share = TRUNCATION_SHARE * study.budget.delta / (n_pairs * study.n_runs)
    in_a_cell = rough_truncation(_cell_deviation(study) / math.sqrt(2), delta_share=share)
    return math.sqrt(_MOST_DECOYS * users / in_a_cell)


def _cell_deviation(study: Study) -> float:
    """Roughly the noise on a published cell of a pair: decoys and the server's noise."""
    sigma = gaussian_multiplier(study.budget.epsilon, study.budget.delta)
    sigma *= math.sqrt(study.n_runs)
    n_pairs = math.comb(len(study.parties), 2)
    at_one = split_precision(study, n_groups=n_pairs, n_sizes=0, scale=1.0)
    return math.sqrt(2) * sigma / at_one.membership
