"""Nodes as they travel: one whole number for each column, whatever kind the column is.

A column of 500 categories is 500 features of every node (`study/features.py`), but a node is at one
of its levels, as the released point that it was made of is; or, where a local cluster has no point,
at the shares that its local centre has. So a code says all: the grid integer of a number, the
position of a level, or that the local centre tells. A result is as long as there are columns.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from splitmeans._types import IntArray, LabelArray
from splitmeans.errors import ProtocolError
from splitmeans.study import PartySpec
from splitmeans.study.coding import coding_of

AT_CENTRE = -1  # the node has the shares of its local centre


def n_codes(parties: Sequence[PartySpec]) -> int:
    """Return how many codes a node has: the columns of all parties."""
    return sum(len(party.columns) for party in parties)


def to_codes(
    parties: Sequence[PartySpec], nodes: IntArray, labels: LabelArray, centres: Sequence[IntArray]
) -> npt.NDArray[np.int32]:
    """Return the codes of nodes, shape (n, all columns).

    Nodes, shape (n, all features), and each party's centres, shape (k'_l, d_l), are in grid
    integers. `labels` has the local cluster of each node at each party, shape (n, S).
    """
    found = []
    start = 0
    for position, coding in enumerate(map(coding_of, parties)):
        own = nodes[:, start : start + len(coding.bounds)]
        start += len(coding.bounds)
        codes = coding.codes(own).astype(np.int32)
        at_level = coding.features(codes.astype(np.int64))
        at_centre = centres[position][labels[:, position]]
        for place, features in coding.categorical:
            elsewhere = np.any(at_level[:, features] != own[:, features], axis=1)
            assert np.array_equal(own[elsewhere, features], at_centre[elsewhere, features])
            codes[elsewhere, place] = AT_CENTRE
        found.append(codes)
    return np.concatenate(found, axis=1)


def to_nodes(
    parties: Sequence[PartySpec],
    codes: npt.NDArray[np.int32],
    labels: LabelArray,
    centres: Sequence[IntArray],
) -> IntArray:
    """Return the nodes of codes in grid integers, shape (n, all features).

    Raises:
        ProtocolError: If a code stands for no value of its column.
    """
    found = []
    start = 0
    for position, coding in enumerate(map(coding_of, parties)):
        own = codes[:, start : start + len(coding.levels)].astype(np.int64)
        start += len(coding.levels)
        at_centre = own == AT_CENTRE
        # Of a number -1 is a value like any other.
        at_centre[:, np.array(coding.levels) == 0] = False
        wrong = coding.problem_of_codes(np.where(at_centre, 0, own))
        if wrong is not None:
            raise ProtocolError(f"the published result has points {wrong}")
        nodes = coding.features(np.where(at_centre, 0, own))
        for place, features in coding.categorical:
            chosen = np.flatnonzero(at_centre[:, place])
            nodes[chosen, features] = centres[position][labels[chosen, position], features]
        found.append(nodes)
    return np.concatenate(found, axis=1)
