"""How many users a counted cell is off: the error of the membership step.

A cell is one local cluster of each party of a group, for most studies of a pair of parties. Errors
are standard deviations for a cell of average size, before anything is cut or made consistent.
"""

import math

from splitmeans.membership.methods import method_of
from splitmeans.plan.plan import Plan


def cell_error(plan: Plan, *, users: int) -> float:
    """Return the standard deviation of a cell's count, in users."""
    return method_of(plan.study).cell_error(plan.membership, plan, users)


def segment_error(plan: Plan, *, users: int) -> float | None:
    """Return the standard deviation of the size of an average segment, in users.

    A segment is a sum of cells with noise of their own, 1/k of those that a group counts.
    `intervals.sizes` finds about as much after a run. Known where that is known, so not with
    detail, where cells are scaled once more.
    """
    if method_of(plan.study).deviation is None or plan.detail:
        return None
    return cell_error(plan, users=users) * math.sqrt(cells_of_group(plan) / plan.study.n_clusters)


def cells_of_group(plan: Plan) -> int:
    """Return how many cells one membership release counts."""
    size = len(plan.groups[0]) if plan.groups else 2
    return int(max(plan.n_labels) ** size)
