"""Public law of histogram-lloyd; see `local.histogram_lloyd`."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from splitmeans import _validate
from splitmeans._types import NoiseLine
from splitmeans.local.law import COUNT_UNITS, LocalMethod, check_public
from splitmeans.local.laws.cells import CellHistogramLaw
from splitmeans.local.laws.radius_lloyd import FINE_UNITS, RADIUS_FACTOR, RadiusLloydLaw
from splitmeans.privacy.events import ComposedEvent
from splitmeans.study.methods import HISTOGRAM_LLOYD

# Share of mu^2 for the histogram, by measurement (docs/local-clustering.md).
START_SHARE = 0.4


@dataclass(frozen=True, kw_only=True)
class HistogramLloydLaw:
    """A cell histogram for the start, Lloyd's steps with a radius for the rest.

    Guarantee: for adding or removing one row, mu-Gaussian privacy: `start_share` of mu^2 for the
    histogram, the rest for the steps; see `CellHistogramLaw` and `RadiusLloydLaw`.

    Attributes:
        n_clusters: Number of centres, k'.
        bounds: Largest grid integer of each column.
        mu: Cost of one release.
        steps: Number of Lloyd's steps.
        start_share: Share of mu^2 for the histogram.
    """

    TAG: ClassVar[str] = "TreeLloyd"

    n_clusters: int
    bounds: tuple[int, ...]
    mu: float
    steps: int = 4
    start_share: float = START_SHARE

    def __post_init__(self) -> None:
        check_public(n_clusters=self.n_clusters, bounds=self.bounds)
        _validate.positive(mu=self.mu)
        _validate.at_least(1, steps=self.steps)
        _validate.open_unit(start_share=self.start_share)

    @property
    def start(self) -> CellHistogramLaw:
        """The first part."""
        return CellHistogramLaw(
            bounds=self.bounds,
            mu=self.mu * math.sqrt(self.start_share),
            min_cells=2 * self.n_clusters,
        )

    @property
    def lloyd(self) -> RadiusLloydLaw:
        """The second part."""
        mu = self.mu * math.sqrt(1 - self.start_share)
        return RadiusLloydLaw(bounds=self.bounds, mu=mu, steps=self.steps)

    @property
    def event(self) -> ComposedEvent:
        """The histogram's releases, then the steps."""
        return ComposedEvent(parts=(*self.start.event.parts, *self.lloyd.event.parts))

    def noise_lines(self, users: int) -> Iterator[NoiseLine]:
        """Yield the noise of a release; see `LocalLaw`."""
        start = self.start
        yield "number of rows", start.size_scale / COUNT_UNITS, "users"
        yield "each bin of a column", start.column_scale / COUNT_UNITS, "users"
        if len(start.bounds) > 1:
            yield "each cell of the start", start.cell_scale / COUNT_UNITS, "users"
        yield "each coordinate of a centre", self.centre_deviation(users), "spread"

    def centre_deviation(self, users: int) -> float:
        """Return the deviation of a centre's coordinate over the spread of its cluster.

        A step's noise on a sum is in proportion to the radius, which is RADIUS_FACTOR times the
        spread; the mean of a cluster of an average number of users has that over the number; and
        the steps are averaged.
        """
        radius = 2**20  # large enough for the rounding of scales not to matter
        per_radius = self.lloyd.scale(radius) / FINE_UNITS / radius
        members = users / self.n_clusters
        return RADIUS_FACTOR * per_radius / math.sqrt(self.steps) / members


METHOD = LocalMethod(facts=HISTOGRAM_LLOYD, tight=HistogramLloydLaw)
