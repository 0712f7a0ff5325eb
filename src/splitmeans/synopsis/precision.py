"""How exact a synopsis is: the noise on its cells, and how finely its columns are known.

It is public, as it follows from the plan and the published grid (`plan_precision.py`), and travels
with the synopsis: whoever asks something of one wants to know how far the answer may be off.
"""

import itertools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from splitmeans._types import FloatArray
from splitmeans.errors import ParameterError
from splitmeans.membership.method import Group

if TYPE_CHECKING:
    from splitmeans.synopsis.synopsis import Synopsis

FEWEST_DRAWS, MOST_DRAWS = 20, 50
# Cells times tables times draws that take a few seconds.
_WORK = 20_000_000


@dataclass(frozen=True, kw_only=True)
class Precision:
    """What is known of the errors of a synopsis.

    Attributes:
        shape: k' of each party: the shape of the grid.
        groups: Whose clusters were counted together, a table each: every pair.
        deviations: Standard deviation of the noise of a cell of each of these tables, in users.
        resolutions: For every feature how finely its party counted it before it made points, as a
            share of the feature's range; 0 for a category.
    """

    shape: tuple[int, ...]
    groups: tuple[Group, ...]
    deviations: tuple[float, ...]
    resolutions: tuple[float, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", tuple(int(width) for width in self.shape))
        object.__setattr__(
            self, "groups", tuple(tuple(int(one) for one in group) for group in self.groups)
        )
        for name in ("deviations", "resolutions"):
            # As many digits as are signed (`result/signed.py`), so that no others are shown.
            rounded = tuple(float(f"{one:.6g}") for one in getattr(self, name))
            object.__setattr__(self, name, rounded)
        n_parties = len(self.shape)
        usable = (
            n_parties > 0
            and all(width > 0 for width in self.shape)
            and self.groups == all_pairs(n_parties)
            and len(self.deviations) == len(self.groups)
            and all(0 < one < math.inf for one in self.deviations)
            and all(0 <= one <= 1 for one in self.resolutions)
            and self.n_draws >= FEWEST_DRAWS
        )
        if not usable:
            raise ParameterError(
                "precision must have k' of each party, the table of every pair "
                "with a deviation above 0 each, and resolutions from 0 to 1"
            )

    @property
    def n_draws(self) -> int:
        """How many replicates are drawn: 50, fewer for large grids."""
        return draws_of(self.shape, n_tables=len(self.groups))


def draws_of(shape: tuple[int, ...], *, n_tables: int) -> int:
    """Return how often a grid can be estimated again in a few seconds, 50 times at most."""
    return min(MOST_DRAWS, _WORK // (math.prod(shape) * max(1, n_tables)))


def grid_of(synopsis: "Synopsis", shape: tuple[int, ...]) -> FloatArray:
    """Return the published users of all cells."""
    assert synopsis.labels is not None
    grid = np.zeros(shape)
    np.add.at(grid, tuple(synopsis.labels.T), synopsis.weights)
    return grid


def margin(grid: FloatArray, group: Group) -> FloatArray:
    """Return the users in every cell of a group."""
    others = tuple(axis for axis in range(grid.ndim) if axis not in group)
    return np.asarray(grid.sum(axis=others))


def all_pairs(n_parties: int) -> tuple[Group, ...]:
    """Return the pairs i < j."""
    return tuple(itertools.combinations(range(n_parties), 2)) or ((0,),)
