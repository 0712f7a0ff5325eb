"""Pseudo-users of an earlier result of a series, as a later run can use them.

The result is public to all participants, so whatever is made of it costs nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from splitmeans._types import FloatArray, IntArray
from splitmeans.study.coding import coding_of
from splitmeans.study.features import GRID_UNITS, features_of
from splitmeans.study.parties import PartySpec
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
    """Return the pseudo-users of an earlier result.

    None where that result has no places of users, nobody, or other features: bounds or categories
    that were learned anew.

    Args:
        synopsis: The published grid.
        parties: The parties with their columns as this run has them.
    """
    if not synopsis.has_places or synopsis.total <= 0:
        return None
    if synopsis.features != tuple(tuple(features_of(party)) for party in parties):
        return None
    used = synopsis.weights > 0
    places = []
    for party in parties:
        own = synopsis.scaled_nodes[used, synopsis.columns_of(party.name)]
        coding = coding_of(party)
        # A category that a place has shares of becomes the one with most.
        whole = np.asarray(np.rint(own * GRID_UNITS), dtype=np.int64)
        places.append(np.ascontiguousarray(coding.features(coding.codes(whole))))
    return EarlierUsers(places=tuple(places), weights=synopsis.weights[used])
