"""Which parties share a membership release, and how many local clusters they may have.

It follows from the study alone, because noise depends on it.
"""

import itertools
import math

from splitmeans.errors import ParameterError
from splitmeans.membership.method import Group
from splitmeans.study import Study

# Labels travel as single bytes, and one value means "absent".
MAX_LOCAL_CLUSTERS = 250


def groups_of(study: Study) -> tuple[Group, ...]:
    """Return which parties share a membership release: every pair, and all for who is where."""
    everyone = tuple(range(len(study.parties)))
    if study.counts_only:
        return (everyone,)
    pairs = tuple(itertools.combinations(everyone, 2))
    return (*pairs, everyone) if has_presence_table(study) else pairs


def has_presence_table(study: Study) -> bool:
    """Whether all parties together count who is at which of them; two have their one table."""
    return study.counts_only or len(study.parties) > 2


def check_local_clusters(study: Study, n_local_clusters: tuple[int, ...]) -> None:
    """Refuse numbers of local clusters that no run can have.

    Raises:
        ParameterError: It says what is wrong, and what to change.
    """
    cells, k = math.prod(n_local_clusters), max(n_local_clusters)
    if cells < study.n_clusters:
        raise ParameterError(
            f"n_local_clusters={k} at {len(study.parties)} parties gives {cells} combinations, "
            f"fewer than n_clusters={study.n_clusters}; raise n_local_clusters"
        )
    if k > MAX_LOCAL_CLUSTERS:
        raise ParameterError(f"n_local_clusters must be <= {MAX_LOCAL_CLUSTERS}, got {k}")
