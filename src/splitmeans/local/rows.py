"""What every local algorithm does with a party's rows."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from splitmeans._types import IntArray
from splitmeans.errors import ParameterError
from splitmeans.local.law import LocalLaw
from splitmeans.privacy.noise import NoiseSource
from splitmeans.table.walk.interface import RawRows
from splitmeans.table.walk.memory import as_rows


@dataclass(frozen=True, kw_only=True, eq=False)
class LocalRelease:
    """What a local algorithm releases, on the grid and inside the bounds.

    Attributes:
        centres: The local centres, shape (k', d).
        points: Synthetic points that lie as the rows do, each standing for equally many, shape
            (points, d); none where the algorithm makes none.
        size: The number of rows, as released; None where it was not.
    """

    centres: IntArray
    points: IntArray
    size: float | None = None

    @classmethod
    def of_centres(cls, centres: IntArray) -> "LocalRelease":
        """A release of centres alone."""
        return cls(centres=centres, points=np.empty((0, centres.shape[1]), dtype=np.int64))


class LocalClustering(LocalLaw, Protocol):
    """An algorithm of phase 1; its fields are public, rows and noise are call arguments."""

    def release(
        self, raw_rows: IntArray | RawRows, *, noise: NoiseSource, rng: np.random.Generator
    ) -> LocalRelease:
        """Return the local centres, and synthetic points where the algorithm makes them.

        Args:
            raw_rows: The party's rows, n of them with d columns on the grid; in an array, shape
                (n, d), int64, or in a table that is walked.
            noise: Hides the users.
            rng: Starts the algorithm; independent of the rows.
        """
        ...


def clip_rows(raw_rows: IntArray | RawRows, bounds: tuple[int, ...]) -> IntArray:
    """Return all rows in one array with every coordinate inside its bounds.

    A party's table is clipped already; doing it again makes each algorithm's sensitivity its own
    doing, without an error that would depend on the data.
    """
    rows = as_rows(raw_rows).gather()
    if rows.shape[1] != len(bounds):
        raise ParameterError(
            f"rows must be int64 of shape (n, {len(bounds)}), got shape {rows.shape}"
        )
    limits = np.array(bounds, dtype=np.int64)
    return np.clip(rows, -limits, limits)
