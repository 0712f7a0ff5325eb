"""Rows as codes: numbers in up to 16 quantile bins of the real rows, categories by position.

All contenders are compared in codes, because the libraries that see pooled rows know nothing else.
A bin's edge lies half way between two values of the real rows, so that 39.9 hours and 40 are one
thing where hours are whole numbers. The bins are of the real rows: a gift to those libraries, which
get them for nothing.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.synthetic.tables import MixedTable
from splitmeans._types import FloatArray, IntArray
from splitmeans.study import Column

N_BINS = 16


@dataclass(frozen=True, kw_only=True, eq=False)
class Coder:
    """How a table is coded.

    Attributes:
        columns: Its columns.
        edges: For each column of numbers the inner edges of its bins; None for categories.
    """

    columns: tuple[Column, ...]
    edges: tuple[FloatArray | None, ...]

    @classmethod
    def of(cls, table: MixedTable, rows: pa.Table) -> "Coder":
        """Return the code that real rows give."""
        edges = tuple(
            None if column.categories else _edges(_numbers(column, rows[column.name]))
            for column in table.columns
        )
        return cls(columns=table.columns, edges=edges)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of codes of each column."""
        return tuple(
            len(column.categories) if own is None else len(own) + 1
            for column, own in zip(self.columns, self.edges, strict=True)
        )

    def codes(self, rows: pa.Table) -> IntArray:
        """Return the codes of rows with these columns by name, shape (n, columns)."""
        found = []
        for column, own in zip(self.columns, self.edges, strict=True):
            values = rows[column.name]
            if own is None:
                place = pc.index_in(values, pa.array(column.categories)).to_numpy()
                found.append(place.astype(np.int64))
            else:
                found.append(np.searchsorted(own, _numbers(column, values), side="right"))
        return np.stack(found, axis=1)


def _numbers(column: Column, values: pa.ChunkedArray) -> FloatArray:
    """Return numbers within the public bounds: what lies outside is the bound, as in a study."""
    numbers = values.cast(pa.float64(), safe=False).to_numpy()
    return np.asarray(np.clip(numbers, column.low, column.high), dtype=np.float64)


def _edges(values: FloatArray) -> FloatArray:
    distinct = np.unique(values)
    below = np.append(distinct[:1], distinct[:-1])
    middles = (distinct + below) / 2
    if len(distinct) <= N_BINS:
        return middles[1:]
    wanted = np.quantile(values, np.arange(1, N_BINS) / N_BINS)
    at = np.unique(np.searchsorted(distinct, wanted))
    return middles[at[at > 0]]
