"""95 % intervals of the sizes of segments: what they are for, and how they are found.

A segment's size estimates the number of users who are nearest to its centre: a sum over cells of
the cells' users, times the share of each that is nearest to the centre (`cell_shares`). Both may be
off.

1. Noise on the cells, and cells cut because they could be noise. Tables that the true ones may have
   been are drawn (`cell_tables`), the server's noise and its whole estimate are repeated on them,
   and the sizes are compared with the drawn truth. A table of pairs of parties does not say who is
   in a cell of all of them, so users are drawn from the fitted grid (Poisson). How far drawn sizes
   are from the published ones counts too where it is more: a lone cell just above the cut looks
   safe to the first comparison, though it may be empty.
2. Cells that a border between two segments crosses. Of such a cell most users are in one segment;
   the others are exchanged. Where users lie within a cell is known from the parties' points, but
   not which places of different parties go together, so the exchange may be off: by more the more
   users are exchanged (`_BORDER`).

`python -m benchmarks coverage` measures how often they are right. Everything is computed from
published values, so it costs no privacy.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from splitmeans._types import FloatArray
from splitmeans.intervals.cell_shares import CellShares, cell_shares, one_segment
from splitmeans.intervals.cell_tables import PossibleCells, possible_cells
from splitmeans.membership.method import Group
from splitmeans.membership.methods import method_of
from splitmeans.plan.plan import Plan
from splitmeans.study import EVERYONE
from splitmeans.synopsis.joint import NOISE_DEVIATIONS, joint_weights
from splitmeans.synopsis.pairs import CUT, max_entropy_weights
from splitmeans.synopsis.synopsis import Synopsis

# Half the width of a 95 % interval, in standard deviations.
WIDTH_95 = 1.96

# Repeated estimates do not see all that noise does: 92 % of sizes of equal user sets were within
# their interval as far as cells go, on eleven data sets. A quarter more makes it 97 % on thirteen.
_NOISE = 1.25 * WIDTH_95

# Half the width that stands for borders, over the geometric mean of the segment's size and the
# users it exchanges. The error grows with the root of the exchanged share: where few users are
# exchanged, even that few is not certain.
_BORDER = 0.25

# Where columns are categories, noise also moves users between places that are far apart: 85 to 92 %
# of sizes were within the interval for numbers, on one made-up table, and the worst were 2.3 half
# widths off. docs/intervals.md says what this factor was seen on.
_WITH_CATEGORIES = 2.0

_MOST_DRAWS, _FEWEST_DRAWS = 50, 20
# Cells times tables times draws that take a few seconds.
_WORK = 20_000_000


@dataclass(frozen=True, kw_only=True, eq=False)
class SizeIntervals:
    """What the sizes of the segments of one segmentation may be.

    Attributes:
        low: Lower ends of the 95 % intervals, zero or more, shape (k,).
        high: Upper ends.
        noise: Root mean square error of the sizes: the part that is due to noise and cuts.
        total: The 95 % interval of all users together.
    """

    low: FloatArray
    high: FloatArray
    noise: FloatArray
    total: tuple[float, float]


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


def refusal(plan: Plan, synopsis: Synopsis) -> str | None:
    """Return why no honest interval can be given, None if one can."""
    if method_of(plan.study).deviation is None:
        return (
            f"memberships were sent by the method {plan.study.membership!r}, whose errors of cells "
            "are not known"
        )
    if plan.grid_method not in ("pairs", "joint") or synopsis.labels is None:
        return (
            f"the grid {plan.grid_method!r} is a model of the users, and how far a model is off "
            "is not known"
        )
    if not plan.study.local_facts.n_points:
        return (
            f"the local algorithm {plan.study.local_facts.name!r} does not tell how users lie "
            "within a cell, so nobody knows how many are on the other side of a border"
        )
    if _draws(plan) < _FEWEST_DRAWS:
        cells = math.prod(plan.n_local_clusters)
        return f"its grid of {cells:,} cells is too large to be estimated again many times"
    if synopsis.total <= 0:
        return "no users were counted"
    return None


def size_intervals(
    plan: Plan,
    synopsis: Synopsis,
    segmentations: Sequence[FloatArray],
    *,
    rng: np.random.Generator,
) -> list[SizeIntervals] | None:
    """Return the intervals of sizes, or None where `refusal` says why there are none.

    Args:
        plan: The plan of the run.
        synopsis: What was published.
        segmentations: One or more: centres in distance units, each of shape (k, D).
        rng: Draws tables; this is an estimate, nothing is hidden by it.
    """
    if refusal(plan, synopsis) is not None:
        return None
    assert synopsis.labels is not None
    grid = np.zeros(plan.n_local_clusters)
    np.add.at(grid, tuple(synopsis.labels.T), synopsis.weights)
    # All users together are one more segmentation, of one segment.
    shares = [one_segment(grid.size)]
    shares += [cell_shares(synopsis, centres, grid.shape) for centres in segmentations]
    errors = _repeated_errors(plan, grid, shares, rng=rng)
    half = WIDTH_95 * float(errors[0][0])
    total = (max(0.0, synopsis.total - half), synopsis.total + half)
    categories = any(column.levels for party in plan.parties for column in party.columns)
    wider = _WITH_CATEGORIES if categories else 1.0
    found: list[SizeIntervals] = []
    for share, error in zip(shares[1:], errors[1:], strict=True):
        sizes = share.sizes(grid)
        borders = _BORDER**2 * sizes * share.exchanged(grid)
        half_widths = wider * np.sqrt(np.square(_NOISE * error) + borders)
        low, high = np.maximum(sizes - half_widths, 0.0), sizes + half_widths
        found.append(SizeIntervals(low=low, high=high, noise=error, total=total))
    return found


def total_interval(plan: Plan, synopsis: Synopsis) -> tuple[float, float] | None:
    """Return the 95 % interval of all users together where the grid is a model of the users.

    A presence table counts them, whatever the model makes of its cells: those at all parties are
    one cell, everyone is the sum of all. None where there is no such table, or no users.
    """
    law, total, rate = plan.presence, synopsis.total, plan.sample_rate
    if law is None or total <= 0:
        return None
    cells = 2 ** len(plan.study.parties) - 1 if plan.study.population == EVERYONE else 1
    variance = cells * (float(law.variance) + law.server_sigma**2) / rate**2
    half = WIDTH_95 * math.sqrt(variance + (1 / rate - 1) * total)
    return max(0.0, total - half), total + half


def _draws(plan: Plan) -> int:
    work = math.prod(plan.n_local_clusters) * max(1, len(plan.groups))
    return min(_MOST_DRAWS, _WORK // work)


def _repeated_errors(
    plan: Plan, grid: FloatArray, shares: Sequence[CellShares], *, rng: np.random.Generator
) -> list[FloatArray]:
    """Return the root mean square errors of the sizes by noise and cuts."""
    tables = _margins(plan, grid)
    deviations = {group: _deviation(plan, table, group) for group, table in tables.items()}
    one_table = plan.grid_method != "pairs" or len(plan.study.parties) == 2
    cut = NOISE_DEVIATIONS[0] if one_table else CUT
    laws = {
        group: possible_cells(table, deviation=deviations[group], cut=cut)
        for group, table in tables.items()
    }
    draws = _draws(plan)
    repeated = [np.zeros(share.n_segments) for share in shares]
    possible = [np.zeros(share.n_segments) for share in shares]
    for _ in range(draws):
        likely, truth = _drawn_grid(plan, laws, rng=rng)
        noisy = {
            group: table + deviations[group] * rng.standard_normal(table.shape)
            for group, table in _margins(plan, truth).items()
        }
        again = _estimate(plan, noisy, deviation=max(deviations.values()))
        for share, first, second in zip(shares, repeated, possible, strict=True):
            first += np.square(share.sizes(again - truth)) / draws
            second += np.square(share.sizes(grid - likely)) / draws
    return [
        np.sqrt(np.maximum(first, second)) for first, second in zip(repeated, possible, strict=True)
    ]


def _drawn_grid(
    plan: Plan, laws: Mapping[Group, PossibleCells], *, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Draw the likely users of all cells, and users from those."""
    drawn = {group: law.draw(rng) for group, law in laws.items()}
    if len(drawn) == 1:
        (only,) = drawn.values()
        return only, only
    tables = _Tables(n_local_clusters=plan.n_local_clusters, tables=drawn)
    likely = max_entropy_weights(tables)
    return likely, rng.poisson(likely).astype(np.float64)


def _estimate(plan: Plan, tables: Mapping[Group, FloatArray], *, deviation: float) -> FloatArray:
    """Estimate the grid as `server.combine` does."""
    redrawn = _Tables(n_local_clusters=plan.n_local_clusters, tables=tables)
    if plan.grid_method == "pairs":
        return max_entropy_weights(redrawn, deviation=deviation)
    return joint_weights(redrawn, total=None, deviation=deviation)


def _margins(plan: Plan, grid: FloatArray) -> dict[Group, FloatArray]:
    """Return the users in every cell of every group."""
    everyone = range(grid.ndim)
    groups = (
        tuple(itertools.combinations(everyone, 2))
        if plan.grid_method == "pairs"
        else (tuple(everyone),)
    )
    return {
        group: np.asarray(grid.sum(axis=tuple(axis for axis in everyone if axis not in group)))
        for group in groups
    }


def _deviation(plan: Plan, table: FloatArray, group: Group) -> float:
    """Return the standard deviation of a cell of the group, as the server would estimate it."""
    deviation = method_of(plan.study).deviation
    assert deviation is not None, "refused before"
    return deviation(plan.membership, plan, group, table)
