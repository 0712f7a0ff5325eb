"""Joint labels: the segment that all columns of a user together are nearest to; simulation only.

No participant of a real run can compute them. Where row i is the same user in all tables nothing is
joined: rows are compared as they are on the grid, some at a time.
"""

from collections.abc import Sequence

import numpy as np

from splitmeans._types import FloatArray, LabelArray
from splitmeans.kernels.screen import Single, empty_columns, screen, to_screen
from splitmeans.kmeans.distances import squared_distances
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

    Args:
        tables: The parties' tables on the grid.
        centres: In distance units, shape (k, D); with k = 0 every label is -1.
        synopsis: Says how columns count in distances.
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
    """Compare numbers that every row has, in single precision where that is certain."""
    n, d = len(tables[0]), centres.shape[1]
    columns, to_compare = empty_columns(d, _ROWS_AT_ONCE), to_screen(centres * GRID_UNITS)
    labels, certain = np.empty(n, dtype=np.int32), np.empty(_ROWS_AT_ONCE, dtype=np.bool_)
    ends = np.cumsum([0, *(table.raw_rows.shape[1] for table in tables)])
    for start in range(0, n, _ROWS_AT_ONCE):
        part = slice(start, min(start + _ROWS_AT_ONCE, n))
        size = part.stop - start
        for table, first, last in zip(tables, ends[:-1], ends[1:], strict=True):
            columns[first:last, :size] = table.raw_rows[part].T
        single = Single(columns=columns, largest=float(np.abs(columns).max()))
        screen(single, to_compare, labels=labels[part], certain=certain[:size])
        close = start + np.flatnonzero(~certain[:size])
        if len(close):
            rows = np.hstack([table.features_of(close) for table in tables]) / GRID_UNITS
            labels[close] = squared_distances(rows, centres).argmin(axis=1)
    return labels
