"""Cells as they may have been, and what the server would have published then.

Tables that the true ones may have been are drawn (`cell_tables`), the server's noise is drawn anew,
and its whole estimate is repeated: cuts, scaling and fit. The difference between such an estimate
and the drawn truth is an error as the published one may have. A table of pairs of parties does not
say who is in a cell of all of them, so users are drawn from the fitted grid (Poisson).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from splitmeans._types import FloatArray
from splitmeans.membership.method import Group
from splitmeans.synopsis.decode.counted import CUT, PairTables
from splitmeans.synopsis.precision import Precision, margin
from splitmeans.synopsis.replicates.cell_tables import PossibleCells, possible_cells
from splitmeans.synopsis.replicates.refit import refitted_grid


@dataclass(frozen=True, kw_only=True, eq=False)
class Redrawn:
    """One draw, each of the grid's shape.

    Attributes:
        likely: Expected users of cells, given what was published.
        users: Users drawn from that.
        estimate: What would have been published of those users, with noise of its own.
    """

    likely: FloatArray
    users: FloatArray
    estimate: FloatArray


def redrawn_grids(
    precision: Precision, grid: FloatArray, *, rng: np.random.Generator
) -> Iterator[Redrawn]:
    """Yield `precision.n_draws` draws.

    Args:
        precision: What is known of the noise.
        grid: Published users of all cells.
        rng: Draws; this is an estimate, nothing is hidden by it.
    """
    deviations = dict(zip(precision.groups, precision.deviations, strict=True))
    laws = {
        group: possible_cells(margin(grid, group), deviation=deviation, cut=CUT)
        for group, deviation in deviations.items()
    }
    for _ in range(precision.n_draws):
        likely, users = _drawn_grid(precision, laws, rng=rng)
        noisy: PairTables = {}
        for group, deviation in deviations.items():
            table = margin(users, group)
            noisy[_pair(group)] = table + deviation * rng.standard_normal(table.shape)
        estimate = refitted_grid(noisy, precision.shape, deviation=max(precision.deviations))
        yield Redrawn(likely=likely, users=users, estimate=estimate)


def _drawn_grid(
    precision: Precision, laws: Mapping[Group, PossibleCells], *, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Draw the likely users of all cells, and users from those."""
    drawn = {group: law.draw(rng) for group, law in laws.items()}
    if len(drawn) == 1:
        (only,) = drawn.values()
        return only, only
    tables = {_pair(group): table for group, table in drawn.items()}
    likely = refitted_grid(tables, precision.shape)
    return likely, rng.poisson(likely).astype(np.float64)


def _pair(group: Group) -> tuple[int, int]:
    first, second = group
    return first, second
