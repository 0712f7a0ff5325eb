"""Joint labels: the segment that all columns of a user together are nearest to; simulation only.

No participant of a real run can compute them. Where row i is the same user in all tables nothing is
joined: rows are compared as they are on the grid, some at a time.
"""

from collections.abc import Sequence

import numpy as np

from splitmeans._types import FloatArray, LabelArray
from splitmeans.kmeans.nearest import nearest_centres
from splitmeans.simulate.evaluation import assign_labels
from splitmeans.simulate.pooling import pooled_blocks, same_order
from splitmeans.study.features import GRID_UNITS
from splitmeans.synopsis.synopsis import Synopsis
from splitmeans.table.prepare import PartyTable

_ROWS_AT_ONCE = 4096


def joint_labels(
    tables: Sequence[PartyTable], centres: FloatArray, *, synopsis: Synopsis
) -> LabelArray:
    """Return the nearest centre of each user whom all tables have, in the first table's order.

    Centres are in distance units, shape (k, D); with k = 0 every label is -1.
    """
    if len(centres) == 0:
        parts = [np.full(len(rows), -1, dtype=np.int32) for rows in pooled_blocks(tables)]
        return np.concatenate(parts)
    plain = all(table.coding is None or table.coding.is_plain for table in tables)
    if plain and synopsis.stretch is None and same_order(tables):
        return _in_order(tables, centres)
    seen = synopsis.seen
    rows = pooled_blocks(tables)
    return np.concatenate([assign_labels(seen(block), seen(centres)) for block in rows])


def _in_order(tables: Sequence[PartyTable], centres: FloatArray) -> LabelArray:
    """Compare numbers that every row has, as they are on the grid."""
    n, on_grid = len(tables[0]), centres * GRID_UNITS
    labels = np.empty(n, dtype=np.int32)
    for start in range(0, n, _ROWS_AT_ONCE):
        part = slice(start, start + _ROWS_AT_ONCE)
        rows = np.hstack([table.raw_rows[part].astype(np.float64) for table in tables])
        labels[part] = nearest_centres(rows, on_grid)
    return labels
