"""How many clusters each party makes when the study says "auto"; from public quantities only.

`docs/concepts/budget.md` has the measurements behind the decoy rule.
"""

import math

from splitmeans.membership.sketch.auto_clusters import paper_local_clusters
from splitmeans.privacy.gaussian import gaussian_multiplier
from splitmeans.privacy.split import MEMBERSHIP_SHARE, paper_split
from splitmeans.study import Study

# For the decoy join: with at least this many users per standard deviation of a cell's noise, k' is
# worth its finer grid. Fewer users, and noisy cells and centres cost more than coarse ones.
_DECOY_LEVELS = ((1500, 16), (600, 12), (60, 8), (0, 5))
_MOST_LOCAL_CLUSTERS = 16
# Cells of a grid that is fitted in seconds.
_WHOLE_GRID = 2**22
# One table of all parties gets finer only as long as the noise on its total is at most this share
# of a party's users. Three to six parties that share 12 to 60 % of their users (mixed Gaussian,
# letter, one run each): the loss is mostly lowest at 2 to 5 %; above, it can be several times that.
_TOTAL_NOISE = 0.045
# ... and as its decoys are no more than this, a message of 140 MB. A cell has about this many per
# deviation of its noise.
_MOST_DECOYS = 2**23
_DECOYS_PER_DEVIATION = 4

# Cells of one table of more than two parties, those of absent users included. Each costs every
# party some fifty decoys at epsilon 1, so that a release then has half a gigabyte.
MAX_TABLE_CELLS = 600_000

SKETCH_LOCAL_CLUSTERS = 6


def default_local_clusters(study: Study, users: int) -> int:
    """Return k' for a study with about this many users."""
    match study.membership:
        case "sketch-paper":
            n_parties = len(study.parties)
            shares = paper_split(study.budget, n_parties=n_parties, needs_count=True)
            return paper_local_clusters(
                noisy_count=users,
                n_clusters=study.n_clusters,
                n_parties=n_parties,
                repetitions=study.sketch.repetitions,
                epsilon=shares.membership_epsilon,
                delta=shares.membership_delta,
            )
        case "decoy":
            chosen = _decoy_clusters(study, users)
            if one_table(study):
                chosen = min(chosen, _one_table_clusters(study, users))
            return max(chosen, enough_clusters(study))
        case "sketch":
            return max(SKETCH_LOCAL_CLUSTERS, enough_clusters(study))
    # The paper takes k' = k for its baselines.
    return study.n_clusters


def one_table(study: Study) -> bool:
    """Whether the cells of three or more parties are counted in one table, not pair by pair."""
    joint = study.grid == "joint" or (study.grid == "auto" and study.user_sets == "partial")
    return joint and len(study.parties) > 2


def _one_table_clusters(study: Study, users: int) -> int:
    """Return the largest k' whose table has little noise beside the users, and not many decoys."""
    deviation, n_parties = _cell_deviation(study), len(study.parties)
    precise: float = (_TOTAL_NOISE * users / deviation) ** (2 / n_parties)
    cells = min(MAX_TABLE_CELLS, _MOST_DECOYS / (_DECOYS_PER_DEVIATION * deviation))
    # "Absent" is one more label of each party.
    sendable: float = cells ** (1 / n_parties) - 1
    return max(2, math.floor(min(precise, sendable)))


def _decoy_clusters(study: Study, users: int) -> int:
    precision = users / _cell_deviation(study)
    level = next(k for least, k in _DECOY_LEVELS if precision >= least)
    if level >= 12:
        # More segments than local clusters cannot all be seen by a single party.
        level = max(level, min(study.n_clusters, _MOST_LOCAL_CLUSTERS))
    # A coarser grid that can be fitted whole beats a finer one that is only sampled: with six
    # parties of loan data k' = 12 lost 2.37 where k' = 16 lost 2.6 (docs/concepts/budget.md).
    for _, fewer in _DECOY_LEVELS:
        if fewer <= level and fewer ** len(study.parties) <= _WHOLE_GRID:
            return level if level ** len(study.parties) <= _WHOLE_GRID else fewer
    return level


def _cell_deviation(study: Study) -> float:
    """Roughly the noise on a published cell: decoys and the server's noise."""
    n_tables = 1 if one_table(study) else math.comb(len(study.parties), 2)
    sigma = gaussian_multiplier(study.budget.epsilon, study.budget.delta)
    return math.sqrt(2 * n_tables / MEMBERSHIP_SHARE["decoy"]) * sigma


def enough_clusters(study: Study) -> int:
    """Return the smallest k' whose grid has at least n_clusters cells."""
    n_parties = len(study.parties)
    return next(k for k in range(2, study.n_clusters + 2) if k**n_parties >= study.n_clusters)
