"""Public law of the noisy histogram that local clustering starts from; see `local.cells`."""

import math
from dataclasses import dataclass

from splitmeans import _validate
from splitmeans.local.law import COUNT_UNITS, check_public, gaussian_event, mu_scale, whole_root
from splitmeans.privacy.events import ComposedEvent

# Shares of mu^2, chosen by measurement (docs/local-clustering.md): the number of rows, and of the
# rest the histograms of columns. What then remains is for the cells.
SIZE_SHARE = 0.02
COLUMN_SHARE = 0.25


@dataclass(frozen=True, kw_only=True)
class CellHistogramLaw:
    """Counts of rows in cells fitted to the columns.

    Guarantee: for adding or removing one row, mu-Gaussian privacy. A row moves the number of rows
    by 1, one bin of each of d columns by 1 (L2 sensitivity sqrt(d)), and one cell by 1. Bins and
    cells are chosen from values released before.

    Attributes:
        bounds: Largest grid integer of each column.
        mu: Cost of one release.
        min_cells: Number of cells that is allowed however noisy they are.
    """

    bounds: tuple[int, ...]
    mu: float
    min_cells: int = 16

    def __post_init__(self) -> None:
        check_public(n_clusters=self.min_cells, bounds=self.bounds)
        _validate.positive(mu=self.mu)

    @property
    def size_scale(self) -> int:
        """Scale of the noise on the number of rows, in 1/COUNT_UNITS of a row."""
        return mu_scale(COUNT_UNITS, mu=self.mu * math.sqrt(SIZE_SHARE))

    @property
    def column_scale(self) -> int:
        """Scale of the noise on every bin of every column, in the same unit."""
        share = 1.0 if len(self.bounds) == 1 else COLUMN_SHARE
        mu = self.mu * math.sqrt((1 - SIZE_SHARE) * share)
        return mu_scale(self.column_sensitivity, mu=mu)

    @property
    def cell_scale(self) -> int:
        """Scale of the noise on every cell, in the same unit; not used with one column."""
        share = (1 - SIZE_SHARE) * (1 - COLUMN_SHARE)
        return mu_scale(COUNT_UNITS, mu=self.mu * math.sqrt(share))

    @property
    def column_sensitivity(self) -> int:
        """L2 norm by which a row moves the histograms of all columns, in the same unit."""
        return whole_root(len(self.bounds) * COUNT_UNITS**2)

    @property
    def event(self) -> ComposedEvent:
        """The number of rows, all columns as one vector, the cells."""
        size = gaussian_event(self.size_scale, sensitivity=COUNT_UNITS, coordinates=1)
        columns = gaussian_event(
            self.column_scale, sensitivity=self.column_sensitivity, coordinates=len(self.bounds)
        )
        if len(self.bounds) == 1:
            return ComposedEvent(parts=(size, columns))
        cells = gaussian_event(self.cell_scale, sensitivity=COUNT_UNITS, coordinates=1)
        return ComposedEvent(parts=(size, columns, cells))
