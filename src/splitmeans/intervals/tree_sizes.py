"""95 % intervals of the sizes of all segments of a tree, as those of published segments are."""

import numpy as np

from splitmeans._types import FloatArray
from splitmeans.intervals.cell_shares import cell_shares
from splitmeans.intervals.sizes import intervals_of_shares
from splitmeans.plan.plan import Plan
from splitmeans.synopsis.models.tree import SegmentTree
from splitmeans.synopsis.plan_precision import refusal


def tree_intervals(
    plan: Plan, tree: SegmentTree, *, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray] | None:
    """Return both ends for every branch, or None where `refusal` says why there are none.

    A branch is a segment of several cuts. Its interval is that of the cut nearest to the segments
    that the tree was grown from, so those have the intervals that they have everywhere.
    """
    synopsis = tree.synopsis
    if refusal(plan, synopsis) is not None:
        return None
    cuts = [tree.cut(k) for k in range(1, tree.most + 1)]
    whole = cell_shares(synopsis, tree.last_borders, plan.n_local_clusters)
    shares = [whole.united(cut.borders.segment_of, cut.k) for cut in cuts]
    found = intervals_of_shares(plan, synopsis, shares, rng=rng)
    low, high = np.zeros(len(tree.branches)), np.zeros(len(tree.branches))
    for cut, own in zip(cuts, found, strict=True):
        for place, at in enumerate(cut.positions):
            branch = tree.branches[at]
            last = tree.most if branch.until is None else branch.until - 1
            if cut.k == min(max(tree.given, branch.since), last):
                low[at], high[at] = own.low[place], own.high[place]
    low[0], high[0] = found[0].total
    return low, high
