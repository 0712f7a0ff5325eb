"""How many clusters each party makes for the decoy join when the study says "auto".

From public quantities only; docs/concepts/budget.md has the measurements.
"""

import math

from splitmeans.errors import ParameterError
from splitmeans.membership.method import enough_clusters
from splitmeans.privacy.gaussian import gaussian_multiplier
from splitmeans.study import Study
from splitmeans.study.methods import DECOY, MANY_PARTIES

# Limits of k' of two to five parties, and of more, whose pairs share the budget.
_FEWEST, _MOST, _MOST_OF_MANY = 4, 64, 24
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


def decoy_local_clusters(study: Study, users: int) -> int:
    """Return k' for a study with about this many users."""
    chosen = _pair_clusters(study, users)
    if _one_table(study):
        chosen = min(chosen, _one_table_clusters(study, users))
    return max(chosen, enough_clusters(study))


def check_table_size(study: Study, n_local_clusters: tuple[int, ...], grid_method: str) -> None:
    """Refuse one table of all parties whose decoys alone would keep everyone busy for hours."""
    n_parties, k = len(study.parties), max(n_local_clusters)
    if grid_method != "joint" or n_parties == 2:
        return
    absent = int(study.user_sets == "partial")
    cells = math.prod(k + absent for k in n_local_clusters)
    if cells <= MAX_TABLE_CELLS:
        return
    most = next(k for k in range(k, 0, -1) if (k + absent) ** n_parties <= MAX_TABLE_CELLS)
    with_absent = ' with "absent" as one more' if absent else ""
    if most >= 2 and most**n_parties >= study.n_clusters:
        fix = f"take n_local_clusters={most} or fewer"
    else:
        fix = "take fewer parties" + (" or only users that all parties have" if absent else "")
    raise ParameterError(
        f"n_local_clusters={k}{with_absent} at {n_parties} parties gives one table of {cells} "
        f"cells, more than the {MAX_TABLE_CELLS} whose decoys can be sent and joined; {fix}"
    )


def _one_table(study: Study) -> bool:
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


def _pair_clusters(study: Study, users: int) -> int:
    """Return k' from how many users there are to a deviation of a cell's noise.

    The more there are, the finer a grid is worth its noise. Segments that are clearly apart need
    about as many local clusters as there are of them to be told apart at all, which is worth cells
    of which each alone is mostly noise.
    """
    k, n_parties = study.n_clusters, len(study.parties)
    precision = users / _cell_deviation(study)
    if n_parties >= MANY_PARTIES:
        fine = math.sqrt(precision / 5)
        needed = min(k, math.sqrt(precision / 2.5))
        return round(min(max(fine, needed, _FEWEST), _MOST_OF_MANY))
    fine = math.sqrt(precision / min(max(3 * math.sqrt(20 / k), 3.0), 6.0))
    needed = min(1.6 * k, math.sqrt(precision / (1.5 if n_parties == 2 else 2)))
    # A coarser grid that can be fitted whole beats a finer one that is only sampled.
    whole = float(_WHOLE_GRID ** (1 / n_parties))
    return math.floor(min(max(fine, needed, _FEWEST), _MOST, whole) + 0.5)


def _cell_deviation(study: Study) -> float:
    """Roughly the noise on a published cell: decoys and the server's noise."""
    n_tables = 1 if _one_table(study) else math.comb(len(study.parties), 2)
    sigma = gaussian_multiplier(study.budget.epsilon, study.budget.delta)
    share = DECOY.share_of(len(study.parties))
    assert share is not None
    return math.sqrt(2 * n_tables / share) * sigma
