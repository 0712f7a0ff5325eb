"""Coded rows, walked as features, for algorithms that know of numbers alone."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from splitmeans._types import IntArray
from splitmeans.study.coding import Coding
from splitmeans.table.walk.interface import RawRows


@dataclass(frozen=True, eq=False, repr=False)
class FeatureRows:
    """Rows on the grid with a feature for each number and each level; see `RawRows`."""

    rows: RawRows
    coding: Coding

    def __len__(self) -> int:
        return len(self.rows)

    def total(self, part: Callable[[IntArray], IntArray]) -> IntArray:
        """Return the sum of `part` over all blocks of rows."""
        return self.rows.total(partial(_of_features, part=part, coding=self.coding))

    def gather(self) -> IntArray:
        """Return all rows at once."""
        return self.coding.features(self.rows.gather())


def _of_features(
    raw_rows: IntArray, *, part: Callable[[IntArray], IntArray], coding: Coding
) -> IntArray:
    return part(coding.features(raw_rows))
