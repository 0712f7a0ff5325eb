"""Tables of figures, each with the ends of its 95 % interval."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from splitmeans._types import FloatArray


@dataclass(frozen=True, kw_only=True, eq=False)
class CrossTable:
    """Users by one or two columns.

    Attributes:
        columns: One name or two.
        bins: For each column the names of its bins or categories.
        edges: For each column of numbers the edges between its bins; none for categories.
        users: Estimated users, shape (bins,) or (bins of the first, bins of the second).
        low: Lower ends of the 95 % intervals; None where no honest ones can be given.
        high: Upper ends.
    """

    columns: tuple[str, ...]
    bins: tuple[tuple[str, ...], ...]
    edges: tuple[tuple[float, ...], ...]
    users: FloatArray
    low: FloatArray | None
    high: FloatArray | None

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield every cell: its bins by column, `users`, `low` and `high`."""
        for at in np.ndindex(self.users.shape):
            names = {column: self.bins[axis][at[axis]] for axis, column in enumerate(self.columns)}
            yield names | {
                "users": float(self.users[at]),
                "low": None if self.low is None else float(self.low[at]),
                "high": None if self.high is None else float(self.high[at]),
            }

    def to_pandas(self) -> Any:
        """Return the cells as a data frame, a row each."""
        import pandas as pd

        return pd.DataFrame(list(self.rows()))

    def __repr__(self) -> str:
        shape = " x ".join(str(len(names)) for names in self.bins)
        return f"<CrossTable {' by '.join(self.columns)}: {shape} bins>"


@dataclass(frozen=True, kw_only=True, eq=False)
class Correlation:
    """Correlations of columns of numbers.

    Attributes:
        columns: Their names.
        values: Shape (columns, columns); NaN for a column that is the same for everybody.
        low: Lower ends of the 95 % intervals; None where there are none.
        high: Upper ends.
    """

    columns: tuple[str, ...]
    values: FloatArray
    low: FloatArray | None
    high: FloatArray | None

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield every pair once, the strongest first."""
        pairs = [
            (first, second)
            for first in range(len(self.columns))
            for second in range(first + 1, len(self.columns))
        ]
        pairs.sort(key=lambda pair: -abs(float(np.nan_to_num(self.values[pair]))))
        for pair in pairs:
            yield {
                "first": self.columns[pair[0]],
                "second": self.columns[pair[1]],
                "correlation": _or_none(self.values[pair]),
                "low": None if self.low is None else _or_none(self.low[pair]),
                "high": None if self.high is None else _or_none(self.high[pair]),
            }

    def to_pandas(self) -> Any:
        """Return the pairs as a data frame, the strongest first."""
        import pandas as pd

        return pd.DataFrame(list(self.rows()))

    def __repr__(self) -> str:
        return f"<Correlation of {len(self.columns)} columns>"


def _or_none(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
