"""Arrays of floats whose columns are all numbers with known bounds: checked in one pass.

It is what `VerticalKMeans.fit` mostly gets. Column by column such an array would be copied, looked
at three times and then written; here each value is read once. What is found is the same, and if a
value is missing or infinite the way over columns says which and where (`rows.py`).
"""

from typing import Any, NamedTuple

import numpy as np

from splitmeans._types import HalfWidthArray
from splitmeans.kernels.quantise import to_grid_rows
from splitmeans.study import PartySpec
from splitmeans.study.features import bounds_of, features_of
from splitmeans.table.checks.facts import BoundFacts

# Rows of an array whose rows are not one after the other are copied so many at a time.
_ROWS_AT_ONCE = 8192


class PlainRows(NamedTuple):
    """Rows on the grid, shape (n, d), and how columns fit their bounds."""

    rows: HalfWidthArray
    bounds: tuple[BoundFacts, ...]


def grid_of_array(party: PartySpec, values: Any) -> PlainRows | None:
    """Return an array, shape (n, columns), on the grid; None if it is none that is done here."""
    # A masked array has a mask; asking NumPy would load all that it has for them.
    if hasattr(values, "mask") or values.dtype != np.float64:
        return None
    if any(column.categories or not column.is_settled for column in party.columns):
        return None
    features = features_of(party)
    lows = np.array([feature.low for feature in features])
    highs = np.array([feature.high for feature in features])
    bounds, outside = bounds_of(features), np.zeros(len(features), dtype=np.int64)
    rows = np.empty(values.shape, dtype=np.int32)
    for start in range(0, len(values), _ROWS_AT_ONCE):
        part = slice(start, start + _ROWS_AT_ONCE)
        block = np.ascontiguousarray(values[part])
        if not to_grid_rows(
            _writable(block),
            lows=lows,
            highs=highs,
            bounds=bounds,
            out=rows[part],
            outside=outside,
        ):
            return None
    facts = tuple(
        BoundFacts(
            column=column.name,
            low=float(feature.low),
            high=float(feature.high),
            values=len(values),
            outside=int(count),
        )
        for column, feature, count in zip(party.columns, features, outside, strict=True)
    )
    return PlainRows(rows, facts)


def _writable(block: Any) -> Any:
    """Return what may be another type to a kernel, a read-only array, as the usual one."""
    return block if block.flags.writeable and block.flags.aligned else block.copy()
