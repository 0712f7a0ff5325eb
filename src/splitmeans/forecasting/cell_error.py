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

    A segment is a sum of cells with noise of their own, 1/k of those that a group counts. The
    server takes out part of the noise (no cell is below zero, small ones are cut), so this is on
    the safe side: `intervals.sizes` finds about as much after a run of two parties without gaps
    between segments, and about half of it with four parties and gaps. Known where that is known,
    so not with detail, where cells are scaled once more.
    """
    known = method_of(plan.study).deviation is not None and not plan.detail
    if not known or plan.grid_method != "pairs":
        return None
    return cell_error(plan, users=users) * math.sqrt(cells_of_group(plan) / plan.study.n_clusters)


def cells_of_group(plan: Plan) -> int:
    """Return how many cells one membership release counts."""
    size = len(plan.groups[0]) if plan.groups else 2
    return int(max(plan.n_labels) ** size)
