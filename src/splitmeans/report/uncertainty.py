"""How much the noise in the memberships moves the sizes of segments.

Every cell of the released tables has noise of a known law. What was published is taken for the
truth, tables with fresh noise of that law are drawn from it, and the grid is estimated again as the
server does it. How far the sizes move is the answer: a parametric bootstrap. It works on published
values, so it costs no privacy.

It covers the noise in the memberships alone. Noise in the parties' local centres, users who are
nearer to another segment than the rest of their cell is, and cells that the server cut because they
could be noise are not in it: nothing that was published says how large they are. Of the true
numbers of users in a segment's cells, this share was within 1.96 deviations, in 40 runs each: two
parties, mixed Gaussian, 98 % (epsilon 1) and 99 % (0.25); four parties 91 % (1); three parties,
made-up customers, 88 % (1, 20,000 users) and 86 % (0.5, 50,000 users). The rest is mostly the cut.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from splitmeans._types import FloatArray, IntArray
from splitmeans.grid.joint import joint_weights
from splitmeans.grid.pairs import pairs_weights
from splitmeans.grid.synopsis import Synopsis
from splitmeans.membership.decoy.estimate import DecoyEstimator
from splitmeans.membership.decoy.law import DecoyLaw
from splitmeans.membership.decoy.layout import cell_shape
from splitmeans.plan import Group, Plan

# Half the width of a 95 % interval, in standard deviations.
WIDTH_95 = 1.96

_MOST_DRAWS, _FEWEST_DRAWS = 100, 25
# Cells times draws that take a few seconds.
_WORK = 20_000_000


@dataclass(frozen=True, kw_only=True, eq=False)
class _Redrawn:
    """Cell tables with noise drawn anew; a `WeightEstimator`."""

    n_local_clusters: tuple[int, ...]
    tables: Mapping[Group, FloatArray]

    def one(self, party: int) -> FloatArray:
        group = next(group for group in self.tables if party in group)
        others = tuple(axis for axis, member in enumerate(group) if member != party)
        return np.asarray(self.tables[group].sum(axis=others))

    def joint(self, parties: Sequence[int]) -> FloatArray:
        return self.tables[tuple(parties)].copy()


def size_deviations(
    plan: Plan, synopsis: Synopsis, of_node: Sequence[IntArray], *, rng: np.random.Generator
) -> list[FloatArray] | None:
    """Return how far the noise moves the sizes of segments, root mean square, or None if unknown.

    Args:
        plan: The plan of the run.
        synopsis: What was published.
        of_node: One or more segmentations: the segment of each node, shape (cells,).
        rng: Draws the noise; this is an estimate, nothing is hidden by it.

    Returns:
        One array of shape (k,) for each segmentation. None where the noise of a cell is not known
        (methods other than "decoy"), where the grid is not a full table ("many"), or where it is
        too large to be estimated again many times.
    """
    cells = math.prod(plan.n_local_clusters)
    draws = min(_MOST_DRAWS, _WORK // max(1, cells * max(1, len(plan.groups))))
    usable = isinstance(plan.membership, DecoyLaw) and plan.grid_method in ("pairs", "joint")
    if not usable or draws < _FEWEST_DRAWS or synopsis.labels is None:
        return None
    weights = np.zeros(plan.n_local_clusters)
    place = tuple(synopsis.labels.T)
    np.add.at(weights, place, synopsis.weights)
    tables = _margins(plan, weights)
    deviations = {group: _deviation(plan, tables, group) for group in tables}
    published = [np.bincount(nodes, weights=synopsis.weights) for nodes in of_node]
    squares = [np.zeros(len(sizes)) for sizes in published]
    for _ in range(draws):
        redrawn = _Redrawn(
            n_local_clusters=plan.n_local_clusters,
            tables={
                group: table + deviations[group] * rng.standard_normal(table.shape)
                for group, table in tables.items()
            },
        )
        again = _estimate(plan, redrawn, deviation=max(deviations.values()))[place]
        for nodes, sizes, square in zip(of_node, published, squares, strict=True):
            square += (np.bincount(nodes, weights=again, minlength=len(sizes)) - sizes) ** 2
    return [np.sqrt(square / draws) for square in squares]


def _estimate(plan: Plan, redrawn: _Redrawn, *, deviation: float) -> FloatArray:
    """Estimate the grid as `server.combine` does."""
    if plan.grid_method == "pairs":
        return pairs_weights(redrawn, deviation=deviation)
    return joint_weights(redrawn, total=None, deviation=deviation)


def _margins(plan: Plan, weights: FloatArray) -> dict[Group, FloatArray]:
    """Return the published number of users in every cell of every group."""
    everyone = range(weights.ndim)
    groups = (
        tuple(itertools.combinations(everyone, 2))
        if plan.grid_method == "pairs"
        else (tuple(everyone),)
    )
    return {
        group: np.asarray(weights.sum(axis=tuple(axis for axis in everyone if axis not in group)))
        for group in groups
    }


def _deviation(plan: Plan, tables: Mapping[Group, FloatArray], group: Group) -> float:
    """Return the standard deviation of a cell of the group, as the server would estimate it."""
    assert isinstance(plan.membership, DecoyLaw)
    equal_sets = plan.study.user_sets == "equal"
    shape = cell_shape(group, n_local_clusters=plan.n_local_clusters, equal_sets=equal_sets)
    counts = np.zeros(shape, dtype=np.int64)
    present = tuple(slice(plan.n_local_clusters[party]) for party in group)
    counts[present] = np.rint(tables[group] * plan.sample_rate)
    estimator = DecoyEstimator(
        law=plan.membership,
        noisy_tables={group: counts + plan.membership.mean},
        n_local_clusters=plan.n_local_clusters,
        equal_sets=equal_sets,
        sample_rate=plan.sample_rate,
        collusion=plan.collusion_laws,
    )
    return estimator.deviation(group)
