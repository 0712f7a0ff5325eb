"""Which places of the parties go together within cells, where nothing counted them.

Pseudo-users of a cell have their places put together by chance (`pseudo_users.py`). Where columns
depend on each other beyond cells (`dependence.py`), pseudo-users with the same local cluster at a
party exchange their places there, drawn so that places with large values meet as the dependence
says. Where they do not, and always where many parties have few columns each, segments that share a
local cluster are told apart (`segment_places.py`). Every cell keeps its users and every party its
places, so the pair tables stay as they were released, and so do single columns and what one party's
columns have in common, but for users of different weight who exchange places. Post-processing.
"""

from collections.abc import Sequence

import numpy as np

from splitmeans._types import FloatArray, IntArray
from splitmeans.study.methods import MANY_PARTIES
from splitmeans.synopsis.dependence import PartySide, dependence, party_side
from splitmeans.synopsis.segment_places import exchange_by_segments, partners

# How often every pseudo-user is offered an exchange at every party. With twice as many, losses are
# the same.
_OFFERS = 16
# Belief in a dependence below this is chance.
_LEAST_BELIEVED = 0.1


def arrange_within_cells(
    labels: IntArray,
    weights: FloatArray,
    places: IntArray,
    *,
    widths: Sequence[int],
    rng: np.random.Generator,
    n_segments: int | None = None,
) -> IntArray:
    """Return the places of pseudo-users, shape (u, D), exchanged within local clusters.

    Args:
        labels: The local cluster of each pseudo-user at each party, shape (u, S).
        weights: How many users each stands for.
        places: In grid integers, all parties' features one after the other, shape (u, D).
        widths: How many features each party has.
        rng: Draws exchanges; nothing is hidden by it.
        n_segments: How many segments places are exchanged by, of few parties where columns do not
            depend on each other; None if there are none.
    """
    if len(widths) < 2 or not weights.sum() > 0:
        return places
    ends = np.cumsum(widths)
    parts = [places[:, end - width : end] for end, width in zip(ends, widths, strict=True)]
    sides = [
        party_side(part.astype(np.float64), own, weights)
        for part, own in zip(parts, labels.T, strict=True)
    ]
    found = dependence(sides, weights, rng=rng)
    depends = found.believed >= _LEAST_BELIEVED
    if depends:
        turns = _exchanged(sides, found.ties, rng=rng)
        parts = [part[turn] for part, turn in zip(parts, turns, strict=True)]
        places = np.concatenate(parts, axis=1)
    if n_segments is None or (depends and len(widths) < MANY_PARTIES):
        return places
    return exchange_by_segments(
        labels, weights, places, widths=widths, n_segments=n_segments, rng=rng
    )


def _exchanged(
    sides: Sequence[PartySide], ties: FloatArray, *, rng: np.random.Generator
) -> list[IntArray]:
    """Return for each party whose place each pseudo-user has at last, each of shape (u,)."""
    n_users = len(sides[0].labels)
    ends = np.cumsum([len(side.shown) for side in sides])
    slices = [slice(end - len(side.shown), end) for end, side in zip(ends, sides, strict=True)]
    now = np.concatenate([side.places for side in sides], axis=1)
    turns = [np.arange(n_users) for _ in sides]
    for _ in range(_OFFERS):
        for side, own, turn in zip(sides, slices, turns, strict=True):
            if own.start == own.stop:
                continue
            pull = now @ ties[:, own]
            mine = now[:, own]
            first, second = partners(side.labels, rng=rng)
            # What the density of both would be multiplied by (Metropolis), as a logarithm.
            gain = np.einsum("ud,ud->u", mine[second] - mine[first], pull[first] - pull[second])
            agreed = np.log(rng.random(len(first))) < gain
            first, second = first[agreed], second[agreed]
            mine[first], mine[second] = mine[second], mine[first]
            turn[first], turn[second] = turn[second], turn[first]
    return turns
