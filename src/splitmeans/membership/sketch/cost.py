"""What reading the registers of a run takes at the server, from public facts alone.

The likelihood of a pair of clusters looks at every value that a register takes, some sixty times
(`likelihood.shared_sizes`). So the work is pairs of parties, times pairs of clusters, times values.
"""

import math
from collections.abc import Sequence

from splitmeans.membership.sketch.law import SketchLaw

# About two minutes on one core. With the defaults that is 250 clusters at each of two parties, or
# 25 at each of sixteen; six are the default.
MAX_WORK = 1.5e7

# The largest of all registers lies above the typical largest one by a factor below this one.
_ABOVE_TYPICAL = 10


def register_values(law: SketchLaw, *, widths: Sequence[int], users: float) -> float:
    """Return about how many values the registers of a pair of parties take.

    They begin at the floor and end about where one element of all, in all rows, is expected.
    """
    elements = users + law.phantoms * math.prod(law.labels_of(widths))
    largest = math.log(_ABOVE_TYPICAL * elements * law.repetitions) / math.log1p(law.gamma)
    return float(min(max(largest, law.floor + 1), law.largest_register) - law.floor)


def decoding_work(
    law: SketchLaw,
    *,
    groups: Sequence[Sequence[int]],
    n_local_clusters: Sequence[int],
    users: float,
) -> float:
    """Return pairs of clusters times register values, over all groups."""
    work = 0.0
    for group in groups:
        widths = [n_local_clusters[party] for party in group]
        work += math.prod(widths) * register_values(law, widths=widths, users=users)
    return work


def most_clusters(law: SketchLaw, *, n_groups: int, users: float) -> int:
    """Return the largest k' of all parties, in groups of two, that stays within `MAX_WORK`."""
    k = 2
    while (k + 1) ** 2 * n_groups * register_values(
        law, widths=(k + 1, k + 1), users=users
    ) <= MAX_WORK:
        k += 1
    return k
