"""Which grid a study's parties combine to, who shares a release for it, and whether it fits.

Both follow from the study alone, because noise depends on them.
"""

import itertools
import math

from splitmeans.errors import ParameterError
from splitmeans.membership.method import Group
from splitmeans.plan.grid_limits import (
    COUNTS,
    MAX_GRID_BYTES,
    PRESENCE,
    SAMPLED,
    grid_bytes,
)
from splitmeans.study import Study

# Labels travel as single bytes, and one value means "absent".
MAX_LOCAL_CLUSTERS = 250


def groups_of(study: Study) -> tuple[Group, ...]:
    """Return which parties share a membership release."""
    everyone = tuple(range(len(study.parties)))
    kind = grid_kind(study)
    if kind == COUNTS:
        return (everyone,)
    pairs = tuple(itertools.combinations(everyone, 2))
    return (*pairs, everyone) if kind == PRESENCE else pairs


def grid_kind(study: Study) -> str:
    """Return how cell weights of all parties are found."""
    if study.counts_only:
        return COUNTS
    if study.grid != "auto":
        return study.grid
    return PRESENCE if len(study.parties) > 2 else "pairs"


def check_grid(
    study: Study, n_local_clusters: tuple[int, ...], grid: str, *, n_features: int
) -> None:
    """Refuse a grid that nobody could compute.

    Raises:
        ParameterError: It says what is too many, and what to change.
    """
    cells, k = math.prod(n_local_clusters), max(n_local_clusters)
    where = f"n_local_clusters={k} at {len(study.parties)} parties gives {cells} grid cells"
    if cells < study.n_clusters:
        raise ParameterError(
            f"{where}, fewer than n_clusters={study.n_clusters}; raise n_local_clusters"
        )
    if k > MAX_LOCAL_CLUSTERS:
        raise ParameterError(f"n_local_clusters must be <= {MAX_LOCAL_CLUSTERS}, got {k}")
    if grid in SAMPLED:
        return
    needed = _dense_bytes(study, cells, n_features)
    if needed > MAX_GRID_BYTES:
        n_parties = len(study.parties)
        fewer = next(
            width
            for width in range(k, 0, -1)
            if _dense_bytes(study, width**n_parties, n_features) <= MAX_GRID_BYTES
        )
        raise ParameterError(
            f"{where}, which with all the columns take about "
            f"{needed / 1e9:.0f} GB of memory at every participant; lower "
            f"n_local_clusters to {fewer}, or leave columns out"
        )


def _dense_bytes(study: Study, cells: int, n_features: int) -> int:
    return grid_bytes(cells=cells, n_features=n_features, n_parties=len(study.parties))
