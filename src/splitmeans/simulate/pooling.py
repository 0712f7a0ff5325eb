"""Joining the parties' tables by user id, which only a simulation can do.

The estimator, the demo and the benchmarks use it to measure a private result against the pooled
rows. No participant of a real run ever holds what these functions return.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from splitmeans._types import NO_VALUE, FloatArray, IntArray
from splitmeans.errors import DataError
from splitmeans.kernels.row_numbers import as_text
from splitmeans.study.features import GRID_UNITS
from splitmeans.study.id_rules import ID_TYPES
from splitmeans.table.prepare import PartyTable

# Rows of a block: together with their distances they stay in a processor's cache.
_ROWS_AT_ONCE = 4096


def pooled_rows(tables: Sequence[PartyTable]) -> tuple[FloatArray, pa.Array]:
    """Return all columns in distance units, shape (n, D), and the ids, in the first table's order.

    Users that some party lacks are left out. A value that is not there is NaN.
    """
    places, ids = _places(tables)
    return _pooled(tables, places, slice(None)), as_text(ids)


def pooled_blocks(tables: Sequence[PartyTable]) -> Iterator[FloatArray]:
    """Yield the same rows, some of them at a time, so that memory does not hold them twice."""
    places, ids = _places(tables)
    for start in range(0, len(ids), _ROWS_AT_ONCE):
        yield _pooled(tables, places, slice(start, start + _ROWS_AT_ONCE))


def same_order(tables: Sequence[PartyTable]) -> bool:
    """Whether all tables have the same users in the same order."""
    first = tables[0].ids
    return all(table.ids.equals(first) for table in tables)


def _pooled(
    tables: Sequence[PartyTable], places: Sequence[IntArray] | None, part: slice
) -> FloatArray:
    """Return some rows of all columns; no places mean that row i is the same user everywhere."""
    rows: Sequence[slice | IntArray] = [part] * len(tables)
    if places is not None:
        rows = [place[part] for place in places]
    blocks = [table.features_of(own) for table, own in zip(tables, rows, strict=True)]
    pooled = np.hstack(blocks) / GRID_UNITS
    lacking = np.hstack([block == NO_VALUE for block in blocks])
    if lacking.any():
        pooled[lacking] = np.nan
    return pooled


def _places(tables: Sequence[PartyTable]) -> tuple[list[IntArray] | None, pa.Array]:
    """Return where each party has the users whom all have, and their ids."""
    if same_order(tables):
        # As where row i is user i: nothing to look up.
        return None, tables[0].ids
    first = as_text(tables[0].ids)
    positions = [pc.index_in(first, value_set=as_text(table.ids)) for table in tables]
    everywhere = np.ones(len(first), dtype=bool)
    for position in positions:
        everywhere &= position.is_valid().to_numpy(zero_copy_only=False)
    if not everywhere.any():
        forms = ", ".join(f"'{form}'" for form in ID_TYPES[1:])
        raise DataError(
            "the parties have no user in common; if they write the same ids differently, say how "
            f"in the study's ids.type (VerticalKMeans: id_rules): one of {forms}, or IdRules"
        )
    shared = pa.array(everywhere)
    return [position.filter(shared).to_numpy() for position in positions], first.filter(shared)
