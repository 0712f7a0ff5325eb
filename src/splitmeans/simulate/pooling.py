"""Joining the parties' tables by user id, which only a simulation can do.

The estimator, the demo and the benchmarks use it to measure a private result against the pooled
rows. No participant of a real run ever holds what these functions return.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from splitmeans._types import NO_VALUE, FloatArray, IntArray
from splitmeans.errors import DataError
from splitmeans.study.features import GRID_UNITS
from splitmeans.table.prepare import PartyTable


def pooled_rows(tables: Sequence[PartyTable]) -> tuple[FloatArray, pa.Array]:
    """Return all columns in distance units, shape (n, D), and the ids, in the first table's order.

    Users that some party lacks are left out. A value that is not there is NaN.
    """
    first = tables[0].ids
    if all(table.ids.equals(first) for table in tables):
        # The same users in the same order, as where row i is user i: nothing to look up.
        return np.hstack([_scaled(table.features) for table in tables]), first
    positions = [pc.index_in(first, value_set=table.ids) for table in tables]
    everywhere = np.ones(len(first), dtype=bool)
    for position in positions:
        everywhere &= position.is_valid().to_numpy(zero_copy_only=False)
    if not everywhere.any():
        raise DataError("the parties have no user in common; are the ids written the same way?")
    blocks = [
        _scaled(table.features[position.filter(pa.array(everywhere)).to_numpy()])
        for table, position in zip(tables, positions, strict=True)
    ]
    return np.hstack(blocks), first.filter(pa.array(everywhere))


def _scaled(features: IntArray) -> FloatArray:
    return np.where(features == NO_VALUE, np.nan, features / GRID_UNITS)
