"""Which places of the parties go together within cells, where nothing counted them.

Pseudo-users of a cell have their places put together by chance (`placing.py`). Where columns depend
on each other beyond cells (`dependence.py`), pseudo-users with the same local cluster at a party
exchange their places there, drawn so that places with large values meet as the dependence says.
Where they do not, and always where many parties have few columns each, segments that share a local
cluster are told apart (`by_segment.py`). Every cell keeps its users and every party its places, so
the pair tables stay as they were released, and so do single columns and what one party's columns
have in common, but for users of different weight who exchange places. Post-processing.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from splitmeans._types import FloatArray, IntArray
from splitmeans.study.methods import MANY_PARTIES
from splitmeans.synopsis.decode.by_segment import exchange_by_segments, partners
from splitmeans.synopsis.decode.dependence import PartySide, dependence, party_side
from splitmeans.synopsis.decode.placing import PseudoUsers

# How often every pseudo-user is offered an exchange at every party. With twice as many, losses are
# the same.
_OFFERS = 16
# Belief in a dependence below this is chance.
_LEAST_BELIEVED = 0.1


def exchange_places(
    users: PseudoUsers, *, n_segments: int | None, rng: np.random.Generator
) -> PseudoUsers:
    """Return pseudo-users who have exchanged places within local clusters.

    Args:
        users: Pseudo-users whose places were put together by chance.
        n_segments: How many segments places are exchanged by; None for none.
        rng: Draws exchanges; nothing is hidden by it.
    """
    if len(users.places) < 2 or not users.weights.sum() > 0:
        return users
    sides = [
        party_side(part.astype(np.float64), own, users.weights)
        for part, own in zip(users.places, users.labels.T, strict=True)
    ]
    found = dependence(sides, users.weights, rng=rng)
    depends = found.believed >= _LEAST_BELIEVED
    if depends:
        turns = _exchanged(sides, found.ties, rng=rng)
        parts = tuple(part[turn] for part, turn in zip(users.places, turns, strict=True))
        users = replace(users, places=parts)
    if n_segments is None or (depends and len(users.places) < MANY_PARTIES):
        return users
    return exchange_by_segments(users, n_segments=n_segments, rng=rng)


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
