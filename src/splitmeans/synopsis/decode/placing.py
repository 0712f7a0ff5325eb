"""Pseudo-users: points that stand for users, where the parties' synthetic points say users are.

A label vector says in which local clusters a user is, not where in the clusters. Each party has
released how its rows lie within its clusters, as synthetic points. A pseudo-user has at each party
the place of one of its points of that cluster, drawn for each party by itself; which places go
together is for later steps (`exchanging.py`). Made from released values only.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from splitmeans._types import FloatArray, IntArray
from splitmeans.kernels.assign import nearest
from splitmeans.kmeans.draws import draw_evenly
from splitmeans.plan.grid_limits import N_POINTS


@dataclass(frozen=True, kw_only=True, eq=False)
class PseudoUsers:
    """Pseudo-users.

    Attributes:
        labels: The local cluster of each at each party, shape (u, S).
        weights: How many users each stands for, shape (u,).
        places: For each party where they are, in grid integers, each of shape (u, d_l).
    """

    labels: IntArray
    weights: FloatArray
    places: tuple[IntArray, ...]

    @property
    def nodes(self) -> IntArray:
        """Their places at all parties one after the other, shape (u, D)."""
        return np.concatenate(self.places, axis=1)


def place_users(
    labels: IntArray,
    weights: FloatArray,
    centres: Sequence[IntArray],
    points: Sequence[IntArray],
    *,
    rng: np.random.Generator,
    n_users: int = N_POINTS,
    equal: bool = False,
) -> PseudoUsers:
    """Return pseudo-users of cells.

    Cells get users in proportion to their weight, and one at least; of more cells than `n_users`
    some are drawn. The weights of a cell's users add up to that of the cell.

    Args:
        labels: The local cluster of each cell at each party, shape (cells, S).
        weights: Users of each cell, zero or more.
        centres: Local centres of each party in grid integers, each of shape (k'_l, d_l).
        points: Synthetic points of each party in grid integers, each of shape (p, d_l).
        rng: Draws which places meet; nothing is hidden by it.
        n_users: About how many.
        equal: Whether all have the same weight; small cells then have a user or none, by chance.
    """
    cells, shares = _cells_of_users(weights, n_users=n_users, equal=equal, rng=rng)
    chosen = labels[cells]
    places = tuple(
        _places(own, party_centres, party_points, rng=rng)
        for own, party_centres, party_points in zip(chosen.T, centres, points, strict=True)
    )
    return PseudoUsers(labels=chosen, weights=shares, places=places)


def _cells_of_users(
    weights: FloatArray, *, n_users: int, equal: bool, rng: np.random.Generator
) -> tuple[IntArray, FloatArray]:
    """Return the cell and the weight of each pseudo-user."""
    used = np.flatnonzero(weights > 0)
    if len(used) == 0:
        return np.zeros(1, dtype=np.int64), np.zeros(1)
    total = float(weights.sum())
    if equal or len(used) > n_users:
        cells = draw_evenly(weights, n_users, rng=rng)
        return cells, np.full(n_users, total / n_users)
    counts = np.maximum(np.rint(weights[used] / total * n_users).astype(np.int64), 1)
    return np.repeat(used, counts), np.repeat(weights[used] / counts, counts)


def _places(
    labels: IntArray, centres: IntArray, points: IntArray, *, rng: np.random.Generator
) -> IntArray:
    """Return for each user with a label one of the points of that cluster, all equally often."""
    of_point = nearest(points, centres)
    # A cluster without points is where its centre is.
    places = centres[labels]
    for label in np.unique(labels):
        inside = np.flatnonzero(of_point == label)
        users = np.flatnonzero(labels == label)
        if len(inside):
            turns = np.resize(rng.permutation(inside), len(users))
            places[users] = points[rng.permutation(turns)]
    return np.asarray(places)
