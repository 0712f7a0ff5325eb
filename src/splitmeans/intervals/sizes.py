"""95 % intervals of the sizes of segments: what they are for, and how they are found.

A segment's size estimates the number of users who are nearest to its centre: a sum over cells of
the cells' users, times the share of each that is nearest to the centre (`cell_shares`). Both may be
off.

1. Noise on the cells, and cells cut because they could be noise. Tables that the true ones may have
   been are drawn, the server's noise and its whole estimate are repeated on them, and the sizes are
   compared with the drawn truth (`synopsis/replicates/redrawn.py`). How far drawn sizes are from
   the published ones counts too where it is more: a lone cell just above the cut looks safe to the
   first comparison, though it may be empty.
2. Cells that a border between two segments crosses. Of such a cell most users are in one segment;
   the others are exchanged. Where users lie within a cell is known from the parties' points, but
   not which places of different parties go together, so the exchange may be off: by more the more
   users are exchanged (`_BORDER`).

`python -m benchmarks coverage` measures how often they are right. Everything is computed from
published values, so it costs no privacy.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from splitmeans._types import FloatArray
from splitmeans.intervals.cell_shares import CellShares, cell_shares, one_segment
from splitmeans.plan.plan import Plan
from splitmeans.study import EVERYONE
from splitmeans.synopsis.plan_precision import precision_of, refusal
from splitmeans.synopsis.precision import Precision, grid_of
from splitmeans.synopsis.replicates.redrawn import redrawn_grids
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


def size_intervals(
    plan: Plan,
    synopsis: Synopsis,
    segmentations: Sequence[FloatArray],
    *,
    rng: np.random.Generator,
) -> list[SizeIntervals] | None:
    """Return the intervals of sizes, or None where `refusal` says why there are none.

    Segmentations are centres in distance units, each of shape (k, D). `rng` draws tables; this is
    an estimate, nothing is hidden by it.
    """
    if refusal(plan, synopsis) is not None:
        return None
    shape = plan.n_labels
    grid = grid_of(synopsis, shape)
    # All users together are one more segmentation, of one segment.
    shares = [one_segment(grid.size)]
    shares += [cell_shares(synopsis, segments, shape) for segments in segmentations]
    errors = _repeated_errors(precision_of(plan, synopsis), grid, shares, rng=rng)
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


def _repeated_errors(
    precision: Precision,
    grid: FloatArray,
    shares: Sequence[CellShares],
    *,
    rng: np.random.Generator,
) -> list[FloatArray]:
    """Return the root mean square errors of the sizes by noise and cuts."""
    draws = precision.n_draws
    repeated = [np.zeros(share.n_segments) for share in shares]
    possible = [np.zeros(share.n_segments) for share in shares]
    for drawn in redrawn_grids(precision, grid, rng=rng):
        for share, first, second in zip(shares, repeated, possible, strict=True):
            first += np.square(share.sizes(drawn.estimate - drawn.users)) / draws
            second += np.square(share.sizes(grid - drawn.likely)) / draws
    return [
        np.sqrt(np.maximum(first, second)) for first, second in zip(repeated, possible, strict=True)
    ]
