"""Pseudo-users of an earlier result of a series, as a later run can use them.

Bounds and categories that a run learns may differ from those of the run before. Numbers are then
put on the new scale, and moved to the nearest bound if they are beyond it; a category that is not
known any more becomes the one for all others.

The result is public to all participants, so whatever is made of it costs nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from splitmeans._types import FloatArray, IntArray
from splitmeans.study.coding import coding_of
from splitmeans.study.features import (
    GRID_UNITS,
    features_of,
    features_of_columns,
    to_distance_units,
    to_own_units,
)
from splitmeans.study.parties import OTHER_LEVEL, Column, PartySpec
from splitmeans.synopsis.synopsis import Synopsis


@dataclass(frozen=True, kw_only=True, eq=False)
class EarlierUsers:
    """Pseudo-users of an earlier result.

    Attributes:
        places: For each party where they are in its columns, grid integers, shape (u, d_l).
        weights: Users that each stands for, shape (u,), all above zero.
    """

    places: tuple[IntArray, ...]
    weights: FloatArray


def earlier_users(synopsis: Synopsis, parties: Sequence[PartySpec]) -> EarlierUsers | None:
    """Return the pseudo-users of an earlier result, None where it has no places, or nobody.

    Args:
        synopsis: The published grid.
        parties: The parties with their columns as this run has them.
    """
    if not synopsis.has_places or synopsis.total <= 0:
        return None
    used = synopsis.weights > 0
    places = [
        earlier_places(synopsis, party, position)[used] for position, party in enumerate(parties)
    ]
    return EarlierUsers(places=tuple(places), weights=synopsis.weights[used])


def earlier_places(synopsis: Synopsis, party: PartySpec, position: int) -> IntArray:
    """Return where all nodes are in the columns of a party, grid integers, shape (nodes, d_l).

    Args:
        synopsis: The published grid, with places.
        party: The party with its columns as this run has them.
        position: Which party of the study it is.
    """
    assert synopsis.columns is not None, "a published synopsis has columns"
    scaled = synopsis.scaled_nodes[:, synopsis.columns_of(synopsis.party_names[position])]
    before, coding = synopsis.features[position], coding_of(party)
    if before == features_of(party):
        whole = np.asarray(np.rint(scaled * GRID_UNITS), dtype=np.int64)
        # A category that a place has shares of becomes the one with most.
        return np.ascontiguousarray(coding.features(coding.codes(whole)))
    own = to_own_units(before, scaled)
    codes, first = [], 0
    for old, new in zip(synopsis.columns[position], party.columns, strict=True):
        width = max(1, len(old.levels))
        values = own[:, first : first + width]
        codes.append(_levels(values, old, new) if new.levels else _numbers(values[:, 0], new))
        first += width
    return np.ascontiguousarray(coding.features(np.stack(codes, axis=1)))


def _numbers(values: FloatArray, column: Column) -> IntArray:
    """Return numbers in own units on the grid of a column."""
    features = features_of_columns([column])
    # Values were published under other bounds, and may be far outside of these.
    inside = np.clip(values, features[0].low, features[0].high)[:, np.newaxis]
    places = to_distance_units(features, inside)[:, 0] * GRID_UNITS
    return np.asarray(np.rint(places), dtype=np.int64)


def _levels(shares: FloatArray, old: Column, new: Column) -> IntArray:
    """Return the level in a column of the one that each place has most of in the old column."""
    # Learned categories end with the one for all others.
    rest = new.levels.index(OTHER_LEVEL) if OTHER_LEVEL in new.levels else len(new.levels) - 1
    known = {level: position for position, level in enumerate(new.levels)}
    positions = np.array([known.get(level, rest) for level in old.levels], dtype=np.int64)
    return np.asarray(positions[shares.argmax(axis=1)])
