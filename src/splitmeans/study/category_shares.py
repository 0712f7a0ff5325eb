"""Shares of the levels of a categorical column: on the grid, never below 0, adding up to 1.

In own units a level's feature is the share of users at that level. Noise puts released centres
beside that: shares below 0, or 130 % in all. The nearest valid shares are post-processing of the
released centre and cost nothing. They are taken before rows get their labels, so labels, published
nodes and segments all stand on the same centres. A mean of valid shares is valid, so segments are.

On the grid a level is -bound for share 0 and bound for share 1. Counted from -bound, the shares of
a column are whole numbers from 0 that add up to 2 bound, exactly.
"""

from collections.abc import Iterator

import numpy as np

from splitmeans._types import IntArray
from splitmeans.kmeans.simplex import project_rows
from splitmeans.study import PartySpec
from splitmeans.study.features import features_of


def to_valid_shares(party: PartySpec, centres: IntArray) -> IntArray:
    """Return centres, shape (k', d), whose shares of each categorical column are valid.

    Each centre moves to the nearest one with valid shares, up to a grid step; one that is valid
    stays. Guarantee: a function of the released centres alone, so it costs no privacy.
    """
    valid = np.array(centres, dtype=np.int64)
    for own, bound in _categorical(party):
        valid[:, own] = _nearest_shares(valid[:, own] + bound, total=2 * bound) - bound
    return valid


def shares_are_valid(party: PartySpec, centres: IntArray) -> bool:
    """Whether all centres, shape (n, d), in grid integers within the bounds, have valid shares."""
    return all(
        bool(np.all((centres[:, own] + bound).sum(axis=1) == 2 * bound))
        for own, bound in _categorical(party)
    )


def _categorical(party: PartySpec) -> Iterator[tuple[slice, int]]:
    """Yield which features each categorical column has, and their bound."""
    features = features_of(party)
    start = 0
    for column in party.columns:
        width = max(1, len(column.levels))
        if column.levels:
            yield slice(start, start + width), features[start].bound
        start += width


def _nearest_shares(values: IntArray, *, total: int) -> IntArray:
    """Return for each row the nearest whole numbers from 0 with this sum.

    Rounded down, and then the rest is dealt out.
    """
    exact = project_rows(values.astype(np.float64), total=float(total))
    whole = np.floor(exact).astype(np.int64)
    rest = total - whole.sum(axis=1)
    # Rounding errors of the projection are far below one; the rest is below the number of levels.
    largest = np.argsort(whole - exact, axis=1, kind="stable")
    ranks = np.argsort(largest, axis=1, kind="stable")
    return np.asarray(whole + (ranks < rest[:, np.newaxis]))
