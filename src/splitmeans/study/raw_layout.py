"""Where a party's columns are in a row as it is read, before the run has learned anything.

A column whose bounds or categories are known is coded from the beginning (`coding.py`), as one
whole number. One of which the run learns them has no code yet: its value, or a hash of its
category, is kept whole, as two numbers of 32 bits (`kernels.halves`), as every engine stores for a
code as well.
"""

import itertools

from splitmeans.study import Column, PartySpec

HALVES = 2


def raw_width(column: Column) -> int:
    """Return how many whole numbers a column has in a row as it is read."""
    return 1 if column.is_settled else HALVES


def raw_places(party: PartySpec) -> tuple[slice, ...]:
    """Return where each column of a party is in a row as it is read."""
    ends = itertools.accumulate((raw_width(column) for column in party.columns), initial=0)
    return tuple(slice(start, end) for start, end in itertools.pairwise(ends))


def is_settled(party: PartySpec) -> bool:
    """Whether all columns of a party are on the grid as they are read."""
    return all(column.is_settled for column in party.columns)
