"""Cells as they may have been, and what the server would have published then.

Tables that the true ones may have been are drawn (`cell_tables`), the server's noise is drawn anew,
and its whole estimate is repeated: cuts, scaling and fit. The difference between such an estimate
and the drawn truth is an error as the published one may have. A table of pairs of parties does not
say who is in a cell of all of them, so users are drawn from the fitted grid (Poisson).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from splitmeans._types import FloatArray
from splitmeans.membership.method import Group
from splitmeans.synopsis.pairs import largest_cut, max_entropy_weights
from splitmeans.synopsis.precision import Precision, margin
from splitmeans.synopsis.replicates.cell_tables import PossibleCells, possible_cells


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


@dataclass(frozen=True, kw_only=True, eq=False)
class _Tables:
    """Cell tables with noise drawn anew; a `WeightEstimator`."""

    n_local_clusters: tuple[int, ...]
    tables: Mapping[Group, FloatArray]

    def one(self, party: int) -> FloatArray:
        group = next(group for group in self.tables if party in group)
        others = tuple(axis for axis, member in enumerate(group) if member != party)
        return np.asarray(self.tables[group].sum(axis=others))

    def joint(self, parties: Sequence[int]) -> FloatArray:
        return self.tables[tuple(parties)].copy()


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
    cut = largest_cut(len(precision.shape))
    laws = {
        group: possible_cells(margin(grid, group), deviation=deviation, cut=cut)
        for group, deviation in deviations.items()
    }
    for _ in range(precision.n_draws):
        likely, users = _drawn_grid(precision, laws, rng=rng)
        noisy = {}
        for group, deviation in deviations.items():
            table = margin(users, group)
            noisy[group] = table + deviation * rng.standard_normal(table.shape)
        yield Redrawn(likely=likely, users=users, estimate=_estimate(precision, noisy))


def _drawn_grid(
    precision: Precision, laws: Mapping[Group, PossibleCells], *, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Draw the likely users of all cells, and users from those."""
    drawn = {group: law.draw(rng) for group, law in laws.items()}
    if len(drawn) == 1:
        (only,) = drawn.values()
        return only, only
    likely = max_entropy_weights(_Tables(n_local_clusters=precision.shape, tables=drawn))
    return likely, rng.poisson(likely).astype(np.float64)


def _estimate(precision: Precision, tables: Mapping[Group, FloatArray]) -> FloatArray:
    """Estimate the grid as `server.combine` does, but for what regions and softening change."""
    again = _Tables(n_local_clusters=precision.shape, tables=tables)
    return max_entropy_weights(again, deviation=max(precision.deviations))
