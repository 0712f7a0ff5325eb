"""How many labels and local clusters each party has in the decoy join, where the study says "auto".

From public quantities only; docs/concepts/budget.md has the measurements.
"""

import math

from splitmeans.membership.decoy.law import TRUNCATION_SHARE, rough_truncation
from splitmeans.membership.method import enough_clusters
from splitmeans.privacy.gaussian import gaussian_multiplier
from splitmeans.privacy.split import PRESENCE_SHARE, split_precision
from splitmeans.study import Study

# Limits of labels of a table.
_FEWEST, _MOST = 4, 64
# So many users per deviation of its noise should a cell have on average: of the one table of two
# parties, and of tables that all others of the same parties help to read.
_USERS_IN_THE_TABLE, _USERS_IN_A_CELL = 1.5, 4.5
# So many decoys for each user may be in a table of three or more parties.
_MOST_DECOYS = 1.95
# Local clusters that may share a label (`membership/bundles.py`).
_IN_A_BUNDLE = 2


def decoy_labels(study: Study, users: int) -> int:
    """Return how many labels a party has in a table, for a study with about this many users.

    As many as noise allows, whatever the number of segments: then any number of segments can be
    taken from one run.
    """
    precision = users / _cell_deviation(study)
    two = len(study.parties) == 2
    labels = math.sqrt(precision / (_USERS_IN_THE_TABLE if two else _USERS_IN_A_CELL))
    most = _MOST if two else min(_MOST, _most_by_decoys(study, users))
    return max(math.floor(min(labels + 0.5, most)), _FEWEST, enough_clusters(study))


def decoy_clusters(study: Study, labels: int) -> int:
    """Return how many local clusters a party may have for so many labels.

    A party whose released points do not lie in groups has one for each label. Bundles need several
    tables, and every user in each with the cluster that all of them are about: not where labels are
    randomised, nor where a study counts columns in pairs.
    """
    bundled = len(study.parties) > 2 and study.detail is None
    if not bundled or study.decoy.collusion_epsilon is not None:
        return labels
    return max(min(_IN_A_BUNDLE * labels, _MOST), labels)


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
